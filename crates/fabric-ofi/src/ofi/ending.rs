//! Orderly end of a process towards its peers.

use super::*;
use crate::poll_pace::PollNeed;

/// Maximum time for which an ending process waits for messages that other processes still have to receive or send.
const LEAVE: Duration = Duration::from_secs(2);

impl Ofi {
    /// Tells all peers that this process sends nothing more. After that, a silent peer does not count as lost. The caller polls
    /// until [`Ofi::has_ended`] returns true.
    pub fn announce_end(&self) {
        let state = &mut *self.state.borrow_mut();
        let core = &self.core;
        state.ending = Some(Instant::now());
        for rank in 0..state.peers.len() {
            if state.peers.get(rank).is_some_and(|peer| !peer.lost && !peer.left) {
                state.tell(core, rank, OfiMessageKind::Leave, [0; 3]);
            }
        }
    }

    /// Returns true if the fault is the loss of a process of the job and the provider reports such losses at once. Then perhaps the
    /// launcher does not know of the loss yet.
    pub fn lost_at_once(&self) -> bool {
        let state = self.state.borrow();
        let lost = |fault: &Fault| match *fault.cause() {
            weft_fabric::FaultCause::PeerLost { rank } => rank < self.core.size,
            _ => false,
        };
        self.core.objects.sees_ends() && state.trouble.fault().is_some_and(lost)
    }

    /// Returns true if everything that was sent has reached the peers' hosts, or if the process has been ending for longer than the
    /// time `patience` of the options.
    pub fn has_ended(&self) -> bool {
        let since = self.state.borrow().ending;
        (self.idle() && self.core.objects.has_arrived())
            || since.is_some_and(|since| since.elapsed() > self.core.times.patience)
    }

    /// Polls until no message has come for the time [`READING`], and in the last [`QUIET_POLLS`] polls. Stops after [`LEAVE`] in any
    /// case.
    fn read_until_quiet(&self) {
        let (begin, state) = (Instant::now(), &mut *self.state.borrow_mut());
        let (mut last, mut quiet) = (begin, 0);
        while (quiet < QUIET_POLLS || last.elapsed() < READING) && begin.elapsed() < LEAVE {
            quiet += 1;
            if state.poll(&self.core) | state.poll_others(&self.core, PollNeed::Now) {
                (last, quiet) = (Instant::now(), 0);
            }
            std::thread::yield_now();
        }
    }

    /// Tells all peers that this process sends nothing more, and waits at most [`LEAVE`] until all peers have announced the same.
    /// If an endpoint closed earlier, operations under way might be lost.
    fn say_leave(&self) {
        let end = Instant::now() + LEAVE;
        let state = &mut *self.state.borrow_mut();
        let core = &self.core;
        let mut told = vec![false; state.peers.len()];
        loop {
            state.poll(core);
            state.poll_others(core, PollNeed::Now);
            state.drain_all(core);
            let mut waits = state.requests.open() > 0 || state.repeats();
            for (rank, told) in told.iter_mut().enumerate() {
                let Some(peer) = state.peers.get(rank) else { continue };
                if peer.lost {
                    continue;
                }
                waits |= !peer.left;
                if !std::mem::replace(told, true) {
                    state.tell(core, rank, OfiMessageKind::Leave, [0; 3]);
                }
            }
            if (!waits && !state.peers.waits())
                || state.trouble.fault().is_some()
                || Instant::now() >= end
            {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// Time for which nothing must have come before a process closes its endpoint. Over verbs, ofi_rxm (1.17) crashes when an endpoint
/// with unread messages is closed, because ofi_rxm gives the messages' buffers back to a queue that no longer exists. Credits
/// arrive after the last message of the program. Without this time, some of the messages with credits would be unread.
const READING: Duration = Duration::from_millis(50);

/// Number of polls in a row that must also have found no message. On a busy machine, a process may get to poll only once in the time
/// [`READING`], and would then close its endpoint with unread messages.
const QUIET_POLLS: u32 = 1000;

impl Drop for Ofi {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.state.borrow().trouble.fault().is_none() {
            self.say_leave();
            if self.core.objects.facts.provider == "verbs;ofi_rxm" {
                self.read_until_quiet();
            }
        }
        self.core.objects.shut();
        self.core.others.iter().for_each(|rail| rail.objects.shut());
    }
}
