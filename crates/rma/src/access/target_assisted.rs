//! Service of this rank for origins whose fabric does not reach this rank's memory. The service carries out the requests of
//! [`crate::control::messages`]. While the program computes, the helper runs the service.

use super::WindowAccess;
use super::adapter_atomics::{self, AdjacentElements};
use crate::control::packed_change::{ElementChange, PackedChange};
use crate::control::request::{ControlRequest, ControlRequestKind};
use crate::core::WindowFlavor;
use crate::memory::regions::RegionPart;
use crate::memory::target_address::TargetReach;
use weft_collective::words;
use weft_fabric::{Fabric, Sge};
use weft_process::Error;

impl<F: Fabric> WindowAccess<F> {
    /// Carries out requests until [`crate::control::WindowControl::stop_serving`].
    pub async fn serve(&self) -> Result<(), Error> {
        let fulfil = async |request: &ControlRequest, more: Sge, answer: Sge| {
            self.fulfil(request, more, answer).await
        };
        self.control.serve(fulfil).await
    }

    /// Carries out a request. The data that the request returns begin at byte 8 of `answer`. Returns false if the request is
    /// impossible.
    pub async fn fulfil(
        &self,
        request: &ControlRequest,
        more: Sge,
        answer: Sge,
    ) -> Result<bool, Error> {
        let count = request.runs as usize;
        let mut parts = Vec::with_capacity(count);
        let mut runs = Vec::with_capacity(count);
        let (mut total, bytes) = (0, request.bytes as usize);
        for i in 0..count {
            let [at, len] = words::read_array(more.part(16 * i, 16));
            let fits = len <= (bytes - total) as u64;
            if !fits || !self.own_memory(at, len, total, &mut parts) {
                return Ok(false);
            }
            runs.push(AdjacentElements { offset: at as i64, skip: total, len: len as usize });
            total += len as usize;
        }
        if total != bytes {
            return Ok(false);
        }
        let data = more.part(16 * count, request.brings());
        let result = answer.part(8, request.returns());
        let packed = match request.kind {
            ControlRequestKind::Put => {
                scatter(&parts, data);
                return Ok(true);
            }
            ControlRequestKind::Get => {
                gather(&parts, result);
                return Ok(true);
            }
            ControlRequestKind::Reduce => match request.op() {
                Some(op) => PackedChange::Reduce { op, origin: data },
                None => return Ok(false),
            },
            ControlRequestKind::Swap => {
                PackedChange::Swap { compare: data.part(0, bytes), new: data.part(bytes, bytes) }
            }
            ControlRequestKind::Stop => return Ok(false),
        };
        let basic = request.basic().filter(|&basic| packed.is_for(basic, bytes));
        let Some(basic) = basic else { return Ok(false) };
        let change = ElementChange { basic, packed, former: Some(result) };
        if self.memory.exposed(self.core.rank()).adapters && adapter_atomics::is_for(basic) {
            return self.fulfil_by_adapters(change, runs).await;
        }
        self.change_parts(self.core.rank(), &parts, bytes, change).await?;
        Ok(true)
    }

    /// Changes elements of this rank that adapters update for all origins. The offsets of `runs` have the same meaning as in
    /// [`WindowAccess::own_memory`].
    async fn fulfil_by_adapters(
        &self,
        change: ElementChange,
        runs: Vec<AdjacentElements>,
    ) -> Result<bool, Error> {
        if runs.iter().any(|run| !run.len.is_multiple_of(change.basic.size())) {
            return Ok(false);
        }
        let me = self.core.rank();
        let (peer, base) = (self.core.peer(me), self.memory.exposed(me).memory);
        let (words, others) = adapter_atomics::aligned(base, runs.into_iter());
        let of_words = adapter_atomics::WordChange { peer, base, change };
        of_words.run(self.core.endpoint(), &words).await?;
        if others.is_empty() {
            return Ok(true);
        }
        let guarded = async {
            for AdjacentElements { offset, skip, len } in others {
                change.part(skip, len).apply(self.memory.own().part(offset as usize, len))?;
            }
            Ok(true)
        };
        self.locks.guarded(self.core.rank(), guarded).await
    }

    /// Appends `len` bytes of this rank's memory to `parts`, as the packed bytes from `skip` on. `at` is the offset in this rank's
    /// part of the window, or the address in a dynamic window. Returns false if there is no such memory.
    fn own_memory(&self, at: u64, len: u64, mut skip: usize, parts: &mut Vec<RegionPart>) -> bool {
        let peer = self.core.peer(self.core.rank());
        if self.core.flavor == WindowFlavor::Dynamic {
            return self.memory.own_attached(at, len, |memory, piece| {
                let words = self.memory.by_processors(piece.within);
                parts.push(RegionPart::own(peer, memory, skip, words));
                skip += memory.len();
            });
        }
        let (memory, exposed) = (self.memory.own(), self.memory.exposed(self.core.rank()));
        let inside = (memory.len() as u64).checked_sub(at).is_some_and(|room| len <= room);
        if inside {
            let words = self.memory.by_processors(exposed.within);
            parts.push(RegionPart::own(peer, memory.part(at as usize, len as usize), skip, words));
        }
        inside
    }
}

/// Returns the mapped memory of a part. The part must lie in this rank's own memory.
fn seen(part: &RegionPart) -> Sge {
    match part.place.reach {
        TargetReach::Mapped(memory) => memory,
        _ => unreachable!("this rank's own"),
    }
}

/// Copies packed data to their places.
fn scatter(parts: &[RegionPart], data: Sge) {
    parts.iter().for_each(|part| seen(part).copy_from(data.part(part.skip, part.len)));
}

/// Packs data from their places.
fn gather(parts: &[RegionPart], into: Sge) {
    parts.iter().for_each(|part| into.part(part.skip, part.len).copy_from(seen(part)));
}
