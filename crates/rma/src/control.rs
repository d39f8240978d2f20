//! Control information that the ranks of a window exchange separately from the data. Other ranks write the words of a rank, and add
//! to them, without the help of that rank. A request asks a rank for an operation that only the rank itself can carry out.
//!
//! ```text
//!   layout.rs           the place of each word: locks, the table of attached memory, flags of epochs
//!   own_words.rs        this rank's words, and the flags in them on which it waits
//!   remote_atomics.rs   words of other ranks that this processor does not see, by the fabric
//!   packed_change.rs    the change of an accumulate, packed
//!   request.rs          format of a target-assisted request
//!   messages.rs         sending and answering requests, and the service of a rank
//! ```
//! Words and requests implement the parts of sections 12.5 (synchronization) and 12.7.3 (progress) that MPI leaves to the library.
//!
//! Contract: a word is written only by the ranks that the layout names, and never decreases. This part knows neither epochs nor a
//! window's memory. The service carries out the requests (`access/target_assisted.rs`).

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
use std::sync::atomic::Ordering::SeqCst;
use weft_fabric::{
    Counter, Fabric, FabricExt, Fault, PeerWords, RemoteAddr, RemoteFlag, RemoteWrite, Sge,
};

/// Control words of one rank.
struct Remote {
    at: RemoteAddr,
    /// Number of rails, at least 1. Each rail except the first has separate words.
    rails: usize,
    /// The words themselves, if this process sees them.
    seen: OnceCell<Option<PeerWords>>,
}

/// The control words of all ranks of a window, and the requests among them.
pub struct WindowControl<F: Fabric> {
    core: Rc<WindowCore<F>>,
    own: OwnWords<F>,
    ranks: Box<[Remote]>,
    /// Number of the next answer's tag ([`messages`]).
    answers: Cell<i32>,
}

impl<F: Fabric> WindowControl<F> {
    /// Creates the control words of a window. `ranks`: the address of each rank's control words, and the number of rails with words
    /// there.
    pub fn new(
        core: Rc<WindowCore<F>>,
        own: OwnWords<F>,
        ranks: impl Iterator<Item = (RemoteAddr, usize)>,
    ) -> WindowControl<F> {
        let remote = |(at, rails)| Remote { at, rails, seen: OnceCell::new() };
        WindowControl { core, own, ranks: ranks.map(remote).collect(), answers: Cell::new(0) }
    }

    /// Returns this rank's control words.
    pub fn own(&self) -> &OwnWords<F> {
        &self.own
    }

    /// Returns the number of ranks of the window.
    #[inline]
    pub fn size(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the rank of this process in the window.
    #[inline]
    pub fn rank(&self) -> usize {
        self.core.rank()
    }

    /// Returns the number of rails with words at a rank.
    pub fn rails(&self, rank: usize) -> usize {
        self.ranks[rank].rails
    }

    /// Returns the control words of a rank, if this process sees them.
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

    /// Adds `operand` to a rank's word. Returns the former value.
    pub async fn add(&self, rank: usize, index: usize, operand: u64) -> Result<u64, Fault> {
        if let Some(words) = self.seen(rank) {
            return Ok(words[index].fetch_add(operand, SeqCst));
        }
        let (peer, at) = self.find(rank, index);
        remote_atomics::add(self.core.endpoint(), peer, at, operand).await
    }

    /// Replaces a rank's word by `new` if its value is `old`. Returns the former value.
    pub async fn swap(&self, rank: usize, index: usize, old: u64, new: u64) -> Result<u64, Fault> {
        if let Some(words) = self.seen(rank) {
            let (Ok(was) | Err(was)) = words[index].compare_exchange(old, new, SeqCst, SeqCst);
            return Ok(was);
        }
        let (peer, at) = self.find(rank, index);
        remote_atomics::swap(self.core.endpoint(), peer, at, old, new).await
    }

    /// Reads `count` words of a rank from `index` on. The read is not ordered with respect to writes of other ranks.
    pub async fn read(&self, rank: usize, index: usize, count: usize) -> Result<Vec<u64>, Fault> {
        let (peer, at) = self.find(rank, index);
        remote_atomics::read(self.core.endpoint(), peer, at, count).await
    }

    fn find(&self, rank: usize, index: usize) -> (usize, RemoteAddr) {
        (self.core.peer(rank), word(self.ranks[rank].at, index))
    }

    /// Returns the counter of this rank's own flag `index` in `table`.
    pub fn flag(&self, table: ControlTable, index: usize) -> Counter {
        self.own.flag(table, index)
    }

    /// Waits until one of this rank's flags has reached `value`.
    pub async fn until(&self, flag: Counter, value: u64) -> Result<(), Fault> {
        self.core.endpoint().until(flag, value).await
    }

    /// Returns the fault of a rank that sent an impossible value.
    #[cold]
    pub fn corrupt(&self, rank: usize, what: &'static str) -> Fault {
        Fault::corrupt(self.core.peer(rank), what)
    }

    /// Returns the flag that this process writes at another rank: word `index` of `table`.
    pub fn remote_flag(&self, rank: usize, table: ControlTable, index: usize) -> RemoteFlag {
        let at = word(self.ranks[rank].at, table.word(self.ranks.len(), index));
        RemoteFlag { at, waking: true }
    }

    /// Writes this rank's word in a table of another rank, and wakes the other rank.
    pub fn tell(
        &self,
        rank: usize,
        table: ControlTable,
        index: usize,
        value: u64,
    ) -> Result<(), Fault> {
        let flag = self.remote_flag(rank, table, index);
        let (fabric, peer) = (self.core.fabric(), self.core.peer(rank));
        fabric.write_flag(peer, &RemoteWrite::new(Sge::EMPTY, flag.at, None), &flag.with(value))
    }

    /// Wakes a rank that may sleep while it waits for a change of words.
    #[cold]
    pub fn ring(&self, rank: usize) {
        if rank == self.rank() {
            return self.core.comm().engine().wake_siblings();
        }
        let Some(remote) = self.ranks.get(rank) else { return };
        let bell = RemoteFlag { at: word(remote.at, BELL), waking: true };
        let (fabric, nothing) = (self.core.fabric(), Sge::EMPTY);
        // A rank that cannot be rung has ended. The error is ignored here, because a rank that waits for the ended rank detects the
        // fault.
        let nothing = RemoteWrite::new(nothing, bell.at, None);
        let _ = fabric.write_flag(self.core.peer(rank), &nothing, &bell.with(1));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::layout::TABLE;
    use super::messages::{Answers, Taker};
    use super::request::{ControlRequest, RmaRequest};
    use super::*;
    use crate::core::target_location::TargetLocation;
    use crate::options::WindowOptions;
    use crate::testing::{AINT, ALL, Numbers, Program, end, numbers, parts, run_at, ty};
    use weft_process::{Comm, class};

    /// Test: every rank adds to, replaces and reads words of every other rank, and receives the flags of every other rank.
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

    /// Test: rank 0 serves the other ranks, and refuses some requests.
    #[derive(Clone, Copy)]
    struct Service;

    impl Program for Service {
        async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
            let (core, control) = parts(&comm, WindowOptions::default()).await;
            if core.rank() == 0 {
                let perform = async |request: &ControlRequest, more: Sge, answer: Sge| {
                    let [at, len] = weft_collective::words::read_array(more);
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
