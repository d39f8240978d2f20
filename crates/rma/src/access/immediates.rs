//! Puts that the target's adapter counts: writes with immediate, for Fence-RI ([`crate::epochs::fence`]).

use std::cell::{Cell, RefCell};

/// Writes with immediate by this process, in the open epoch of fences.
pub struct EpochImmediates {
    /// Parity of the epoch, 0 or 1, which selects its immediate.
    parity: Cell<u32>,
    /// Number of writes to each rank; empty before the first write.
    sent: RefCell<Vec<u32>>,
    ranks: usize,
}

impl EpochImmediates {
    pub fn new(ranks: usize) -> EpochImmediates {
        EpochImmediates { parity: Cell::default(), sent: RefCell::default(), ranks }
    }

    /// Counts one more write to a rank. Returns the index of the rank's immediate (0 or 1) that the write carries.
    pub fn count(&self, rank: usize) -> u32 {
        let mut sent = self.sent.borrow_mut();
        sent.resize(self.ranks, 0);
        sent[rank] += 1;
        self.parity.get()
    }

    /// Takes the number of writes to each rank in this epoch.
    pub fn take(&self) -> Vec<u32> {
        std::mem::take(&mut *self.sent.borrow_mut())
    }

    /// Switches to the other immediate for the next epoch. Returns the index of the immediate of this epoch.
    pub fn next_epoch(&self) -> u32 {
        self.parity.replace(1 - self.parity.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_count_apart() {
        let writes = EpochImmediates::new(3);
        assert_eq!([writes.count(2), writes.count(2)], [0, 0]);
        assert_eq!(writes.take(), [0, 0, 2]);
        assert_eq!((writes.next_epoch(), writes.count(0)), (0, 1));
        assert_eq!(
            (writes.take(), writes.next_epoch(), writes.next_epoch()),
            (vec![1, 0, 0], 1, 0)
        );
    }
}
