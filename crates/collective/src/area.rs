//! The memory of the central algorithms: a communicator's release-gather area.
//!
//! ```text
//!   at rank 0      arrivals (64) | contributions [parity][rank], 64 bytes each
//!   at each rank   flag (64)     | result [parity], 64 bytes each | of rank 0: how far ranks are from each other
//! ```
//! Two ranks need no centre: each writes to a line of the other, data and flag at once.
//! ```text
//!   at each of two   inbox [parity]: flag (8), what the other says (120)
//! ```
//! Made in the first operation that needs it: every rank allocates its part and one allgather brings
//! the addresses round.
//!
//! Operation k uses parity k mod 2. Its places are written again in operation k + 2, which a rank
//! enters only after it has left k + 1; to leave k + 1 it heard that all ranks had come to k + 1,
//! and each had read all it needed of k before it came. So nothing is overwritten unread, and no
//! reuse messages are needed (the argument of Kini 2003, section 5.3.3). That a rank leaves one before
//! it enters the next also tells whose arrival is the last; nonblocking operations queue for it.

use crate::CommView;
use crate::address_exchange::{self, Exchanged, no_memory};
use crate::costs;
use crate::distance;
use crate::members::share_memory;
use crate::outstanding::Outstanding;
use crate::selection_key::Near;
use crate::shm_queue::{OperationTicket, Tickets};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use weft_fabric::{
    CacheDistance, Completion, CopyModel, Fabric, FabricExt, Fault, Flag, Region, RemoteAddr,
    RemoteFlag, Sge,
};

/// Bytes that one rank may contribute.
pub const SLOT: usize = 64;

/// Bytes that one of two ranks may say to the other, beside the flag in the same line pair.
pub(crate) const PAIR_MOST: usize = 120;
/// Where rank 0's word of how far ranks are from each other is, at its place for the flag.
const DISTANCE: usize = 3 * SLOT;
/// Where the inboxes of two ranks begin; and from one to the next.
const INBOX: usize = 4 * SLOT;
const INBOX_SIZE: usize = 8 + PAIR_MOST;

/// A communicator's area, or the place for it.
pub struct Area<F: Fabric> {
    /// Boxed: most communicators of a simulated world have none.
    made: OnceCell<Box<AreaMemory<F>>>,
    tickets: Tickets<F>,
    in_turn: Cell<bool>,
}

impl<F: Fabric> Default for Area<F> {
    fn default() -> Self {
        Area { made: OnceCell::new(), tickets: Tickets::default(), in_turn: Cell::new(false) }
    }
}

impl<F: Fabric> Area<F> {
    /// Says whether each operation begins after the end of the one before, as blocking ones do; unless said, not so.
    pub fn set_in_turn(&self, in_turn: bool) {
        self.in_turn.set(in_turn);
    }

    pub(crate) fn is_in_turn(&self) -> bool {
        self.in_turn.get()
    }

    /// What all ranks know alike right before `rank` begins the next operation, as far as that can be said without asking
    /// the others: before the first operation, and where operations do not begin one after the other, nothing.
    pub fn near(&self, rank: usize) -> Near {
        match self.made.get() {
            Some(made) if self.is_in_turn() => {
                Near { distance: self.distance_at(made, rank), ..made.near }
            }
            _ => Near::default(),
        }
    }

    /// Whether all ranks can read each other's own memory. All find the same.
    pub(crate) async fn direct(&self, link: &CommView<F>) -> Result<bool, Fault> {
        Ok(self.made(link).await?.near.direct == Some(true))
    }

    /// How far ranks are from each other, as [`crate::distance`] has it. All find the same, right before they enter the
    /// area for the operation that depends on it.
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
            address_exchange::write(&[new.word()], word);
        }
        if new.unwrap_or(said).is_far(next) { CacheDistance::Apart } else { CacheDistance::Shared }
    }

    /// Bytes of a part of what two ranks bring each other in turns.
    pub(crate) fn part(&self, link: &CommView<F>) -> usize {
        costs::part(self.model(link), self.distance(link))
    }

    /// All ranks have the same.
    pub(crate) fn model<'l>(&self, link: &'l CommView<F>) -> &'l CopyModel {
        link.endpoint.fabric().copies().model()
    }

    /// The area, made now if need be, by an operation that no other runs beside.
    pub(crate) async fn made(&self, link: &CommView<F>) -> Result<&AreaMemory<F>, Fault> {
        if self.made.get().is_none() {
            self.enter_for(link, 0).await?;
        }
        Ok(self.made.get().expect("made by whoever has entered"))
    }
}

/// The area while one operation has it; dropping it lets the next one in.
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

/// The area once it is made.
pub struct AreaMemory<F: Fabric> {
    endpoint: Rc<weft_p2p::Endpoint<F>>,
    mine: Region,
    /// At rank 0 alone.
    central: Option<Region>,
    arrivals: RemoteAddr,
    ranks: Vec<RemoteAddr>,
    flag: Flag,
    /// Of the inboxes, by parity, where there are two ranks.
    inboxes: Option<[Flag; 2]>,
    size: usize,
    posted: Outstanding<F>,
    /// What the ranks have told each other, but for how far they are.
    near: Near,
    /// Rank 0's word of that, where it is seen here.
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
    /// The area, made now if need be, and the number of the operation (from 1 on). Waits until this
    /// rank has left all operations that it began before.
    pub async fn enter(&self, link: &CommView<F>) -> Result<(AreaSession<'_, F>, u64), Fault> {
        match self.try_enter(link) {
            Some(entered) => Ok(entered),
            None => self.enter_for(link, 1).await,
        }
    }

    /// [`Area::enter`] where there is nothing to make and to wait for: a blocking operation after the first. Else
    /// nothing is done.
    #[inline]
    pub fn try_enter(&self, link: &CommView<F>) -> Option<(AreaSession<'_, F>, u64)> {
        let made = self.made.get()?;
        let (turn, epoch) = self.tickets.try_enter(link, 1)?;
        Some((AreaSession { made, _turn: turn }, epoch))
    }

    /// The same for an operation in which the ranks meet several times: each barrier has a number, and
    /// counts as an operation. Returns the first.
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
    /// `before`: barriers that had numbers already, in operations for which no rank got memory.
    async fn make(link: &CommView<F>, before: u64) -> Result<AreaMemory<F>, Fault> {
        let (size, fabric) = (link.size(), link.endpoint.fabric());
        link.endpoint.clear_parked();
        // By name, the central algorithms can be had across nodes, too.
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
        let reaches = |&peer: &u32| fabric.capabilities(peer as usize).direct;
        let direct = link.members.iter().all(reaches);
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
        let flag = fabric.flag(&mine, 0, true);
        let inbox = |parity| fabric.flag(&mine, INBOX + parity * INBOX_SIZE, true);
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

    /// Posts an operation and waits for it and all before.
    pub(crate) async fn finish(
        &self,
        post: impl FnOnce(&F, Completion) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.posted.finish(post).await
    }

    /// Everybody comes, then everybody goes on.
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

    /// What the other of two ranks [says](Memory::say) has come.
    pub async fn hear(&self, flag: Flag, epoch: u64) -> Result<(), Fault> {
        self.endpoint.until(flag.local, epoch).await
    }

    /// Whether there are two ranks, which [`AreaMemory::swap`].
    pub fn is_pair(&self) -> bool {
        self.inboxes.is_some()
    }

    /// One of two ranks says at most 120 bytes. The other one has spoken once the flag is `epoch`; until then, `data`
    /// stay as they are, and what was posted must be [over](Posted::all_done) before they change.
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
            // Nobody waits for what reads no memory.
            true => self.fabric().write_flag(peer, data, to, flag, value, None),
            false => self.posted.post(|f, done| f.write_flag(peer, data, to, flag, value, done)),
        }
    }

    /// One of two ranks says at most 120 bytes, and returns what the other says: as long an element, which
    /// holds until the next operation.
    pub async fn swap(&self, link: &CommView<F>, epoch: u64, data: Sge) -> Result<Sge, Fault> {
        let flag = self.say(link, epoch, data)?;
        self.endpoint.until(flag.local, epoch).await?;
        if !data.is_empty() {
            self.posted.all_done().await?;
        }
        let parity = (epoch % 2) as usize;
        Ok(self.mine.local.part(INBOX + parity * INBOX_SIZE + 8, data.len()))
    }

    /// Where `rank` contributes to operation `epoch`.
    fn contribution(&self, epoch: u64, rank: usize) -> RemoteAddr {
        let place = 1 + (epoch % 2) as usize * self.size + rank;
        self.arrivals.offset((place * SLOT) as u64)
    }

    /// Where `rank` finds the result of operation `epoch`.
    fn result_at(&self, epoch: u64, rank: usize) -> RemoteAddr {
        self.ranks[rank].offset(SLOT as u64 * (1 + epoch % 2))
    }

    /// Writes this rank's contribution.
    pub async fn contribute(&self, link: &CommView<F>, epoch: u64, data: Sge) -> Result<(), Fault> {
        let (leader, to) = (link.members[0] as usize, self.contribution(epoch, link.rank));
        self.finish(|fabric, done| fabric.write(leader, data, to, done)).await
    }

    /// Counts this rank as arrived; true for the last one.
    pub async fn arrive(&self, link: &CommView<F>, epoch: u64) -> Result<bool, Fault> {
        let before = link.stage(8);
        let (leader, result) = (link.members[0] as usize, before.sge());
        self.finish(|fabric, done| fabric.fetch_add(leader, self.arrivals, 1, result, done))
            .await?;
        let mut bytes = [0; 8];
        before.sge().read(&mut bytes);
        Ok(u64::from_ne_bytes(bytes) + 1 == epoch * self.size as u64)
    }

    /// Ends an operation early, on all ranks alike: one or two barriers, the first of which is `epoch`, instead of so many that
    /// had numbers. An even number is left out, since places alternate: what is written next is not where others may still
    /// read, or wait for, what was said last.
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

    /// Counts barriers as over that had numbers and do not take place, on all ranks alike.
    async fn skip(&self, link: &CommView<F>, barriers: u64) -> Result<(), Fault> {
        if link.rank > 0 || barriers == 0 {
            return Ok(());
        }
        let (me, count, before) =
            (link.members[0] as usize, barriers * self.size as u64, link.stage(8));
        let result = before.sge();
        self.finish(|fabric, done| fabric.fetch_add(me, self.arrivals, count, result, done)).await
    }

    /// Reads all contributions, `SLOT` bytes each, in the order of ranks.
    pub async fn collect(&self, link: &CommView<F>, epoch: u64, into: Sge) -> Result<(), Fault> {
        let (leader, from) = (link.members[0] as usize, self.contribution(epoch, 0));
        self.finish(|fabric, done| fabric.read(leader, into, from, done)).await
    }

    /// Lets all other ranks go, with the result, whose memory may then be used again.
    pub async fn release(&self, link: &CommView<F>, epoch: u64, result: Sge) -> Result<(), Fault> {
        for rank in (0..self.size).filter(|&r| r != link.rank) {
            let flag = RemoteFlag { at: self.ranks[rank], waking: true };
            let to = self.result_at(epoch, rank);
            let peer = link.members[rank] as usize;
            self.write_flag(peer, result, to, flag, epoch)?;
        }
        self.posted.all_done().await
    }

    /// Waits to be let go, and copies the result.
    pub async fn await_release(&self, epoch: u64, result: Sge) -> Result<(), Fault> {
        self.endpoint.until(self.flag.local, epoch).await?;
        let at = SLOT * (1 + (epoch % 2) as usize);
        result.copy_from(self.mine.local.part(at, result.len()));
        Ok(())
    }
}
