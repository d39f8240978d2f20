//! A fair lock for many and for one, in control words of the rank that it belongs to, which does nothing.
//!
//! A ticket lock for readers and writers (after Mellor-Crummey and Scott, 1991) whose waiters sleep on a
//! flag of their own instead of polling:
//!
//! ```text
//!   users   next ticket               shared t:     waits for read = t, then sets read = t + 1
//!   read    may enter shared          exclusive t:  waits for write = t
//!   write   may enter exclusive       release:      write + 1; an exclusive one read + 1 with it
//!
//!   slots[t mod n]   0, or who waits with ticket t: registered by the waiter, taken out at once either by it
//!                    (it found its turn come) or by whoever brought its turn (and sets its grant flag)
//! ```
//! Read and write are one word, `turns` = read x 2^32 + write, so that one operation moves both. Whoever has a
//! ticket knows each within less than 2^31, so that word is enough to tell them ([`decode`]).
//!
//! Tickets are served in their order, so nobody starves: readers that follow each other hold it together.
//!
//! Contract. Each rank has at most one ticket of a lock at a time, so `n` slots suffice. A turn is looked
//! for after the slot was written, and a slot after the turn was advanced, both by atomic operations of the
//! fabric, so one of the two sees the other. A slot is emptied by compare-and-swap, so exactly one of them
//! ends the wait: a grant flag is written only for a waiter that still waits for it, and never late.
//!
//! Cost without contention: two operations to take it, two to give it back (fetch-add and read; fetch-add and
//! read). With contention: two more by the waiter, one and a flag by who releases. Where this process's processor
//! sees the words, no future is made: a compare-and-swap takes it, a fetch-add gives it back ([`MappedTicketLock`]).

use crate::control::WindowControl;
use crate::control::layout::{ControlTable, TicketLockKind, row};
use std::sync::atomic::Ordering::SeqCst;
use weft_fabric::{Fabric, Fault, PeerWords};

/// Places of the words in the line of a lock.
const USERS: usize = 0;
const TURNS: usize = 1;
/// What advances the counts in the latter.
const READ: u64 = 1 << 32;
const WRITE: u64 = 1;

/// The counts of read and write in the word of turns, both within 2^31 of `near`.
fn decode(turns: u64, near: u64) -> (u64, u64) {
    let whole = |low: u64| {
        near.wrapping_add_signed(i64::from((low as u32).wrapping_sub(near as u32) as i32))
    };
    let write = whole(turns);
    (whole(turns.wrapping_sub(write) >> 32), write)
}

/// How a lock was taken or given back without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// Nothing was done.
    Not,
    /// With this ticket.
    Done(u64),
    /// With this ticket, but the turn of another one has come whose owner may sleep: [`TicketLock::pass`].
    Tell(u64, TicketTurn),
}

/// The turn of `ticket` has come to enter shared, exclusively, or either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TicketTurn {
    ticket: u64,
    shared: bool,
    exclusive: bool,
}

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

/// A word of a lock's line.
#[inline]
fn line(which: TicketLockKind, index: usize) -> usize {
    8 * which as usize + index
}

/// The word where who waits with a ticket is registered.
#[inline]
fn slot(which: TicketLockKind, size: usize, ticket: u64) -> usize {
    ControlTable::Slots(which).word(size, ticket as usize & (row(size) - 1))
}

/// One of the locks of a rank whose words this process sees: what needs no waiting.
pub struct MappedTicketLock<'w> {
    pub words: &'w PeerWords,
    pub which: TicketLockKind,
    /// Ranks of the window.
    pub size: usize,
}

impl MappedTicketLock<'_> {
    /// Takes it, if nobody is in the way.
    #[inline]
    pub fn try_acquire(&self, shared: bool) -> Tried {
        let users = &self.words[line(self.which, USERS)];
        let turns = &self.words[line(self.which, TURNS)];
        let next = users.load(SeqCst);
        let (read, write) = decode(turns.load(SeqCst), next);
        // The turn of the next ticket has come: it stays so until that one is given back.
        if next != if shared { read } else { write }
            || users.compare_exchange(next, next + 1, SeqCst, SeqCst).is_err()
        {
            return Tried::Not;
        }
        if !shared {
            return Tried::Done(next);
        }
        turns.fetch_add(READ, SeqCst);
        self.told(next, TicketTurn { ticket: next + 1, shared: true, exclusive: false })
    }

    /// Gives it back, taken with `ticket`.
    #[inline]
    pub fn try_release(&self, shared: bool, ticket: u64) -> Tried {
        let turns = &self.words[line(self.which, TURNS)];
        let turn = if shared {
            let (_, write) = decode(turns.fetch_add(WRITE, SeqCst), ticket);
            TicketTurn { ticket: write + 1, shared: false, exclusive: true }
        } else {
            turns.fetch_add(READ + WRITE, SeqCst);
            TicketTurn { ticket: ticket + 1, shared: true, exclusive: true }
        };
        self.told(ticket, turn)
    }

    /// What is left to do after a turn was brought: to tell who may wait for it.
    #[inline]
    fn told(&self, ticket: u64, turn: TicketTurn) -> Tried {
        match self.words[slot(self.which, self.size, turn.ticket)].load(SeqCst) {
            0 => Tried::Done(ticket),
            _ => Tried::Tell(ticket, turn),
        }
    }
}

/// One of the locks of a rank.
pub struct TicketLock<'w, F: Fabric> {
    pub control: &'w WindowControl<F>,
    pub which: TicketLockKind,
    /// The rank that it belongs to.
    pub target: usize,
}

impl<F: Fabric> TicketLock<'_, F> {
    fn line(&self, index: usize) -> usize {
        line(self.which, index)
    }

    fn slot(&self, ticket: u64) -> usize {
        slot(self.which, self.control.size(), ticket)
    }

    /// Takes it; the ticket is needed to give it back.
    pub async fn acquire(&self, shared: bool) -> Result<u64, Fault> {
        let ticket = self.add(self.line(USERS), 1).await?;
        if !self.has_come(ticket, shared).await? {
            self.wait(ticket, shared).await?;
        }
        if shared {
            let (read, _) = decode(self.add(self.line(TURNS), READ).await?, ticket);
            self.pass(TicketTurn { ticket: read + 1, shared: true, exclusive: false }).await?;
        }
        Ok(ticket)
    }

    /// Whether the turn of a ticket has come.
    async fn has_come(&self, ticket: u64, shared: bool) -> Result<bool, Fault> {
        let (read, write) = decode(self.read(self.line(TURNS)).await?, ticket);
        Ok(ticket == if shared { read } else { write })
    }

    /// The turn has not come: registers, and sleeps until somebody brings it.
    #[cold]
    async fn wait(&self, ticket: u64, shared: bool) -> Result<(), Fault> {
        let grant = self.control.flag(ControlTable::Grants(self.which), self.target);
        let entry = waiter(ticket, self.control.rank(), shared);
        let slot = self.slot(ticket);
        self.swap(slot, 0, entry).await?;
        if self.has_come(ticket, shared).await? && self.swap(slot, entry, 0).await? == entry {
            return Ok(());
        }
        self.control.until(grant, ticket + 1).await
    }

    /// Gives it back, taken with `ticket`.
    pub async fn release(&self, shared: bool, ticket: u64) -> Result<(), Fault> {
        let step = if shared { WRITE } else { READ + WRITE };
        let (_, write) = decode(self.add(self.line(TURNS), step).await?, ticket);
        self.pass(TicketTurn { ticket: write + 1, shared: !shared, exclusive: true }).await
    }

    /// Tells whose turn has come, if it sleeps.
    pub async fn pass(&self, turn: TicketTurn) -> Result<(), Fault> {
        let slot = self.slot(turn.ticket);
        let entry = self.read(slot).await?;
        let kind = if entry & 1 == 1 { turn.shared } else { turn.exclusive };
        let waits = ticket_of(entry) == Some(turn.ticket) && kind;
        if !waits || self.swap(slot, entry, 0).await? != entry {
            return Ok(());
        }
        let rank = rank_of(entry);
        if rank >= self.control.size() {
            return Err(self.control.corrupt(self.target, "lock's queue"));
        }
        self.control.tell(rank, ControlTable::Grants(self.which), self.target, turn.ticket + 1)
    }

    async fn add(&self, index: usize, operand: u64) -> Result<u64, Fault> {
        self.control.add(self.target, index, operand).await
    }

    async fn swap(&self, index: usize, old: u64, new: u64) -> Result<u64, Fault> {
        self.control.swap(self.target, index, old, new).await
    }

    /// A word as it is now: by an atomic operation, which is ordered with the others.
    async fn read(&self, index: usize) -> Result<u64, Fault> {
        self.add(index, 0).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_told_from_their_sum() {
        let word = |read: u64, write: u64| (read << 32).wrapping_add(write);
        for near in [0, 5, u64::from(u32::MAX) - 1, 1 << 32, 7 << 32 | 3, 1 << 38] {
            for (read, write) in [(near, near), (near + 3, near), (near + 2, near + 1)] {
                for ticket in [near, near + 4, near + (1 << 24)] {
                    assert_eq!(decode(word(read, write), ticket), (read, write), "near {ticket}");
                }
            }
        }
        // Both advance at once, past the end of a half.
        let last = u64::from(u32::MAX);
        let turns = word(last, last).wrapping_add(READ + WRITE);
        assert_eq!(decode(turns, last), (last + 1, last + 1));
    }

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
