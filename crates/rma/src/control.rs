//! What the ranks of a window tell each other beside the data: words of one rank that the others write and add to without it,
//! and messages that ask it to do what nobody else can.
//!
//! ```text
//!   layout.rs           which word is where: locks, the table of attached memory, flags of epochs
//!   own_words.rs        this rank's, and the flags in them that it waits for
//!   remote_atomics.rs   another rank's: by this processor where it sees them, else by the fabric
//!   packed_change.rs    what an accumulate does, packed
//!   request.rs          what a target-assisted request says
//!   messages.rs         how it is sent and answered, and how a rank serves others
//! ```
//! They are what MPI leaves to the library of sections 12.5 (synchronization) and 12.7.3 (progress).
//!
//! Contract: a word is written by whoever the layout says and never goes back. Nothing here knows an epoch or a window's
//! memory; what a request does is carried out by whoever serves (`access/target_assisted.rs`).

pub mod layout;
pub mod messages;
mod own_words;
pub mod packed_change;
pub mod remote_atomics;
pub mod request;

pub use self::own_words::OwnWords;

use self::layout::{BELL, ControlTable, word};
use crate::core::WindowCore;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use weft_fabric::{Counter, Fabric, FabricExt, Fault, PeerWords, RemoteAddr, RemoteFlag, Sge};

/// One rank's control words.
struct Remote {
    at: RemoteAddr,
    /// Rails that have words of their own among them; at least 1.
    rails: usize,
    /// Themselves, if this process sees them.
    seen: OnceCell<Option<PeerWords>>,
}

/// The control words of all ranks of a window, and the requests among them.
pub struct WindowControl<F: Fabric> {
    core: Rc<WindowCore<F>>,
    own: OwnWords<F>,
    ranks: Box<[Remote]>,
    /// Answers that were asked for: their tags ([`messages`]).
    answers: Cell<i32>,
}

impl<F: Fabric> WindowControl<F> {
    /// `ranks`: where each rank's control words are, and how many rails have words there.
    pub fn new(
        core: Rc<WindowCore<F>>,
        own: OwnWords<F>,
        ranks: impl Iterator<Item = (RemoteAddr, usize)>,
    ) -> WindowControl<F> {
        let remote = |(at, rails)| Remote { at, rails, seen: OnceCell::new() };
        WindowControl { core, own, ranks: ranks.map(remote).collect(), answers: Cell::new(0) }
    }

    /// This rank's.
    pub fn own(&self) -> &OwnWords<F> {
        &self.own
    }

    /// Ranks of the window.
    #[inline]
    pub fn size(&self) -> usize {
        self.ranks.len()
    }

    /// This rank in the window.
    #[inline]
    pub fn rank(&self) -> usize {
        self.core.rank()
    }

    /// Rails that have words of their own at a rank.
    pub fn rails(&self, rank: usize) -> usize {
        self.ranks[rank].rails
    }

    /// The control words of a rank, if this process sees them.
    #[inline(always)]
    pub fn seen(&self, rank: usize) -> Option<&PeerWords> {
        match self.ranks[rank].seen.get() {
            Some(known) => known.as_ref(),
            None => self.look(rank),
        }
    }

    #[cold]
    fn look(&self, rank: usize) -> Option<&PeerWords> {
        let Remote { at, seen, .. } = &self.ranks[rank];
        let words = layout::words(self.ranks.len());
        let look = || self.core.fabric().words(self.core.peer(rank), *at, words);
        seen.get_or_init(look).as_ref()
    }

    /// Adds to a rank's word; what it was.
    pub async fn add(&self, rank: usize, index: usize, operand: u64) -> Result<u64, Fault> {
        if let Some(words) = self.seen(rank) {
            return Ok(remote_atomics::add_seen(&words[index], operand));
        }
        let (peer, at) = self.find(rank, index);
        remote_atomics::add(self.core.endpoint(), peer, at, operand).await
    }

    /// Replaces a rank's word if it is `old`; what it was.
    pub async fn swap(&self, rank: usize, index: usize, old: u64, new: u64) -> Result<u64, Fault> {
        if let Some(words) = self.seen(rank) {
            return Ok(remote_atomics::swap_seen(&words[index], old, new));
        }
        let (peer, at) = self.find(rank, index);
        remote_atomics::swap(self.core.endpoint(), peer, at, old, new).await
    }

    /// Reads `count` words of a rank from `index` on, in no order with what others write.
    pub async fn read(&self, rank: usize, index: usize, count: usize) -> Result<Vec<u64>, Fault> {
        let (peer, at) = self.find(rank, index);
        remote_atomics::read(self.core.endpoint(), peer, at, count).await
    }

    fn find(&self, rank: usize, index: usize) -> (usize, RemoteAddr) {
        (self.core.peer(rank), word(self.ranks[rank].at, index))
    }

    /// The counter of this rank's own flag that `index` tells it by.
    pub fn flag(&self, table: ControlTable, index: usize) -> Counter {
        self.own.flag(table, index)
    }

    /// Waits until one of this rank's flags has come to `value`.
    pub async fn until(&self, flag: Counter, value: u64) -> Result<(), Fault> {
        self.core.endpoint().until(flag, value).await
    }

    /// What a rank says cannot be.
    #[cold]
    pub fn corrupt(&self, rank: usize, what: &'static str) -> Fault {
        Fault::corrupt(self.core.peer(rank), what)
    }

    /// Word `index` of one of a rank's tables, as this process writes it.
    pub fn remote_flag(&self, rank: usize, table: ControlTable, index: usize) -> RemoteFlag {
        let at = word(self.ranks[rank].at, table.word(self.ranks.len(), index));
        RemoteFlag { at, waking: true }
    }

    /// Writes this rank's word of one of a rank's tables, which may sleep for it.
    pub fn tell(
        &self,
        rank: usize,
        table: ControlTable,
        index: usize,
        value: u64,
    ) -> Result<(), Fault> {
        let flag = self.remote_flag(rank, table, index);
        let (fabric, peer) = (self.core.fabric(), self.core.peer(rank));
        fabric.write_flag(peer, Sge::EMPTY, flag.at, flag, value, None)
    }

    /// Wakes a rank that may sleep while it looks for a change of words.
    #[cold]
    pub fn ring(&self, rank: usize) {
        if rank == self.rank() {
            return self.core.comm().engine().wake_siblings();
        }
        let Some(remote) = self.ranks.get(rank) else { return };
        let bell = RemoteFlag { at: word(remote.at, BELL), waking: true };
        let (fabric, nothing) = (self.core.fabric(), Sge::EMPTY);
        // Who cannot be rung has ended: the fault is found by whoever waits for it.
        let _ = fabric.write_flag(self.core.peer(rank), nothing, bell.at, bell, 1, None);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::layout::TABLE;
    use super::messages::{Answers, Taker};
    use super::request::{ControlRequest, RmaRequest, words};
    use super::*;
    use crate::core::target_location::TargetLocation;
    use crate::options::WindowOptions;
    use crate::testing::{AINT, ALL, Numbers, Program, end, numbers, parts, run_at, ty};
    use weft_process::{Comm, class};

    /// Words are added to, replaced and read, and flags are heard, at every rank by every other one.
    #[derive(Clone, Copy)]
    struct Words;

    impl Program for Words {
        async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
            let (core, control) = parts(&comm, WindowOptions::default()).await;
            let (me, size) = (core.rank(), core.size());
            let word = TABLE + 1;
            for rank in 0..size {
                control.add(rank, word, 1 + me as u64).await.unwrap();
            }
            core.comm().barrier().await.unwrap();
            let sum = (1..=size as u64).sum::<u64>();
            let right = (me + 1) % size;
            assert_eq!(control.read(right, word, 1).await.unwrap(), [sum]);
            assert_eq!(control.swap(right, word, sum, 7).await.unwrap(), sum);
            assert_eq!(control.swap(right, word, sum, 8).await.unwrap(), 7);
            for count in 1..=3 {
                control.tell(right, ControlTable::Posted(count), me, count).unwrap();
                let left = (me + size - 1) % size;
                control
                    .until(control.flag(ControlTable::Posted(count), left), count)
                    .await
                    .unwrap();
                core.comm().barrier().await.unwrap();
            }
            end(&core).await;
        }
    }

    #[test]
    fn words_are_reached_from_everywhere() {
        ALL.into_iter().for_each(|place| run_at(place, 3, Words));
    }

    /// Rank 0 serves the others; some of it it refuses.
    #[derive(Clone, Copy)]
    struct Service;

    impl Program for Service {
        async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
            let (core, control) = parts(&comm, WindowOptions::default()).await;
            if core.rank() == 0 {
                let perform = async |request: &ControlRequest, more: Sge, answer: Sge| {
                    let [at, len] = words(more);
                    assert_eq!((request.runs, len), (1, 16));
                    answer.part(8, 16).fill(&[at as u8; 16]);
                    Ok(at < 100)
                };
                let mut answers = Answers::default();
                for _ in 0..2 * (core.size() - 1) {
                    let taken = control.take_one(Taker::Service, &mut answers, perform).await;
                    assert!(taken.unwrap().is_some());
                }
                control.all_answered(answers).await.unwrap();
                control.stop_serving().await.unwrap();
                control.serve(perform).await.unwrap();
            } else {
                let (mine, ty) = (Numbers::new(&comm, &[0, 0]), ty(AINT));
                let location = TargetLocation { rank: 0, disp: 0, count: 2, ty: &ty };
                let into = Some(mine.sge());
                control.ask_for(1, &location, RmaRequest::Get, into).await.unwrap();
                assert_eq!(numbers(mine.sge()), [0x0101_0101_0101_0101; 2]);
                let refused = control.ask_for(100, &location, RmaRequest::Get, into).await;
                assert_eq!(refused.unwrap_err().class(), class::RMA_RANGE);
            }
            end(&core).await;
        }
    }

    #[test]
    fn requests_are_answered_or_refused() {
        ALL.into_iter().for_each(|place| run_at(place, 3, Service));
    }
}
