//! A fair shared/exclusive lock in control words of the rank to which it belongs. That rank takes no action.
//!
//! A ticket lock for readers and writers (after Mellor-Crummey and Scott, 1991) in which each waiter sleeps on its own flag instead
//! of polling:
//!
//! ```text
//!   users   next ticket               shared t:     waits for read = t, then sets read = t + 1
//!   read    may enter shared          exclusive t:  waits for write = t
//!   write   may enter exclusive       release:      write + 1; an exclusive holder also read + 1
//!
//!   slots[t mod n]   0, or the waiter with ticket t: registered by the waiter, removed either by the waiter (it finds
//!                    that its turn has come) or by the releaser that advances the turn (and sets the grant flag)
//! ```
//! Read and write are one word, `turns` = read x 2^32 + write, so that one operation advances both. Each count differs from any
//! outstanding ticket by less than 2^31, so the word is enough to decode both full counts ([`decode`]).
//!
//! Tickets are served in order, so no rank starves. Readers with consecutive tickets hold the lock together.
//!
//! Contract. Each rank has at most one ticket of a lock at a time, so `n` slots suffice. A waiter writes its slot before it checks
//! for its turn, and a releaser advances the turn before it reads the slot. Both use atomic operations of the fabric, so at least
//! one of the two sees the other. A slot is emptied by compare-and-swap, so exactly one of the two ends the wait. So a grant flag
//! is written only for a waiter that still waits, and never after the end of its wait.
//!
//! Cost without contention: two operations to take the lock, and two to give it back (each time a fetch-and-add and a read). With
//! contention: two more operations by the waiter, and an operation and a flag by the releaser. If this process's processor sees the
//! words, attempts create no future: a compare-and-swap takes the lock, and a fetch-and-add gives it back ([`MappedTicketLock`]).

use super::LockKind;
use crate::control::WindowControl;
use crate::control::layout::{ControlTable, TicketLockKind, row};
use std::sync::atomic::Ordering::SeqCst;
use weft_fabric::{Fabric, Fault, PeerWords};

/// Indices of the words in the line of a lock.
const USERS: usize = 0;
const TURNS: usize = 1;
/// Increments of the two counts in the word of turns.
const READ: u64 = 1 << 32;
const WRITE: u64 = 1;

impl LockKind {
    /// Returns the ticket that may enter with a lock of this kind: `read` or `write`.
    #[inline]
    fn turn(self, read: u64, write: u64) -> u64 {
        match self {
            LockKind::Shared => read,
            LockKind::Exclusive => write,
        }
    }
}

/// Returns the counts `read` and `write` in the word of turns. Both must be within 2^31 of `near`.
fn decode(turns: u64, near: u64) -> (u64, u64) {
    let whole = |low: u64| {
        near.wrapping_add_signed(i64::from((low as u32).wrapping_sub(near as u32) as i32))
    };
    let write = whole(turns);
    (whole(turns.wrapping_sub(write) >> 32), write)
}

/// Result of an attempt to take or give back a lock without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAttempt {
    /// The attempt failed, and changed nothing.
    Not,
    /// The attempt succeeded, with this ticket.
    Done(u64),
    /// The attempt succeeded, with this ticket. The turn of another ticket has come, and its owner may sleep, so
    /// [`TicketLock::pass`] must follow.
    Tell(u64, TicketTurn),
}

/// The turn of `ticket`: the owner of this ticket may now enter shared, exclusively, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TicketTurn {
    ticket: u64,
    shared: bool,
    exclusive: bool,
}

/// Number of bits for the rank in a waiter's word. The word contains ticket + 1, the rank, and a bit for a shared lock.
const RANK_BITS: u32 = 24;

fn waiter(ticket: u64, rank: usize, kind: LockKind) -> u64 {
    (ticket + 1) << (RANK_BITS + 1) | (rank as u64) << 1 | u64::from(kind == LockKind::Shared)
}

fn ticket_of(waiter: u64) -> Option<u64> {
    (waiter >> (RANK_BITS + 1)).checked_sub(1)
}

fn rank_of(waiter: u64) -> usize {
    (waiter >> 1) as usize & ((1 << RANK_BITS) - 1)
}

/// Returns the index of a word in a lock's line.
#[inline]
fn line(which: TicketLockKind, index: usize) -> usize {
    8 * which as usize + index
}

/// Returns the index of the word in which the waiter with a ticket is registered.
#[inline]
fn slot(which: TicketLockKind, size: usize, ticket: u64) -> usize {
    ControlTable::Slots(which).word(size, ticket as usize & (row(size) - 1))
}

/// A lock of a rank whose words this process sees, for attempts without waiting.
pub struct MappedTicketLock<'w> {
    pub words: &'w PeerWords,
    pub which: TicketLockKind,
    /// Number of ranks of the window.
    pub size: usize,
}

impl MappedTicketLock<'_> {
    /// Takes the lock, if that is possible without waiting.
    #[inline]
    pub fn try_acquire(&self, kind: LockKind) -> LockAttempt {
        let users = &self.words[line(self.which, USERS)];
        let turns = &self.words[line(self.which, TURNS)];
        let next = users.load(SeqCst);
        let (read, write) = decode(turns.load(SeqCst), next);
        // If the turn of the next ticket has come, it remains the turn of this ticket until a rank takes the ticket.
        if next != kind.turn(read, write)
            || users.compare_exchange(next, next + 1, SeqCst, SeqCst).is_err()
        {
            return LockAttempt::Not;
        }
        if kind == LockKind::Exclusive {
            return LockAttempt::Done(next);
        }
        turns.fetch_add(READ, SeqCst);
        self.told(next, TicketTurn { ticket: next + 1, shared: true, exclusive: false })
    }

    /// Gives back the lock that was taken with `ticket`.
    #[inline]
    pub fn try_release(&self, kind: LockKind, ticket: u64) -> LockAttempt {
        let turns = &self.words[line(self.which, TURNS)];
        let turn = if kind == LockKind::Shared {
            let (_, write) = decode(turns.fetch_add(WRITE, SeqCst), ticket);
            TicketTurn { ticket: write + 1, shared: false, exclusive: true }
        } else {
            turns.fetch_add(READ + WRITE, SeqCst);
            TicketTurn { ticket: ticket + 1, shared: true, exclusive: true }
        };
        self.told(ticket, turn)
    }

    /// Finishes an attempt that has advanced a turn, because the owner of that turn may have to be notified.
    #[inline]
    fn told(&self, ticket: u64, turn: TicketTurn) -> LockAttempt {
        match self.words[slot(self.which, self.size, turn.ticket)].load(SeqCst) {
            0 => LockAttempt::Done(ticket),
            _ => LockAttempt::Tell(ticket, turn),
        }
    }
}

/// A lock of a rank.
pub struct TicketLock<'w, F: Fabric> {
    pub control: &'w WindowControl<F>,
    pub which: TicketLockKind,
    /// The rank to which the lock belongs.
    pub target: usize,
}

impl<F: Fabric> TicketLock<'_, F> {
    fn line(&self, index: usize) -> usize {
        line(self.which, index)
    }

    fn slot(&self, ticket: u64) -> usize {
        slot(self.which, self.control.size(), ticket)
    }

    /// Takes the lock. Returns the ticket, which is needed to give the lock back.
    pub async fn acquire(&self, kind: LockKind) -> Result<u64, Fault> {
        let ticket = self.add(self.line(USERS), 1).await?;
        if !self.has_come(ticket, kind).await? {
            self.wait(ticket, kind).await?;
        }
        if kind == LockKind::Shared {
            let (read, _) = decode(self.add(self.line(TURNS), READ).await?, ticket);
            self.pass(TicketTurn { ticket: read + 1, shared: true, exclusive: false }).await?;
        }
        Ok(ticket)
    }

    /// Returns true if the turn of a ticket has come.
    async fn has_come(&self, ticket: u64, kind: LockKind) -> Result<bool, Fault> {
        let (read, write) = decode(self.read(self.line(TURNS)).await?, ticket);
        Ok(ticket == kind.turn(read, write))
    }

    /// Registers this rank, whose turn has not come, and sleeps until another rank sets this rank's grant flag.
    #[cold]
    async fn wait(&self, ticket: u64, kind: LockKind) -> Result<(), Fault> {
        let grant = self.control.flag(ControlTable::Grants(self.which), self.target);
        let entry = waiter(ticket, self.control.rank(), kind);
        let slot = self.slot(ticket);
        self.swap(slot, 0, entry).await?;
        if self.has_come(ticket, kind).await? && self.swap(slot, entry, 0).await? == entry {
            return Ok(());
        }
        self.control.until(grant, ticket + 1).await
    }

    /// Gives back the lock that was taken with `ticket`.
    pub async fn release(&self, kind: LockKind, ticket: u64) -> Result<(), Fault> {
        let shared = kind == LockKind::Shared;
        let step = if shared { WRITE } else { READ + WRITE };
        let (_, write) = decode(self.add(self.line(TURNS), step).await?, ticket);
        self.pass(TicketTurn { ticket: write + 1, shared: !shared, exclusive: true }).await
    }

    /// Notifies the owner of the turn that has come, if the owner sleeps.
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

    /// Returns the present value of a word, by an atomic operation, so that the read is ordered with the other atomics.
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
        // Both counts advance at once, beyond the end of their halves of the word.
        let last = u64::from(u32::MAX);
        let turns = word(last, last).wrapping_add(READ + WRITE);
        assert_eq!(decode(turns, last), (last + 1, last + 1));
    }

    #[test]
    fn a_waiter_fits_into_a_word() {
        use LockKind::{Exclusive, Shared};
        for (ticket, rank, kind) in
            [(0, 0, Exclusive), (7, (1 << 24) - 1, Shared), (1 << 38, 5, Shared)]
        {
            let word = waiter(ticket, rank, kind);
            assert_eq!(
                (ticket_of(word), rank_of(word), word & 1 == 1),
                (Some(ticket), rank, kind == Shared)
            );
        }
        assert_eq!(ticket_of(0), None);
    }
}
