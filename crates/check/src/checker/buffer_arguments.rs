//! Buffers and peers that the arguments of a call name.

use super::Checker;
use crate::function::CheckedCall;
use crate::marks::{CommPeer, SendKey, SendRecord};
use crate::requests::ReceiveElements;

/// Places of the count and the type of a buffer.
pub(super) struct BufferPlaces {
    pub count: usize,
    pub datatype: usize,
    pub displacements: Option<usize>,
}

/// Returns the places of the count and the type that belong to the buffer at a place.
pub(super) fn buffer_places(call: &CheckedCall<'_>, place: usize) -> Option<BufferPlaces> {
    let rest = || call.function.parameters.iter().enumerate().skip(place + 1);
    let count = rest().find(|(_, p)| p.kind.contains("XFER_NUM_ELEM"))?.0;
    let datatype = rest().find(|(_, p)| p.kind == "DATATYPE")?.0;
    let displacements = rest().find(|(_, p)| p.kind.starts_with("POLYDISPLACEMENT"));
    let displacements = displacements.map(|(place, _)| place).filter(|&place| place < datatype);
    Some(BufferPlaces { count, datatype, displacements })
}

/// Returns the elements of the buffer with one of these names.
pub(super) fn elements(
    checker: &mut Checker,
    call: &CheckedCall<'_>,
    names: &[&str],
) -> Option<ReceiveElements> {
    let place = names.iter().find_map(|name| call.function.place(name))?;
    let places = buffer_places(call, place)?;
    if call.function.parameters[places.count].is_array {
        return None;
    }
    let facts = checker.types.facts(call.arguments[places.datatype])?;
    Some(ReceiveElements { facts, count: call.integer(places.count) })
}

/// Returns the receiver of a send; `None` for MPI_PROC_NULL.
pub(super) fn receiver(call: &CheckedCall<'_>) -> Option<CommPeer> {
    let comm = call.handle("COMMUNICATOR")?;
    let rank = call.named("dest").filter(|&to| to >= 0)?;
    Some(CommPeer { comm, rank })
}

impl Checker {
    /// Returns the mark of a send. Its record is sent if the receiver does not have it.
    pub(super) fn mark(&mut self, index: usize, call: &CheckedCall<'_>) -> Option<u32> {
        let to = receiver(call)?;
        let ReceiveElements { facts, .. } = elements(self, call, &["buf", "sendbuf"])?;
        let key = SendKey { site: call.site, function: index, datatype: facts.number };
        let rank = self.rank;
        Some(self.marks.of_send(key, to, || SendRecord::new(call.site, index, rank, &facts)))
    }
}
