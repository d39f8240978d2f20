//! Lines in which the ranks of a group put data down for their leader, and in which the leader puts the result down for them.
//!
//! ```text
//!   at rank 0, for each rank [parity]     flag (8), data of the rank (120)
//!   at each other rank [parity]           flag (8), result (120)
//!
//!   1, 2, 3:   data and flag ──> rank 0          0: waits for the flags, works, result and flag ──> 1, 2, 3
//! ```
//! Cost: two cache lines one after the other, for any number of ranks, and a write by rank 0 to each other rank. All ranks write at
//! the same time, and no atomic operation passes a line from rank to rank. Rank 0 may do other work between the two halves, such
//! as the same operation with the leaders of other groups.
//!
//! Contract.
//! - A rank gives, and then waits for the result. Rank 0 takes the data of all ranks, and then releases them. All ranks call the
//!   operations in the same order.
//! - Data are in a place before its flag counts up to the number of the operation, and are read after that.
//! - Operation k uses the places of parity k mod 2. A rank writes for operation k + 2 only after rank 0 has released it from k + 1, so
//!   after rank 0 has read the data of k. Rank 0 writes a result for k + 2 only after the rank has given its data for k + 2, so after
//!   it has left k. So no data are overwritten before they are read.
//!
//! As with the release-gather area ([`crate::ReleaseGather`]), operations queue.

#[cfg(all(test, loom))]
mod models;

use crate::CommView;
use crate::address_exchange::Exchanged;
use crate::outstanding::Outstanding;
use crate::shm_queue::{OperationTicket, Tickets};
use std::cell::OnceCell;
use std::rc::Rc;
use weft_fabric::{
    Fabric, FabricExt, Fault, Flag, FlagKind, Region, RemoteAddr, RemoteFlag, RemoteWrite, Sge,
};

/// Maximum number of bytes that a rank puts down.
pub const MOST: usize = PLACE - FLAG;

/// Size of a place in bytes: a pair of cache lines. It begins with a flag.
const PLACE: usize = 128;
const FLAG: usize = 8;

/// The lines of a communicator, made by the first operation that needs them.
pub(crate) struct LeaderLines<F: Fabric> {
    tickets: Tickets<F>,
    /// Contains `None` if some rank had no memory for the lines.
    made: OnceCell<Option<Box<Lines<F>>>>,
}

impl<F: Fabric> Default for LeaderLines<F> {
    fn default() -> Self {
        LeaderLines { tickets: Tickets::default(), made: OnceCell::new() }
    }
}

struct Lines<F: Fabric> {
    endpoint: Rc<weft_p2p::Endpoint<F>>,
    mine: Region,
    /// Flags of this rank's places: at rank 0 of all ranks with parity 0, then with parity 1; at other ranks by parity.
    flags: Vec<Flag>,
    /// Address of each rank's region.
    ranks: Vec<RemoteAddr>,
    posted: Outstanding<F>,
}

impl<F: Fabric> Drop for Lines<F> {
    fn drop(&mut self) {
        let fabric = self.endpoint.fabric();
        self.flags.iter().for_each(|flag| fabric.counters().release(flag.local));
        fabric.withdraw(self.mine);
    }
}

/// Places of one operation.
#[derive(Clone, Copy)]
struct OperationPlaces {
    /// Number of the operation, from 1 on.
    number: u64,
}

impl OperationPlaces {
    fn parity(self) -> usize {
        (self.number % 2) as usize
    }

    /// Returns the place at rank 0 for the data of `rank`, one of `size` ranks.
    fn of_data(self, rank: usize, size: usize) -> usize {
        self.parity() * size + rank
    }

    /// Returns the place at each other rank for the result.
    fn of_result(self) -> usize {
        self.parity()
    }
}

/// Returns the number of places with one parity at `rank`.
fn places(rank: usize, size: usize) -> usize {
    if rank == 0 { size } else { 1 }
}

/// Makes the lines. Returns `None` if some rank has no memory.
async fn make<F: Fabric>(link: &CommView<F>) -> Result<Option<Lines<F>>, Fault> {
    let (size, fabric) = (link.size(), link.endpoint.fabric());
    link.endpoint.clear_parked();
    let count = 2 * places(link.rank, size);
    let mine = match crate::share_memory(fabric, &link.members) {
        true => fabric.allocate_on_node(count * PLACE),
        // If selected by name, the algorithms also run across nodes.
        false => fabric.allocate(count * PLACE),
    };
    let mine = mine.ok();
    let flag = |mine: &Region, place| fabric.flag(mine, place * PLACE, FlagKind::Waking);
    let flags = mine.iter().flat_map(|mine| (0..count).map(move |place| flag(mine, place)));
    let flags: Vec<Flag> = flags.collect();
    let here = mine.map_or(RemoteAddr::default(), |mine| mine.remote);
    let words = [&here.words()[..], &[u64::from(mine.is_some())]].concat();
    let said = Exchanged::by_all(link, &words).await?;
    let all = (0..size).all(|rank| said.word(rank, RemoteAddr::WORDS) == 1);
    let Some(mine) = mine else { return Ok(None) };
    let endpoint = link.endpoint.clone();
    let posted = Outstanding::new(endpoint.clone());
    let ranks = (0..size).map(|rank| said.addr(rank, 0)).collect();
    let lines = Lines { endpoint, mine, flags, ranks, posted };
    Ok(all.then_some(lines))
}

/// Use of the lines by one operation.
pub(crate) struct LinesSession<'l, F: Fabric> {
    link: &'l CommView<F>,
    lines: &'l Lines<F>,
    places: OperationPlaces,
    _turn: OperationTicket<'l, F>,
}

impl<F: Fabric> LeaderLines<F> {
    /// Waits until an operation has its turn. Returns `None` on all ranks if some rank has no memory for the lines.
    pub async fn enter<'l>(
        &'l self,
        link: &'l CommView<F>,
    ) -> Result<Option<LinesSession<'l, F>>, Fault> {
        let (turn, number) = self.tickets.enter(link).await?;
        let made = match self.made.get() {
            Some(made) => made,
            None => {
                let made = make(link).await?.map(Box::new);
                self.made.get_or_init(|| made)
            }
        };
        let places = OperationPlaces { number };
        let session = |lines| LinesSession { link, lines, places, _turn: turn };
        Ok(made.as_deref().map(session))
    }
}

impl<F: Fabric> LinesSession<'_, F> {
    /// Writes `data` and the flag to the place `place` of `rank`.
    fn put(&self, rank: usize, place: usize, data: Sge) -> Result<(), Fault> {
        let at = self.lines.ranks[rank].offset((place * PLACE) as u64);
        let flag = RemoteFlag { at, waking: true }.with(self.places.number);
        let (peer, to) = (self.link.members[rank] as usize, at.offset(FLAG as u64));
        self.lines
            .posted
            .post(|fabric, done| fabric.write_flag(peer, &RemoteWrite::new(data, to, done), &flag))
    }

    /// Waits until the data of a place of this rank have arrived, and returns them. They stay until the next operation.
    async fn wait(&self, place: usize, len: usize) -> Result<Sge, Fault> {
        self.lines.endpoint.until(self.lines.flags[place].local, self.places.number).await?;
        Ok(self.lines.mine.local.part(place * PLACE + FLAG, len))
    }

    /// Puts `data` down for rank 0. Called by all other ranks.
    pub async fn give(&self, data: Sge) -> Result<(), Fault> {
        self.put(0, self.places.of_data(self.link.rank, self.link.size()), data)?;
        self.lines.posted.all_done().await
    }

    /// Waits for `len` bytes that `rank` gives. Called by rank 0.
    pub async fn take(&self, rank: usize, len: usize) -> Result<Sge, Fault> {
        self.wait(self.places.of_data(rank, self.link.size()), len).await
    }

    /// Puts `result` down for all other ranks, which ends the operation. Called by rank 0.
    pub async fn release(&self, result: Sge) -> Result<(), Fault> {
        for rank in 1..self.link.size() {
            self.put(rank, self.places.of_result(), result)?;
        }
        self.lines.posted.all_done().await
    }

    /// Waits for the result, and copies it. Called by all other ranks.
    pub async fn receive(&self, result: Sge) -> Result<(), Fault> {
        let found = self.wait(self.places.of_result(), result.len()).await?;
        result.copy_from(found);
        Ok(())
    }
}
