//! Messages, immediates and datagrams: all traffic that goes through rings.

use crate::bell::RankBell;
use crate::peer::{QueuedPayload, QueuedSend};
use crate::poll_bell::SleepingPart;
use crate::ring::{Corrupt, INLINE, RingMessage};
use crate::shm::Shm;
use crate::sync::{Ordering, fence};
use std::sync::Arc;
use weft_fabric::wait::Sleep;
use weft_fabric::{
    ArrivedMessage, Completion, Counter, Datagram, Fabric, Fault, GroupId, Head, Helper,
    Immediates, Multicast, Peek, PostOutcome, RemoteRead, RemoteWrite, Sge, SignalSafe,
};
use weft_intranode::staged;

/// Number of messages for which an empty backlog keeps room.
const BACKLOG_KEPT: usize = 64;

/// Returns the numbers of the bits that are set in `bits`, the lowest first.
#[inline(always)]
fn set_bits(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(bit)
    })
}

impl Shm {
    /// Wakes `peer` if it sleeps. Called after something was published for the peer.
    #[inline(always)]
    pub(crate) fn wake(&self, peer: usize) {
        if self.peers[peer].doorbell().wake() {
            self.rung(peer, SleepingPart::Main);
        }
    }

    /// Wakes the helper of `peer` if it sleeps.
    fn wake_helper(&self, peer: usize) {
        if self.peers[peer].control().helper.wake() {
            self.rung(peer, SleepingPart::Helper);
        }
    }

    /// Rings the socket of a peer that sleeps in poll(2), after the doorbell was rung.
    #[cold]
    fn rung(&self, peer: usize, who: SleepingPart) {
        let to = &self.peers[peer];
        if to.polls {
            self.bells.ring(&to.home, to.home_rank, who);
        }
    }

    /// Reports to `peer` that there is room in its box again.
    pub(crate) fn tell_of_room(&self, peer: usize) {
        self.wake(peer);
        // The call of `wake` has executed a fence. The peer stores `keeps` before it looks for room. Before that look, the helper
        // is announced as a sleeper: by the helper itself, or by the thread that leaves the work to the helper. So either the peer
        // finds the room, or this code finds `keeps` set and wakes the helper.
        let control = self.peers[peer].control();
        if control.keeps.0.load(Ordering::Relaxed) != 0 && control.helper.wake_fenced() {
            self.rung(peer, SleepingPart::Helper);
        }
    }

    #[cold]
    pub(crate) fn send_slowly(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        let to = &self.peers[peer];
        let (len, max) = (payload.len(), to.send_max());
        assert!(len <= max, "a payload of {len} bytes exceeds the {max} of send_max");
        if !to.announced.replace(true) {
            // This comes before the peer looks, so that the first look of the peer finds all pages of the lines.
            to.output.refresh();
            let active = &to.control().active.0;
            active[to.bit / 64].fetch_or(1 << (to.bit % 64), Ordering::Release);
        }
        // A caller that only sends may never call `progress`, and the backlog must not grow meanwhile.
        self.drain_to(peer);
        let mut backlog = to.backlog.borrow_mut();
        if backlog.is_empty() {
            if to.output.push(&self.copies, head, payload) {
                self.wake(peer);
                return PostOutcome::Done;
            }
            self.backlogs.add(self.own(), peer);
            // Looks again, because the receiver may have made room before it could see that a message is kept back.
            fence(Ordering::SeqCst);
            to.output.refresh();
            if to.output.push_widening(&self.copies, head, payload) {
                self.wake(peer);
                return PostOutcome::Done;
            }
        }
        // From now on no message may overtake the backlog, until the backlog is empty.
        to.output.block();
        let (payload, posted) = if len <= INLINE {
            let mut copy = vec![0; len].into_boxed_slice();
            payload.read(&mut copy);
            (QueuedPayload::Copied(copy), PostOutcome::Done)
        } else {
            (QueuedPayload::Held(payload, done), PostOutcome::Later)
        };
        backlog.push_back(QueuedSend { head, payload });
        posted
    }

    #[inline(always)]
    pub(crate) fn drain_backlogs(&self) -> bool {
        !self.backlogs.is_empty() && self.drain()
    }

    #[cold]
    fn drain(&self) -> bool {
        let mut moved = false;
        self.backlogs.retain(self.own(), |peer| {
            let (some, rest) = self.drain_to(peer);
            moved |= some;
            rest
        });
        moved
    }

    /// Drops the messages that are kept for `peer`, which is about to be forgotten.
    pub(crate) fn drop_backlog(&self, peer: usize) {
        self.backlogs.retain(self.own(), |one| one != peer);
    }

    /// Sends the messages that are kept for `peer`. Returns two flags: a message was sent; a message is still kept.
    fn drain_to(&self, peer: usize) -> (bool, bool) {
        let to = &self.peers[peer];
        let mut backlog = to.backlog.borrow_mut();
        let mut moved = false;
        to.output.refresh();
        while let Some(kept) = backlog.front_mut() {
            let (payload, done) = match &mut kept.payload {
                QueuedPayload::Held(payload, done) => (*payload, *done),
                QueuedPayload::Copied(copy) => {
                    // SAFETY: `copy` stays allocated during the push, which only reads its bytes.
                    (unsafe { Sge::new(copy.as_mut_ptr(), copy.len()) }, None)
                }
            };
            if !to.output.push_widening(&self.copies, kept.head, payload) {
                to.output.block();
                break;
            }
            self.complete(done);
            backlog.pop_front();
            moved = true;
        }
        if backlog.is_empty() {
            // A peer that was slow once must not cost memory from then on.
            backlog.shrink_to(BACKLOG_KEPT);
        }
        let mut kept = to.immediates_kept.borrow_mut();
        while let Some(&immediate) = kept.front()
            && self.push_immediate(peer, immediate)
        {
            kept.pop_front();
            moved = true;
        }
        if moved {
            self.wake(peer);
            if to.control().helper.wake_fenced() {
                self.rung(peer, SleepingPart::Helper);
            }
        }
        (moved, !(backlog.is_empty() && kept.is_empty()))
    }

    /// Sends one arrival of `immediate`.
    fn announce(&self, peer: usize, immediate: u32) {
        let mut kept = self.peers[peer].immediates_kept.borrow_mut();
        if kept.is_empty() && self.push_immediate(peer, immediate) {
            self.wake(peer);
        } else {
            kept.push_back(immediate);
            self.backlogs.add(self.own(), peer);
        }
    }

    fn push_immediate(&self, peer: usize, immediate: u32) -> bool {
        let to = &self.peers[peer];
        let out = &to.immediates_out;
        let head = Head([immediate.into(), 0, 0]);
        let pushed = out.push(&self.copies, head, Sge::EMPTY) || {
            out.refresh();
            out.push(&self.copies, head, Sge::EMPTY)
        };
        if pushed {
            to.control().immediates.0.fetch_add(1, Ordering::Release);
        }
        pushed
    }

    #[inline(always)]
    pub(crate) fn receive_from(&self, peer: usize) -> Option<ArrivedMessage> {
        match self.peers[peer].input.peek() {
            Ok(arrival) => {
                let RingMessage { head, payload } = arrival?;
                staged::sense_sent(&self.copies, payload);
                Some(ArrivedMessage { peer, head, payload, token: 0 })
            }
            Err(Corrupt) => {
                self.fail(Fault::corrupt(peer, "message length"));
                None
            }
        }
    }

    /// Receives from any peer. Looks first at the box that had the last message, so that a batch costs no search. Every Nth time
    /// all boxes are searched ([`crate::poll_turn`]), so that a peer that sends much does not keep the other peers waiting.
    #[inline(always)]
    pub(crate) fn receive_any(&self) -> Option<ArrivedMessage> {
        if let Some(peer) = self.turn.goes_on() {
            let message = self.receive_from(peer);
            if message.is_some() {
                return message;
            }
            self.turn.end_batch();
        }
        self.receive_next()
    }

    #[inline(never)]
    fn receive_next(&self) -> Option<ArrivedMessage> {
        let active = &self.own().active.0;
        let end = self.peers.end();
        let words = end.div_ceil(64);
        let turn = self.turn.next();
        let from_turn = u64::MAX << (turn % 64);
        // The loop visits the first word twice: first for its bits from the turn on, and at the end for the bits before the turn.
        for i in 0..=words {
            let word = (turn / 64 + i) % words;
            let mut bits = active[word].load(Ordering::Acquire);
            if i == 0 {
                bits &= from_turn;
            } else if i == words {
                bits &= !from_turn;
            }
            for peer in set_bits(bits).map(|bit| word * 64 + bit) {
                if !self.peers.has(peer) {
                    continue;
                }
                if let Some(message) = self.receive_from(peer) {
                    self.turn.begin_batch(peer, end);
                    return Some(message);
                }
            }
        }
        None
    }

    /// Looks for room, unless a message is kept for `peer`. Returns true if no message is kept.
    fn may_refresh(&self, peer: usize) -> bool {
        let nothing_kept = self.peers[peer].backlog.borrow().is_empty();
        if nothing_kept {
            self.peers[peer].output.refresh();
        }
        nothing_kept
    }

    /// Counts the immediates that have arrived. Returns true if there were any.
    #[inline(always)]
    pub(crate) fn collect_immediates(&self) -> bool {
        let sent = self.own().immediates.0.load(Ordering::Acquire);
        sent != self.immediates_seen.replace(sent) && self.take_immediates()
    }

    #[cold]
    fn take_immediates(&self) -> bool {
        self.hear_of_losses();
        let mut moved = false;
        for (rank, peer) in self.peers.all() {
            loop {
                match peer.immediates_in.peek() {
                    Ok(None) => break,
                    Ok(Some(RingMessage { head, payload })) => {
                        let counter = self.counters.immediate(head.0[0] as u32);
                        self.counters.add(counter, 1);
                        moved = true;
                        if peer.immediates_in.pop(payload.len()) {
                            self.tell_of_room(rank);
                        }
                    }
                    Err(Corrupt) => {
                        self.fail(Fault::corrupt(rank, "immediate"));
                        break;
                    }
                }
            }
        }
        moved
    }
}

impl SignalSafe for Shm {
    fn peek(&self, look: &mut dyn FnMut(&ArrivedMessage) -> Peek) -> bool {
        // A box shows only one message at a time, so a message that `look` leaves may hide others.
        let mut hidden = false;
        let active = &self.own().active.0;
        for (word, bits) in active.iter().enumerate().take(self.peers.end().div_ceil(64)) {
            for peer in set_bits(bits.load(Ordering::Acquire)).map(|bit| word * 64 + bit) {
                if !self.peers.has(peer) {
                    continue;
                }
                while let Some(message) = self.receive_from(peer) {
                    match look(&message) {
                        Peek::Taken => self.release(message),
                        Peek::Left => {
                            hidden |= self.peers[peer].input.has_another();
                            break;
                        }
                        Peek::Behind => break,
                    }
                }
            }
        }
        hidden
    }

    fn try_read(&self, peer: usize, read: &RemoteRead) -> bool {
        self.is_open(peer, read.src, read.dst.len()) && self.read(peer, read).is_ok()
    }

    fn try_write(&self, peer: usize, write: &RemoteWrite) -> bool {
        self.is_open(peer, write.dst, write.src.len()) && self.write(peer, write).is_ok()
    }

    /// Sends a head, if there is room and no earlier message is kept back.
    fn try_send(&self, peer: usize, head: Head) -> bool {
        let to = &self.peers[peer];
        let push = || to.output.push(&self.copies, head, Sge::EMPTY);
        let pushed = to.announced.get() && (push() || self.may_refresh(peer) && push());
        if pushed {
            self.wake(peer);
        }
        pushed
    }
}

impl Immediates for Shm {
    fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault> {
        self.put(peer, write.src, write.dst)?;
        self.announce(peer, immediate);
        self.complete(write.done);
        Ok(())
    }

    fn immediate(&self, immediate: u32) -> Counter {
        self.counters.immediate(immediate)
    }
}

impl Helper for Shm {
    fn send_solicited(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        let posted = self.send(peer, head, payload, done);
        // When a message that was kept back is sent, both the peer and its helper must wake.
        self.wake_helper(peer);
        posted
    }

    fn helper(&self) -> Arc<dyn Sleep> {
        Arc::new(RankBell { segment: self.segment.clone(), rank: self.rank, helper: true })
    }

    fn let_helper_sleep_at_ends(&self) {}

    fn moves_by_progress(&self) -> bool {
        false
    }
}

impl Multicast for Shm {
    fn join(&self, group: GroupId) {
        self.datagrams.join(group);
    }

    fn leave(&self, group: GroupId) {
        self.datagrams.leave(group);
    }

    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
        self.datagrams.speak(&self.segment, self.rank, group, src);
        for (peer, to) in self.peers.own().iter().enumerate() {
            if peer != self.rank && to.doorbell().wake_fenced() {
                self.rung(peer, SleepingPart::Main);
            }
        }
        Ok(())
    }

    fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
        self.datagrams.listen(&self.segment, self.rank, self.peers.own(), into)
    }
}
