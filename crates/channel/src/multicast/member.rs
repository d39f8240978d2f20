//! Interface of a group for algorithms: send, receive, close.

use super::datagram::{HEADER, MOST_24, Title};
use super::group::{GroupState, MulticastGroup};
use super::receives::PendingReceive;
use super::table::Multicasts;
use super::waits::Awaited;
use std::cell::RefCell;
use std::rc::Rc;
use weft_fabric::{Counter, CounterTarget, Fabric, FabricExt, Fault, GroupId, Sge, Work};

/// Host of a member: the layer above, which drives progress while an operation waits, and hands over arrived messages.
pub trait ProgressHost {
    /// The network that carries the datagrams and the messages that repair them.
    type Fabric: Fabric;

    /// Returns the fabric on which a member posts its sends.
    fn fabric(&self) -> &Self::Fabric;

    /// Returns all groups of this process, which share counts and the store for early datagrams.
    fn multicasts(&self) -> &Multicasts;

    /// Waits until `counter >= target`.
    fn until(&self, counter: Counter, target: u64) -> impl Future<Output = Result<(), Fault>>;
}

/// Way in which the root learns that no member can ask for a multicast any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseMode {
    /// By a later call of [`MulticastMember::heard`]. The caller ensures that this call follows soon.
    Heard,
    /// By acknowledgements. The window bounds the number of multicasts that the root may be ahead.
    Acknowledged,
    /// By an acknowledgement of this multicast from each other member, for which [`MulticastMember::send`] waits. Members do not
    /// ask: the root repeats a multicast that is not acknowledged in time.
    EachAcknowledged,
}

/// Membership of this process in a group.
pub struct MulticastMember<H: ProgressHost> {
    host: Rc<H>,
    group: Rc<MulticastGroup>,
}

impl<H: ProgressHost> MulticastMember<H> {
    /// Joins the group `id` of `members` (ranks in the fabric). All members must call this function with the same arguments, except
    /// for `me`, which is the place of the caller among the members. `context` is a number that the job uses only once. Groups may
    /// share an `id`: then each group also receives the datagrams of the other groups, and drops them. Datagrams sent before the
    /// call may be missed, and are repaired like lost datagrams.
    ///
    /// Errors: `Unsupported` if the fabric has no multicast, `Corrupt` if a peer
    /// has sent an impossible message before.
    ///
    /// # Panics
    /// If `members[me]` is not this process's rank, or `context` belongs to an open group.
    pub fn open(
        host: &Rc<H>,
        id: GroupId,
        context: u64,
        members: Rc<[u32]>,
        me: usize,
    ) -> Result<MulticastMember<H>, Fault> {
        let fabric = host.fabric();
        assert_eq!(members[me] as usize, fabric.rank(), "own place in a multicast group");
        assert!(!host.multicasts().has(context), "a multicast group is opened twice");
        // A repair must fit a message.
        let longest = members.iter().map(|&peer| {
            let able = fabric.capabilities(peer as usize);
            able.multicast_max.min(able.send_max)
        });
        let longest = longest.min().unwrap_or(0);
        if longest <= HEADER {
            return Err(Fault::unsupported(fabric.rank(), "multicast"));
        }
        let group = Rc::new(MulticastGroup {
            id,
            context,
            members,
            me,
            unit: (longest - HEADER).min(MOST_24 as usize) as u32,
            moved: fabric.counters().allocate(),
            state: RefCell::new(GroupState::default()),
            #[cfg(test)]
            planted: std::cell::Cell::default(),
        });
        host.multicasts()
            .add(fabric, &group)
            .map_err(|what| Fault::corrupt(fabric.rank(), what))?;
        Ok(MulticastMember { host: host.clone(), group })
    }

    /// Returns the maximum payload of one datagram, in bytes.
    pub fn unit(&self) -> usize {
        self.group.unit as usize
    }

    /// Returns the number of members.
    pub fn size(&self) -> usize {
        self.group.members.len()
    }

    /// Returns this member's place in the group.
    pub fn place(&self) -> usize {
        self.group.me
    }

    /// Returns the number of multicasts that are kept for members that may ask for them.
    pub fn kept(&self) -> usize {
        self.group.state.borrow().kept.len()
    }

    #[cfg(test)]
    pub(super) fn plant(&self, planted: super::tests::Planted) {
        self.group.planted.set(planted);
    }

    /// Returns the first number of the next operation, which makes `count` multicasts. Every member calls this function once per
    /// operation, in the same order, before any other call of that operation. Every member either sends or receives each of the
    /// numbers.
    pub fn numbers(&self, count: u64) -> u64 {
        self.group.state.borrow_mut().receives.numbers(count)
    }

    /// Multicasts `data` as `number`. The data have been copied when the future is complete. The first poll completes the future,
    /// unless the window is full or `ends` is [`ReleaseMode::EachAcknowledged`].
    ///
    /// Beyond [`MulticastMember::unit`] bytes the multicast takes several datagrams, sent without a pause. Datagrams for which
    /// receivers have no room are lost and repaired, so long payloads are better sent as several numbers.
    ///
    /// Errors: [`weft_fabric::FaultCause::Unsupported`] beyond 2^24 datagrams or 4 GiB; faults of the fabric.
    pub async fn send(&self, number: u64, data: Sge, ends: ReleaseMode) -> Result<(), Fault> {
        let MulticastMember { host, group } = self;
        let fabric = host.fabric();
        let segments = data.len().div_ceil(group.unit as usize);
        if data.len() > u32::MAX as usize || segments > MOST_24 as usize {
            let what = "multicast so many bytes";
            return Err(Fault::unsupported(fabric.rank(), what));
        }
        let (window, bytes) = {
            let limits = host.multicasts().shared.borrow().limits;
            (limits.window, limits.kept)
        };
        if ends != ReleaseMode::Heard {
            self.until_state(|state| !state.kept.is_full(window, bytes)).await?;
        }
        let others = group.members.len() - 1;
        {
            let shared = &mut *host.multicasts().shared.borrow_mut();
            let state = &mut *group.state.borrow_mut();
            debug_assert!(state.receives.is_open(number), "number {number} is not open");
            let marked = match ends {
                ReleaseMode::Heard => false,
                ReleaseMode::Acknowledged => state.kept.marks(data.len(), window, bytes),
                ReleaseMode::EachAcknowledged => true,
            };
            #[cfg(test)]
            group.planted.get().before_send(&mut state.kept, number);
            if others > 0 {
                let title = Title {
                    context: group.context,
                    number,
                    root: group.me as u32,
                    len: data.len() as u32,
                    unit: group.unit,
                    segment: 0,
                    marked,
                    again: false,
                };
                let others = (ends != ReleaseMode::Heard).then_some(others);
                let entry = state.kept.keep(title, data, others, &shared.pool);
                fabric.charge(Work::Copy(data.len()));
                group.spread(fabric, entry, shared)?;
            }
        }
        group.over(fabric, number, &mut host.multicasts().shared.borrow_mut());
        match ends {
            ReleaseMode::EachAcknowledged if others > 0 => self.all_acknowledge(number).await,
            _ => Ok(()),
        }
    }

    /// Waits until all other members have acknowledged `number`. Repeats the multicast for members that have not acknowledged it in
    /// time.
    async fn all_acknowledge(&self, number: u64) -> Result<(), Fault> {
        let MulticastMember { host, group } = self;
        let (fabric, table) = (host.fabric(), host.multicasts());
        let limits = table.shared.borrow().limits;
        group.state.borrow_mut().kept.begin_wait(number, fabric.now(), &limits);
        #[cfg(test)]
        group.planted.get().before_wait(&mut group.state.borrow_mut().kept, number);
        table.begin_await();
        let _wait = RootWait { multicast: self, number };
        table.look_after(fabric);
        self.until_state(|state| state.kept.find(number).is_none()).await?;
        group.state.borrow_mut().kept.end_wait(number, Some(fabric.now()));
        Ok(())
    }

    /// Waits until `holds` returns true for the group's state.
    async fn until_state(&self, holds: impl Fn(&GroupState) -> bool) -> Result<(), Fault> {
        let MulticastMember { host, group } = self;
        loop {
            let value = host.fabric().counters().value(group.moved);
            if holds(&group.state.borrow()) {
                return Ok(());
            }
            host.until(group.moved, value + 1).await?;
        }
    }

    /// Notes that every other member has begun the operation whose first number is `first`, so all earlier operations are complete
    /// at all members. The caller knows this if it has heard in that operation from every member, or from a member that has heard
    /// from every member. Operations of a group must not overlap if this function is called.
    pub fn heard(&self, first: u64) {
        self.group.state.borrow_mut().kept.forget_below(first);
    }

    /// Begins to receive `number` from the member at place `root`: exactly `into.len()` bytes. Datagrams that have arrived before
    /// are taken at once. [`MulticastReceive::end`] waits for the rest, and only during this wait does the member ask for overdue
    /// datagrams.
    pub fn begin_receive(&self, root: usize, number: u64, into: Sge) -> MulticastReceive<'_, H> {
        let fabric = self.host.fabric();
        let table = self.host.multicasts();
        let counters = fabric.counters();
        let mut end = CounterTarget::new(counters, counters.allocate());
        end.one_more();
        let asked = PendingReceive::new(number, root as u32, into, end.counter);
        let mut freed = 0;
        {
            let receives = &mut self.group.state.borrow_mut().receives;
            debug_assert!(receives.is_open(number), "number {number} is not open");
            receives.ask(asked, counters, &mut freed);
        }
        table.shared.borrow_mut().room += freed;
        table.read(fabric);
        MulticastReceive { multicast: self, number, end, asks: true, awaits: false }
    }

    /// Receives exactly `into.len()` bytes as `number` from the member at place `root`, which must send with the same `ends`.
    ///
    /// Errors: [`weft_fabric::FaultCause::Truncated`] if the root has sent another length; faults of the fabric.
    pub fn receive(
        &self,
        root: usize,
        number: u64,
        into: Sge,
        ends: ReleaseMode,
    ) -> impl Future<Output = Result<(), Fault>> + '_ {
        let mut receiving = self.begin_receive(root, number, into);
        receiving.asks = ends != ReleaseMode::EachAcknowledged;
        receiving.end()
    }

    /// Multicasts this member's block, `blocks[place]`, and receives the blocks of all other members (an allgather). If `at_once`
    /// is not 0, a member sends only after it has received the block of the member `at_once` places before it. This bounds the
    /// number of unread datagrams. If `at_once` is 0, all members send immediately. Collective.
    pub async fn everyone(&self, blocks: &[Sge], at_once: usize) -> Result<(), Fault> {
        let (me, n) = (self.place(), self.size());
        assert_eq!(blocks.len(), n, "one block for each member");
        let first = self.numbers(n as u64);
        let begin = |place: usize| {
            (place != me).then(|| self.begin_receive(place, first + place as u64, blocks[place]))
        };
        let mut receives: Vec<_> = (0..n).map(begin).collect();
        if at_once > 0
            && let Some(before) = me.checked_sub(at_once)
            && let Some(receive) = receives[before].take()
        {
            receive.end().await?;
        }
        self.send(first + me as u64, blocks[me], ReleaseMode::Heard).await?;
        for receive in receives.into_iter().flatten() {
            receive.end().await?;
        }
        self.heard(first);
        Ok(())
    }

    /// Ends the group. Every member calls it when its own operations are complete; the call returns when the operations of all
    /// members are complete, so that no member asks any more. The call uses no multicast. If a member drops this value without
    /// `close`, members that still lack a datagram of that member get no repair.
    pub async fn close(self) -> Result<(), Fault> {
        let MulticastMember { host, group } = &self;
        let (fabric, n) = (host.fabric(), group.members.len());
        let mut round = 0;
        #[cfg(test)]
        let n = if group.planted.get().leaves_at_once() { 1 } else { n };
        while 1usize << round < n {
            group.say_close(fabric, (group.me + (1 << round)) % n, round);
            self.until_state(|state| state.rounds >> round & 1 == 1).await?;
            round += 1;
        }
        Ok(())
    }
}

impl<H: ProgressHost> Drop for MulticastMember<H> {
    fn drop(&mut self) {
        self.host.multicasts().remove(self.host.fabric(), &self.group);
    }
}

impl MulticastGroup {
    /// Notes that the member at `place`, and the members from which it has heard, lack nothing.
    pub fn hear_close<F: Fabric>(
        &self,
        fabric: &F,
        place: usize,
        round: u64,
    ) -> Result<(), &'static str> {
        let n = self.members.len();
        let sound = round < 64 && (1u64 << round) < n as u64;
        if !sound || (place + (1 << round)) % n != self.me {
            return Err("round of the end of a multicast group");
        }
        self.state.borrow_mut().rounds |= 1 << round;
        fabric.counters().add(self.moved, 1);
        Ok(())
    }
}

/// A root's wait for acknowledgements. If it is dropped before its end, the multicast is no longer repeated.
struct RootWait<'m, H: ProgressHost> {
    multicast: &'m MulticastMember<H>,
    number: u64,
}

impl<H: ProgressHost> Drop for RootWait<'_, H> {
    fn drop(&mut self) {
        let MulticastMember { host, group } = self.multicast;
        group.state.borrow_mut().kept.end_wait(self.number, None);
        host.multicasts().end_await();
    }
}

/// A receive under way. If it is dropped before its end, the receive is given up, and its number is complete at this member.
pub struct MulticastReceive<'m, H: ProgressHost> {
    multicast: &'m MulticastMember<H>,
    number: u64,
    end: CounterTarget,
    /// True if this member asks for overdue datagrams; false if the root repeats unacknowledged multicasts by itself.
    asks: bool,
    awaits: bool,
}

impl<H: ProgressHost> MulticastReceive<'_, H> {
    /// Waits for the whole payload.
    pub async fn end(mut self) -> Result<(), Fault> {
        let MulticastMember { host, group } = self.multicast;
        let (fabric, table) = (host.fabric(), host.multicasts());
        if !self.end.has_come(fabric.counters()) {
            let now = fabric.now();
            let receives = &mut group.state.borrow_mut().receives;
            let limits = table.shared.borrow().limits;
            let patience = receives.waits.patience(limits.least, limits.most);
            let asked = receives.asked.iter_mut().find(|asked| asked.number == self.number);
            if let Some(asked) = asked.filter(|_| self.asks) {
                asked.awaited = Some(Awaited::new(now, patience));
            }
            table.begin_await();
            self.awaits = true;
        }
        if self.awaits {
            table.look_after(fabric);
            host.until(self.end.counter, self.end.value).await?;
        }
        let failed = {
            let receives = &mut group.state.borrow_mut().receives;
            let at = receives.asked.iter().position(|asked| asked.number == self.number);
            let asked = &mut receives.asked[at.expect("asked for until it is dropped")];
            // A receive that has failed stays complete, so its fault must be kept.
            let (root, marked, failed) = (asked.root, asked.marked, asked.failed.clone());
            if let Some(awaited) = asked.awaited.take() {
                receives.waits.learn(&awaited, fabric.now());
            }
            if marked {
                receives.owe_acknowledgement(root, self.number);
            }
            failed
        };
        failed.map_or(Ok(()), Err)
    }
}

impl<H: ProgressHost> Drop for MulticastReceive<'_, H> {
    fn drop(&mut self) {
        let MulticastMember { host, group } = self.multicast;
        let (fabric, table) = (host.fabric(), host.multicasts());
        group.state.borrow_mut().receives.asked.retain(|asked| asked.number != self.number);
        fabric.counters().free(self.end.counter);
        if self.awaits {
            table.end_await();
        }
        group.over(fabric, self.number, &mut table.shared.borrow_mut());
    }
}
