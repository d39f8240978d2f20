//! Flags of epochs between two ranks: "posted" to an origin, "completed" to a target, each counted.
//!
//! Flags count epochs, by parity in one of two words for each pair of ranks and direction.
//!
//! Two words suffice although a flag may be overtaken by the next flag, because a rank that sends count k + 1 knows that the other
//! rank has received k - 1. A rank posts again only after it has waited for its previous epoch, whose origin had received the flag
//! of the post. An origin completes again only after the target, which had waited for the previous epoch, has posted again. Of two
//! fences in a row ([`super::fence`]), the first is complete for a rank that has reached the second.

use super::ordered_flag::encode;
use crate::control::WindowControl;
use crate::control::layout::ControlTable;
use crate::core::WindowCore;
use std::cell::Cell;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_process::Error;

/// Flags sent to one rank, and flags received from it.
#[derive(Default)]
struct ByRank {
    /// Sent: number of exposure epochs granted to the rank (`posted`), and of completed access epochs to the rank (`completed`).
    posted: Cell<u64>,
    completed: Cell<u64>,
    /// Received: number of exposure epochs that the rank has granted (`started`), and of access epochs that it has completed
    /// (`awaited`).
    started: Cell<u64>,
    awaited: Cell<u64>,
}

/// Advances a count by one. Returns the new value.
fn advance(count: &Cell<u64>) -> u64 {
    count.set(count.get() + 1);
    count.get()
}

/// The flags between this rank and each other rank.
pub struct PairFlags<F: Fabric> {
    pub core: Rc<WindowCore<F>>,
    pub control: Rc<WindowControl<F>>,
    ranks: Box<[ByRank]>,
}

impl<F: Fabric> PairFlags<F> {
    /// Creates the flags. No flag has been sent.
    pub fn new(core: Rc<WindowCore<F>>, control: Rc<WindowControl<F>>) -> PairFlags<F> {
        let ranks = (0..core.size()).map(|_| ByRank::default()).collect();
        PairFlags { core, control, ranks }
    }

    /// Reports to a rank that this rank has posted to it once more.
    pub fn tell_posted(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.ranks[rank].posted);
        Ok(self.control.tell(rank, ControlTable::Posted(count), self.core.rank(), count)?)
    }

    /// Notes that this rank has posted once more, without telling the other rank.
    pub fn count_posted(&self, rank: usize) {
        advance(&self.ranks[rank].posted);
    }

    /// Waits until a rank has posted to this rank once more.
    pub async fn hear_posted(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.ranks[rank].started);
        let flag = self.control.flag(ControlTable::Posted(count), rank);
        Ok(self.control.until(flag, count).await?)
    }

    /// Notes that a rank has posted once more, or will, without waiting for its flag.
    pub fn count_started(&self, rank: usize) {
        advance(&self.ranks[rank].started);
    }

    /// Reports to a rank that this rank has completed once more.
    pub fn tell_completed(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.ranks[rank].completed);
        let value = encode(count, 0);
        Ok(self.control.tell(rank, ControlTable::Completed(count), self.core.rank(), value)?)
    }

    /// Returns the number of the epoch that this rank completes next at another rank.
    pub fn next_completed(&self, rank: usize) -> u64 {
        self.ranks[rank].completed.get() + 1
    }

    /// Notes that this rank has completed its epoch at a rank, and has sent the flag.
    pub fn count_completed(&self, rank: usize) {
        advance(&self.ranks[rank].completed);
    }

    /// Waits until a rank has completed once more.
    pub async fn hear_completed(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.ranks[rank].awaited);
        self.hear_epoch(rank, count).await
    }

    /// Returns true if each of `ranks` has completed once more by now. If so, counts the flags as received.
    pub fn are_completed(&self, ranks: &[usize]) -> bool {
        let over = ranks.iter().all(|&rank| {
            let next = self.ranks[rank].awaited.get() + 1;
            self.is_heard(rank, next)
        });
        if over {
            ranks.iter().for_each(|&rank| _ = advance(&self.ranks[rank].awaited));
        }
        over
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::options::WindowOptions;
    use crate::testing::{ALL, Program, end, parts, run_at};
    use weft_process::Comm;

    /// Each rank posts to its left neighbour, which completes.
    #[derive(Clone, Copy)]
    struct Chain;

    impl Program for Chain {
        async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
            let (core, control) = parts(&comm, WindowOptions::default()).await;
            let (me, size) = (core.rank(), core.size());
            let (right, left) = ((me + 1) % size, (me + size - 1) % size);
            let flags = PairFlags::new(core.clone(), control);
            for round in 0..6 {
                flags.tell_posted(left).unwrap();
                flags.hear_posted(right).await.unwrap();
                assert_eq!(flags.next_completed(right), round + 1);
                flags.tell_completed(right).unwrap();
                core.comm().barrier().await.unwrap();
                if !flags.are_completed(&[left]) {
                    flags.hear_completed(left).await.unwrap();
                }
            }
            end(&core).await;
        }
    }

    #[test]
    fn each_flag_is_heard_once() {
        ALL.into_iter().for_each(|place| run_at(place, 4, Chain));
    }
}
