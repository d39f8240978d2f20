//! The memory of the central algorithms: a communicator's release-gather area.
//!
//! ```text
//!   at rank 0      arrivals (64) | contributions [parity][rank], 64 bytes each
//!   at each rank   flag (64)     | result [parity], 64 bytes each | of rank 0: how far ranks are from each other
//! ```
//! Two ranks need no central memory, because each rank writes data and flag at once to a line of the other rank.
//! ```text
//!   at each of two   inbox [parity]: flag (8), data of the other rank (120)
//! ```
//! The first operation that needs the area makes it: every rank allocates its part, and one allgather distributes the addresses.
//!
//! Operation k uses the places of parity k mod 2. These places are written again in operation k + 2, which a rank enters only after
//! it has left k + 1. A rank leaves k + 1 only after all ranks have arrived at k + 1. Each rank arrives at k + 1 only after it has
//! read all data of k that it needs. So no data are overwritten before they are read, and no reuse messages are needed (the
//! argument of Kini 2003, section 5.3.3). Because a rank leaves an operation before it enters the next operation, the count of
//! arrivals also shows the last arrival. For this reason nonblocking operations are queued.

use crate::CommView;
use crate::address_exchange::{self, Exchanged, no_memory};
use crate::costs;
use crate::distance;
use crate::members::{all_reach_memory, share_memory};
use crate::outstanding::Outstanding;
use crate::selection_key::Near;
use crate::shm_queue::{OperationTicket, Tickets};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use weft_fabric::{
    CacheDistance, Completion, CopyModel, Fabric, FabricExt, Fault, FetchAdd, Flag, FlagKind,
    Region, RemoteAddr, RemoteFlag, RemoteRead, RemoteWrite, Sge,
};

/// Maximum number of bytes that one rank may contribute to an operation.
pub const SLOT: usize = 64;

/// Maximum number of bytes that one of two ranks may send to the other, in the same pair of cache lines as the flag.
pub(crate) const PAIR_MOST: usize = 120;
/// Offset, in rank 0's region, of the word with the distance between the ranks ([`crate::distance`]).
const DISTANCE: usize = 3 * SLOT;
/// Offset of the two inboxes in a communicator of two ranks.
const INBOX: usize = 4 * SLOT;
/// Number of bytes from one inbox to the next.
const INBOX_SIZE: usize = 8 + PAIR_MOST;

/// A communicator's area, made by the first operation that needs it.
pub struct Area<F: Fabric> {
    /// The memory, once it is made. Boxed, because most communicators of a simulated world have no such memory.
    made: OnceCell<Box<AreaMemory<F>>>,
    tickets: Tickets<F>,
    in_turn: Cell<bool>,
    /// True if the ranks belong to jobs whose models of copies differ.
    unlike_copies: Cell<bool>,
}

impl<F: Fabric> Default for Area<F> {
    fn default() -> Self {
        Area {
            made: OnceCell::new(),
            tickets: Tickets::default(),
            in_turn: Cell::new(false),
            unlike_copies: Cell::new(false),
        }
    }
}

impl<F: Fabric> Area<F> {
    /// Declares that each operation begins only after the previous operation has ended, as blocking operations do.
    pub(crate) fn forbid_overlap(&self) {
        self.in_turn.set(true);
    }

    /// Allows operations to overlap, which is the default.
    pub fn allow_overlap(&self) {
        self.in_turn.set(false);
    }

    /// Makes the ranks decide by [`CopyModel::GENERIC`], because they belong to jobs whose models of copies differ. All
    /// ranks must call this function before the first operation.
    pub fn set_unlike_copies(&self) {
        self.unlike_copies.set(true);
    }

    pub(crate) fn has_unlike_copies(&self) -> bool {
        self.unlike_copies.get()
    }

    pub(crate) fn is_in_turn(&self) -> bool {
        self.in_turn.get()
    }

    /// Returns the facts that all ranks know in common right before `rank` begins the next operation, without asking the other
    /// ranks. Before the first operation, or if operations may overlap, nothing is known.
    pub fn near(&self, rank: usize) -> Near {
        match self.made.get() {
            Some(made) if self.is_in_turn() => {
                Near { distance: self.distance_at(made, rank), ..made.near }
            }
            _ => Near::default(),
        }
    }

    /// Returns true if all ranks can read each other's private memory. Returns `None` where [`Area::near`] knows nothing.
    pub(crate) fn known_direct(&self) -> Option<bool> {
        self.made.get().filter(|_| self.is_in_turn()).and_then(|made| made.near.direct)
    }

    /// Tests whether all ranks can read each other's private memory. All ranks get the same answer.
    pub(crate) async fn direct(&self, link: &CommView<F>) -> Result<bool, Fault> {
        Ok(link.size() > 1 && self.made(link).await?.near.direct == Some(true))
    }

    /// Returns the distance between the ranks, by the rules of [`crate::distance`]. All ranks get the same answer if they ask right
    /// before they enter the area for the operation that depends on the distance.
    pub(crate) fn distance(&self, link: &CommView<F>) -> CacheDistance {
        match self.made.get() {
            Some(made) => self.distance_at(made, link.rank),
            None => CacheDistance::Shared,
        }
    }

    fn distance_at(&self, made: &AreaMemory<F>, rank: usize) -> CacheDistance {
        let (true, Some(word)) = (self.is_in_turn(), made.distance) else {
            return CacheDistance::Shared;
        };
        let (next, said) = (
            self.tickets.next(),
            distance::DistanceWord::from_word(address_exchange::read(word, 0)),
        );
        let new =
            if rank == 0 { said.change(next, made.fabric().copies().is_found_far()) } else { None };
        if let Some(new) = new {
            address_exchange::write([new.word()], word);
        }
        if new.unwrap_or(said).is_far(next) { CacheDistance::Apart } else { CacheDistance::Shared }
    }

    /// Returns the size in bytes of a part of a payload that two ranks exchange in alternating parts ([`costs::part`]).
    pub(crate) fn part(&self, link: &CommView<F>) -> usize {
        costs::part(self.model(link.endpoint.fabric()), self.distance(link))
    }

    /// Returns the model of copies by which the ranks decide. All ranks have the same model.
    pub fn model<'f>(&self, fabric: &'f F) -> &'f CopyModel {
        match self.unlike_copies.get() {
            true => &CopyModel::GENERIC,
            false => fabric.copies().model(),
        }
    }

    /// Returns the area, and makes it first if necessary. No other operation may run at the same time.
    pub(crate) async fn made(&self, link: &CommView<F>) -> Result<&AreaMemory<F>, Fault> {
        if self.made.get().is_none() {
            self.enter_for(link, 0).await?;
        }
        Ok(self.made.get().expect("made by whoever has entered"))
    }
}

/// Exclusive use of the area by one operation. The next operation may enter when the session is dropped.
pub struct AreaSession<'b, F: Fabric> {
    made: &'b AreaMemory<F>,
    _turn: OperationTicket<'b, F>,
}

impl<F: Fabric> std::ops::Deref for AreaSession<'_, F> {
    type Target = AreaMemory<F>;

    fn deref(&self) -> &AreaMemory<F> {
        self.made
    }
}

/// The memory of an area.
pub struct AreaMemory<F: Fabric> {
    endpoint: Rc<weft_p2p::Endpoint<F>>,
    mine: Region,
    /// The arrivals and contributions; only rank 0 has them.
    central: Option<Region>,
    arrivals: RemoteAddr,
    ranks: Vec<RemoteAddr>,
    flag: Flag,
    /// Flags of the two inboxes, by parity, in a communicator of two ranks.
    inboxes: Option<[Flag; 2]>,
    size: usize,
    posted: Outstanding<F>,
    /// Facts that the ranks have exchanged, except their distance.
    near: Near,
    /// Rank 0's word with the distance, if it is mapped in this process.
    distance: Option<Sge>,
}

impl<F: Fabric> Drop for AreaMemory<F> {
    fn drop(&mut self) {
        let fabric = self.endpoint.fabric();
        let flags = self.inboxes.iter().flatten().chain([&self.flag]);
        flags.for_each(|flag| fabric.counters().release(flag.local));
        fabric.withdraw(self.mine);
        if let Some(central) = self.central {
            fabric.withdraw(central);
        }
    }
}

impl<F: Fabric> Area<F> {
    /// Returns the area (made first if necessary) and the number of the operation, counted from 1. Waits until this
    /// rank has left all operations that it began before.
    pub async fn enter(&self, link: &CommView<F>) -> Result<(AreaSession<'_, F>, u64), Fault> {
        match self.try_enter(link) {
            Some(entered) => Ok(entered),
            None => self.enter_for(link, 1).await,
        }
    }

    /// Enters like [`Area::enter`], but only if the area exists and no wait is needed. Otherwise does nothing and returns `None`. A
    /// blocking operation needs no wait, unless it is the first operation on the communicator.
    #[inline]
    pub fn try_enter(&self, link: &CommView<F>) -> Option<(AreaSession<'_, F>, u64)> {
        let made = self.made.get()?;
        let (turn, epoch) = self.tickets.try_enter(link, 1)?;
        Some((AreaSession { made, _turn: turn }, epoch))
    }

    /// Enters like [`Area::enter`], for an operation with several barriers. Each barrier of the operation has a number and counts
    /// as an operation. Returns the number of the first barrier.
    pub async fn enter_for(
        &self,
        link: &CommView<F>,
        barriers: u64,
    ) -> Result<(AreaSession<'_, F>, u64), Fault> {
        let (turn, epoch) = self.tickets.enter_for(link, barriers).await?;
        let made = match self.made.get() {
            Some(made) => made,
            None => {
                let made = AreaMemory::make(link, epoch - 1).await?;
                self.made.get_or_init(|| Box::new(made))
            }
        };
        Ok((AreaSession { made, _turn: turn }, epoch))
    }
}

impl<F: Fabric> AreaMemory<F> {
    /// Makes the memory. `before` is the number of barriers that were counted in earlier operations, in which some rank got no
    /// memory.
    async fn make(link: &CommView<F>, before: u64) -> Result<AreaMemory<F>, Fault> {
        let (size, fabric) = (link.size(), link.endpoint.fabric());
        link.endpoint.clear_parked();
        // If selected by name, the central algorithms also run across nodes.
        let near = share_memory(fabric, &link.members);
        let allocate = |len| if near { fabric.allocate_on_node(len) } else { fabric.allocate(len) };
        let inboxes = if size == 2 { 2 * INBOX_SIZE } else { 0 };
        let mine = allocate(INBOX + inboxes).ok();
        let central = match link.rank {
            0 => allocate(SLOT * (1 + 2 * size)).ok(),
            _ => None,
        };
        let has = mine.is_some() && (link.rank > 0 || central.is_some());
        if let Some(central) = &central {
            central.local.fill(&(before * size as u64).to_ne_bytes());
        }
        let words =
            |region: Option<Region>| region.map_or(RemoteAddr::default(), |r| r.remote).words();
        let direct = all_reach_memory(fabric, &link.members);
        let each = link.endpoint.ranks_each();
        let facts = [u64::from(has), u64::from(direct), each.into()];
        let facts = [&words(mine)[..], &words(central), &facts].concat();
        let said = Exchanged::by_all(link, &facts).await?;
        let fact = |rank: usize, i: usize| said.word(rank, 2 * RemoteAddr::WORDS + i);
        let all = (0..size).all(|rank| fact(rank, 0) == 1);
        let near = Near {
            direct: Some((0..size).all(|rank| fact(rank, 1) == 1)),
            distance: CacheDistance::Shared,
            each: (0..size).map(|rank| fact(rank, 2) as u32).max().unwrap_or(1),
        };
        let Some(mine) = mine.filter(|_| all) else {
            mine.into_iter().chain(central).for_each(|region| fabric.withdraw(region));
            return Err(no_memory());
        };
        let ranks: Vec<_> = (0..size).map(|rank| said.addr(rank, 0)).collect();
        let distance = fabric.mapped(link.members[0] as usize, ranks[0].offset(DISTANCE as u64), 8);
        let arrivals = said.addr(0, RemoteAddr::WORDS);
        let flag = fabric.flag(&mine, 0, FlagKind::Waking);
        let inbox = |parity| fabric.flag(&mine, INBOX + parity * INBOX_SIZE, FlagKind::Waking);
        let inboxes = (size == 2).then(|| [inbox(0), inbox(1)]);
        let endpoint = link.endpoint.clone();
        let posted = Outstanding::new(endpoint.clone());
        Ok(AreaMemory {
            endpoint,
            mine,
            central,
            arrivals,
            ranks,
            flag,
            inboxes,
            size,
            posted,
            near,
            distance,
        })
    }

    pub(crate) fn fabric(&self) -> &F {
        self.endpoint.fabric()
    }

    /// Posts an operation, and waits until this operation and all operations posted before are complete.
    pub(crate) async fn finish(
        &self,
        post: impl FnOnce(&F, Completion) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.posted.finish(post).await
    }

    /// Runs a barrier: no rank continues before all ranks have arrived.
    pub async fn barrier(&self, link: &CommView<F>, epoch: u64) -> Result<(), Fault> {
        if self.is_pair() {
            let flag = self.say(link, epoch, Sge::EMPTY)?;
            return self.hear(flag, epoch).await;
        }
        match self.arrive(link, epoch).await? {
            true => self.release(link, epoch, Sge::EMPTY).await,
            false => self.await_release(epoch, Sge::EMPTY).await,
        }
    }

    /// Waits until the message of the other of two ranks has arrived. That rank sends the message by [`AreaMemory::say`].
    pub async fn hear(&self, flag: Flag, epoch: u64) -> Result<(), Fault> {
        self.endpoint.until(flag.local, epoch).await
    }

    /// Returns true if there are exactly two ranks, which use [`AreaMemory::swap`].
    pub fn is_pair(&self) -> bool {
        self.inboxes.is_some()
    }

    /// Sends at most 120 bytes from one of two ranks to the other. The other rank's data have arrived once the returned flag is
    /// `epoch`. `data` must not change before the flag has this value and all posts are [complete](Outstanding::all_done).
    #[inline]
    pub fn say(&self, link: &CommView<F>, epoch: u64, data: Sge) -> Result<Flag, Fault> {
        let parity = (epoch % 2) as usize;
        let flag = self.inboxes.as_ref().expect("two ranks")[parity];
        let (peer, other) = (link.members[1 - link.rank] as usize, self.ranks[1 - link.rank]);
        let at = other.offset((INBOX + parity * INBOX_SIZE) as u64);
        let (to, name) = (at.offset(8), RemoteFlag { at, waking: true });
        self.write_flag(peer, data, to, name, epoch)?;
        Ok(flag)
    }

    #[inline]
    fn write_flag(
        &self,
        peer: usize,
        data: Sge,
        to: RemoteAddr,
        flag: RemoteFlag,
        value: u64,
    ) -> Result<(), Fault> {
        match data.is_empty() {
            // If there are no data, the write reads no memory of this rank, so no completion is needed.
            true => {
                self.fabric().write_flag(peer, &RemoteWrite::new(data, to, None), &flag.with(value))
            }
            false => self.posted.post(|f, done| {
                f.write_flag(peer, &RemoteWrite::new(data, to, done), &flag.with(value))
            }),
        }
    }

    /// Exchanges at most 120 bytes between two ranks. Returns the other rank's data, of the same length, which stay
    /// valid until the next operation.
    pub async fn swap(&self, link: &CommView<F>, epoch: u64, data: Sge) -> Result<Sge, Fault> {
        let flag = self.say(link, epoch, data)?;
        self.endpoint.until(flag.local, epoch).await?;
        if !data.is_empty() {
            self.posted.all_done().await?;
        }
        let parity = (epoch % 2) as usize;
        Ok(self.mine.local.part(INBOX + parity * INBOX_SIZE + 8, data.len()))
    }

    /// Returns the address to which `rank` writes its contribution to operation `epoch`.
    fn contribution(&self, epoch: u64, rank: usize) -> RemoteAddr {
        let place = 1 + (epoch % 2) as usize * self.size + rank;
        self.arrivals.offset((place * SLOT) as u64)
    }

    /// Returns the address at which `rank` finds the result of operation `epoch`.
    fn result_at(&self, epoch: u64, rank: usize) -> RemoteAddr {
        self.ranks[rank].offset(SLOT as u64 * (1 + epoch % 2))
    }

    /// Writes this rank's contribution.
    pub async fn contribute(&self, link: &CommView<F>, epoch: u64, data: Sge) -> Result<(), Fault> {
        let (leader, to) = (link.members[0] as usize, self.contribution(epoch, link.rank));
        self.finish(|fabric, done| fabric.write(leader, &RemoteWrite::new(data, to, done))).await
    }

    /// Counts this rank as arrived. Returns true at the last rank to arrive.
    pub async fn arrive(&self, link: &CommView<F>, epoch: u64) -> Result<bool, Fault> {
        let before = link.stage(8);
        let (leader, result) = (link.members[0] as usize, before.sge());
        self.finish(|fabric, done| {
            fabric.fetch_add(leader, &FetchAdd { target: self.arrivals, operand: 1, result, done })
        })
        .await?;
        Ok(address_exchange::read(before.sge(), 0) + 1 == epoch * self.size as u64)
    }

    /// Ends an operation early on all ranks. The operation has numbers for `barriers` barriers, but only one or two take place, and
    /// the first of these is `epoch`. Places alternate, so the number of skipped barriers is even. Otherwise the next write could
    /// go to a place where ranks still read the last message or still wait for it.
    pub async fn end_early(
        &self,
        link: &CommView<F>,
        epoch: u64,
        barriers: u64,
    ) -> Result<(), Fault> {
        let held = if barriers == 0 { 0 } else { 2 - barriers % 2 };
        for barrier in epoch..epoch + held {
            self.barrier(link, barrier).await?;
        }
        self.skip(link, barriers - held).await
    }

    /// Counts `barriers` barriers as complete, although they do not take place. All ranks do the same.
    async fn skip(&self, link: &CommView<F>, barriers: u64) -> Result<(), Fault> {
        if link.rank > 0 || barriers == 0 {
            return Ok(());
        }
        let (me, count, before) =
            (link.members[0] as usize, barriers * self.size as u64, link.stage(8));
        let result = before.sge();
        self.finish(|fabric, done| {
            fabric.fetch_add(me, &FetchAdd { target: self.arrivals, operand: count, result, done })
        })
        .await
    }

    /// Reads all contributions, `SLOT` bytes each, in rank order.
    pub async fn collect(&self, link: &CommView<F>, epoch: u64, into: Sge) -> Result<(), Fault> {
        let (leader, from) = (link.members[0] as usize, self.contribution(epoch, 0));
        self.finish(|fabric, done| fabric.read(leader, &RemoteRead::new(into, from, done))).await
    }

    /// Releases all other ranks, and sends them the result. On return, the memory of the result may be reused.
    pub async fn release(&self, link: &CommView<F>, epoch: u64, result: Sge) -> Result<(), Fault> {
        for rank in (0..self.size).filter(|&r| r != link.rank) {
            let flag = RemoteFlag { at: self.ranks[rank], waking: true };
            let to = self.result_at(epoch, rank);
            let peer = link.members[rank] as usize;
            self.write_flag(peer, result, to, flag, epoch)?;
        }
        self.posted.all_done().await
    }

    /// Waits for the release, and copies the result.
    pub async fn await_release(&self, epoch: u64, result: Sge) -> Result<(), Fault> {
        self.endpoint.until(self.flag.local, epoch).await?;
        let at = SLOT * (1 + (epoch % 2) as usize);
        result.copy_from(self.mine.local.part(at, result.len()));
        Ok(())
    }
}
