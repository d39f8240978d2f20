//! Flags of epochs between two ranks: "posted" to an origin, "completed" to a target, each counted.
//!
//! A flag counts epochs. For each pair of ranks and each direction there are two words. The parity of a flag's count decides to
//! which of the two words the flag is written.
//!
//! Two words suffice although the next flag may overtake a flag, because a rank that sends count k + 1 knows that the other rank
//! has received count k - 1. A rank posts again only after it has waited for its previous epoch, whose origin had received the flag
//! of the post. An origin completes again only after the target, which had waited for the previous epoch, has posted again. A rank
//! that reaches a fence ([`super::fence`]) has received the flags of the previous fence from all other ranks. Each of these ranks
//! sent its flag after it had received all flags of the fence before.

use crate::control::WindowControl;
use crate::control::layout::ControlTable;
use crate::core::WindowCore;
use std::cell::Cell;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_process::Error;

/// Encodes the word `completed`: the number of completed epochs, and the rails from which a word must also arrive before the last
/// of these epochs ends.
pub fn encode(count: u64, rails: u8) -> u64 {
    count << 8 | u64::from(rails)
}

/// Flags sent to one rank, and flags received from it.
#[derive(Default)]
struct ByRank {
    /// Counts sent to the rank: exposure epochs granted to it (`posted`), and completed access epochs to it (`completed`).
    posted: Cell<u64>,
    completed: Cell<u64>,
    /// Counts received from the rank: exposure epochs that it has granted (`started`), and access epochs that it has completed
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

    /// Reports to a rank that this rank has posted one more exposure epoch to that rank.
    pub fn tell_posted(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.ranks[rank].posted);
        Ok(self.control.tell(rank, ControlTable::Posted(count), self.core.rank(), count)?)
    }

    /// Counts one more exposure epoch posted to a rank, without a flag to that rank.
    pub fn count_posted(&self, rank: usize) {
        advance(&self.ranks[rank].posted);
    }

    /// Waits until a rank has posted one more exposure epoch to this rank.
    pub async fn hear_posted(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.ranks[rank].started);
        let flag = self.control.flag(ControlTable::Posted(count), rank);
        Ok(self.control.until(flag, count).await?)
    }

    /// Counts one more exposure epoch that a rank has posted or will post, without waiting for the rank's flag.
    pub fn count_started(&self, rank: usize) {
        advance(&self.ranks[rank].started);
    }

    /// Reports to a rank that this rank has completed one more access epoch to that rank.
    pub fn tell_completed(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.ranks[rank].completed);
        let value = encode(count, 0);
        Ok(self.control.tell(rank, ControlTable::Completed(count), self.core.rank(), value)?)
    }

    /// Returns the number of the next access epoch that this rank completes at another rank.
    pub fn next_completed(&self, rank: usize) -> u64 {
        self.ranks[rank].completed.get() + 1
    }

    /// Counts one more access epoch that this rank has completed at a rank, and for which the flag has been sent.
    pub fn count_completed(&self, rank: usize) {
        advance(&self.ranks[rank].completed);
    }

    /// Waits until a rank has completed one more access epoch.
    pub async fn hear_completed(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.ranks[rank].awaited);
        self.hear_epoch(rank, count).await
    }

    /// Returns true if each of `ranks` has completed one more access epoch by now. If so, counts the flags as received.
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

    /// Test: each rank posts an exposure epoch to its left neighbour. The left neighbour then completes its access epoch to the
    /// rank.
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
