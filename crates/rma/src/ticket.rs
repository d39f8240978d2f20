//! A fair lock for many and for one, in control words of the rank that it belongs to, which does nothing.
//!
//! A ticket lock for readers and writers (after Mellor-Crummey and Scott, 1991) whose waiters sleep on a
//! flag of their own instead of polling:
//!
//! ```text
//!   users   next ticket               shared t:     waits for read = t, then sets read = t + 1
//!   read    may enter shared          exclusive t:  waits for write = t
//!   write   may enter exclusive       release:      write + 1; an exclusive one first read + 1
//!
//!   slots[t mod n]   0, or who waits with ticket t: registered by the waiter, taken out at once either by it
//!                    (it found its turn come) or by whoever brought its turn (and sets its grant flag)
//! ```
//! Tickets are served in their order, so nobody starves: readers that follow each other hold it together.
//!
//! Contract. Each rank has at most one ticket of a lock at a time, so `n` slots suffice. A turn is looked
//! for after the slot was written, and a slot after the turn was advanced, both by atomic operations of the
//! fabric, so one of the two sees the other. A slot is emptied by compare-and-swap, so exactly one of them
//! ends the wait: a grant flag is written only for a waiter that still waits for it, and never late.
//!
//! Where this process's processor sees the words, a lock that nobody has is taken by one compare-and-swap, and
//! given back by two operations and a look at the slot, without a future ([`TicketLock::acquire_at_once`]).
//!
//! Cost without contention: two operations to take it, three to give it back (fetch-add and read; two
//! fetch-adds and read). With contention: two more by the waiter, one and a flag by who releases.

use crate::control::{Control, Lock, Table, word};
use crate::passive::Others;
use crate::words;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use weft_fabric::{Fabric, Fault, RemoteAddr, Sge};
use weft_p2p::Endpoint;

/// Places of the words in the line of a lock.
const USERS: usize = 0;
const READ: usize = 1;
const WRITE: usize = 2;

/// Who waits: ticket + 1, rank, and whether shared.
const RANK_BITS: u32 = 24;

fn waiter(ticket: u64, rank: usize, shared: bool) -> u64 {
    (ticket + 1) << (RANK_BITS + 1) | (rank as u64) << 1 | u64::from(shared)
}

fn ticket_of(waiter: u64) -> Option<u64> {
    (waiter >> (RANK_BITS + 1)).checked_sub(1)
}

fn rank_of(waiter: u64) -> usize {
    (waiter >> 1) as usize & ((1 << RANK_BITS) - 1)
}

/// One of the locks of a rank, as seen from here.
pub struct TicketLock<'w, F: Fabric> {
    pub endpoint: &'w Rc<Endpoint<F>>,
    pub control: &'w Control<F>,
    pub which: Lock,
    /// The rank that it belongs to, and its process in the fabric.
    pub target: usize,
    pub peer: usize,
    /// That rank's control words.
    pub words: RemoteAddr,
    /// This rank in the window.
    pub me: usize,
    pub size: usize,
    /// Process in the fabric and control words of the others.
    pub others: &'w dyn Others,
}

impl<F: Fabric> TicketLock<'_, F> {
    fn line(&self, index: usize) -> RemoteAddr {
        word(self.words, 8 * self.which as usize + index)
    }

    fn slot(&self, ticket: u64) -> RemoteAddr {
        let index = (ticket % self.size as u64) as usize;
        word(self.words, Table::Slots(self.which).word(self.size, index))
    }

    /// Takes it for one rank alone, if nobody has it: then the turn of the ticket that is taken has come already.
    #[inline]
    pub fn acquire_at_once(&self) -> bool {
        let Some(line) = self.seen_line() else { return false };
        let next = line[WRITE].load(SeqCst);
        // All tickets before it were given back, and it can move on only with this one.
        line[USERS].compare_exchange(next, next + 1, SeqCst, SeqCst).is_ok()
    }

    /// Gives it back, taken for one rank alone. `None`: the words are not seen, and nothing was done. The turns that
    /// have come are returned if somebody may wait for them: [`TicketLock::pass_turns`] tells who does.
    #[inline]
    pub fn release_at_once(&self) -> Option<Option<(u64, u64)>> {
        let line = self.seen_line()?;
        let slots = self.endpoint.fabric().words(self.peer, self.slot(0), self.size)?;
        let read = line[READ].fetch_add(1, SeqCst) + 1;
        let write = line[WRITE].fetch_add(1, SeqCst) + 1;
        let waits = |ticket: u64| slots[(ticket % self.size as u64) as usize].load(SeqCst) != 0;
        Some((waits(read) || read != write && waits(write)).then_some((read, write)))
    }

    /// The words of the lock itself, where they are seen.
    #[inline]
    fn seen_line(&self) -> Option<&[AtomicU64]> {
        self.endpoint.fabric().words(self.peer, self.line(USERS), WRITE + 1)
    }

    /// Takes it; the ticket is needed to give it back.
    pub async fn acquire(&self, shared: bool) -> Result<u64, Fault> {
        let ticket = self.add(self.line(USERS), 1).await?;
        let turn = self.line(if shared { READ } else { WRITE });
        if self.read(turn).await? != ticket {
            self.wait(ticket, turn, shared).await?;
        }
        if shared {
            let read = self.add(self.line(READ), 1).await? + 1;
            self.pass(read, &[true]).await?;
        }
        Ok(ticket)
    }

    /// The turn has not come: registers, and sleeps until somebody brings it.
    #[cold]
    async fn wait(&self, ticket: u64, turn: RemoteAddr, shared: bool) -> Result<(), Fault> {
        let grant = self.control.flag(Table::Grants(self.which), self.target);
        let entry = waiter(ticket, self.me, shared);
        let slot = self.slot(ticket);
        self.swap(slot, 0, entry).await?;
        if self.add(turn, 0).await? == ticket && self.swap(slot, entry, 0).await? == entry {
            return Ok(());
        }
        self.endpoint.until(grant, ticket + 1).await
    }

    /// Gives it back.
    pub async fn release(&self, shared: bool) -> Result<(), Fault> {
        if shared {
            let write = self.add(self.line(WRITE), 1).await? + 1;
            return self.pass(write, &[false]).await;
        }
        let read = self.add(self.line(READ), 1).await? + 1;
        let write = self.add(self.line(WRITE), 1).await? + 1;
        self.pass_turns(read, write).await
    }

    /// Tells who waits for the turns that an exclusive release has brought.
    pub async fn pass_turns(&self, read: u64, write: u64) -> Result<(), Fault> {
        if read == write {
            return self.pass(write, &[true, false]).await;
        }
        // Who entered shared has released meanwhile.
        self.pass(read, &[true]).await?;
        self.pass(write, &[false]).await
    }

    /// The turn of `ticket` has come, to enter as one of `kinds` (shared or not): tells it, if it sleeps.
    async fn pass(&self, ticket: u64, kinds: &[bool]) -> Result<(), Fault> {
        let slot = self.slot(ticket);
        let entry = self.read(slot).await?;
        let waits = ticket_of(entry) == Some(ticket) && kinds.contains(&(entry & 1 == 1));
        if !waits || self.swap(slot, entry, 0).await? != entry {
            return Ok(());
        }
        let rank = rank_of(entry);
        if rank >= self.size {
            return Err(Fault::Corrupt { rank: self.peer, what: "lock's queue" });
        }
        let (peer, words) = self.others.find(rank);
        let flag = self.control.remote(words, Table::Grants(self.which), self.target);
        let (fabric, nothing) = (self.endpoint.fabric(), Sge::EMPTY);
        fabric.write_flag(peer, nothing, flag.at, flag, ticket + 1, None)
    }

    async fn add(&self, at: RemoteAddr, operand: u64) -> Result<u64, Fault> {
        words::add(self.endpoint, self.peer, at, operand).await
    }

    async fn swap(&self, at: RemoteAddr, old: u64, new: u64) -> Result<u64, Fault> {
        words::swap(self.endpoint, self.peer, at, old, new).await
    }

    /// A word as it is now: by an atomic operation, which is ordered with the others.
    async fn read(&self, at: RemoteAddr) -> Result<u64, Fault> {
        self.add(at, 0).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_fits_into_a_word() {
        for (ticket, rank, shared) in [(0, 0, false), (7, (1 << 24) - 1, true), (1 << 38, 5, true)]
        {
            let word = waiter(ticket, rank, shared);
            assert_eq!(
                (ticket_of(word), rank_of(word), word & 1 == 1),
                (Some(ticket), rank, shared)
            );
        }
        assert_eq!(ticket_of(0), None);
    }
}
