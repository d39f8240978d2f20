//! Choice among ranks that share memory by the times of earlier calls, instead of the model of copies alone.
//!
//! The calls with the same [`TrialKey`] on one communicator are numbered. The number determines what all ranks do in a call:
//!
//! ```text
//!   calls    0 .. 7      8       9           10 .. 17  18 .. 25  26 .. 33  34 .. 41   42           43 ...
//!            predicted   B       predicted   A         B         A         B          agreement    the quickest,
//!                                            each rank times its calls in a run       by A         without any clock
//!                                            except the first three
//! ```
//! A is the predicted algorithm. Every candidate serves some of the first ten calls, so that its buffers are touched by then.
//!
//! The candidates are algorithms whose predicted time is near the lowest. In the call of the agreement, the ranks add up their
//! median times (whole nanoseconds, so that all ranks get the same sums) by messages, before the operation itself. A rank can begin
//! the next call only after this exchange, so all ranks change the algorithm in the same call. Another algorithm must be faster
//! than the predicted algorithm by a tenth.
//!
//! The numbers count calls of blocking operations, which all ranks begin in the same order. The learned algorithm is used for calls
//! of the same length. This result is forgotten when the distance between the ranks changes or when `RECORDS` later keys need the
//! place.

use crate::selection_key::Near;
use crate::{AlgorithmChoice, CallKey, CollectiveKind};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::time::Instant;

/// Maximum number of algorithms that are tried for a call.
pub const CANDIDATES: usize = 3;
/// Maximum ratio of predicted times up to which an algorithm is tried.
pub const WITHIN: f64 = 2.0;

/// Number of first calls by each candidate. The calls by the predicted algorithm come first, so a few calls cost no trials. By then it
/// has all pages of its buffers. The other candidates have no buffers of their own; a call by each touches what it needs.
const TOUCHING: [u32; CANDIDATES] = [8, 1, 1];
/// Number of calls before the trials.
const BEFORE: u32 = TOUCHING[0] + TOUCHING[1] + TOUCHING[2];
/// Number of consecutive calls by one algorithm, and number of first calls among these that are not timed, because caches are cold.
const RUN: u32 = 8;
const UNTIMED: u32 = 3;
/// Number of runs of each algorithm.
const RUNS: u32 = 2;
/// Number of timed calls of each algorithm.
const TIMED: usize = (RUNS * (RUN - UNTIMED)) as usize;
/// Number of keys that have a record at the same time.
const RECORDS: usize = 64;

/// Properties of a call on which its time depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialKey {
    /// The operation.
    pub operation: CollectiveKind,
    /// Lengths and operator.
    pub asked: CallKey,
    /// Facts that the ranks know of each other.
    pub near: Near,
}

impl TrialKey {
    /// Returns true if algorithms may be tried for the calls of `ranks` ranks. In that case all algorithms give the same bits, and
    /// the ranks have exchanged all facts on which the choice depends.
    pub fn may_try(&self, ranks: usize) -> bool {
        use CollectiveKind::*;
        let free = match self.operation {
            Bcast | Gather | Scatter | Allgather | Alltoall => true,
            Reduce | Allreduce => self.asked.order.is_free(ranks),
            _ => false,
        };
        free && self.near.direct.is_some()
    }
}

/// Algorithms that are tried, the predicted algorithm first.
pub type TrialCandidates = SmallVec<[AlgorithmChoice; CANDIDATES]>;

/// Part of a call in the trials, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrialStep {
    /// An untimed call by the predicted algorithm, or by a candidate while caches are cold.
    Untimed { candidate: usize },
    /// A timed call by a candidate. `place` is the index of the time in the candidate's list.
    Timed { candidate: usize, place: usize },
    /// A call by the predicted algorithm, after the ranks have agreed.
    Agreement,
}

impl TrialStep {
    /// Returns the step of call `number` in the trials of `candidates` algorithms.
    fn of(number: u32, candidates: usize) -> TrialStep {
        let Some(trial) = number.checked_sub(BEFORE) else {
            let mut end = 0;
            let is_touched = |calls: &u32| {
                end += calls;
                number < end
            };
            let touched = TOUCHING.iter().position(is_touched);
            let candidate = touched.filter(|&candidate| candidate < candidates).unwrap_or(0);
            return TrialStep::Untimed { candidate };
        };
        let (block, place) = (trial / RUN, trial % RUN);
        let (run, candidate) = (block / candidates as u32, block as usize % candidates);
        match place.checked_sub(UNTIMED) {
            _ if run >= RUNS => TrialStep::Agreement,
            None => TrialStep::Untimed { candidate },
            Some(timed) => {
                let place = (run * (RUN - UNTIMED) + timed) as usize;
                TrialStep::Timed { candidate, place }
            }
        }
    }
}

/// Returns the index of the quickest candidate by the sums of all ranks' times. Candidate 0 is the predicted algorithm.
fn quickest(sums: &[u64]) -> usize {
    let best = (0..sums.len()).min_by_key(|&i| sums[i]).unwrap_or(0);
    // A smaller difference may be noise.
    if sums[best].saturating_mul(10) < sums[0].saturating_mul(9) { best } else { 0 }
}

/// Trials of the calls with one key.
struct TrialRecord {
    key: TrialKey,
    candidates: TrialCandidates,
    /// Number of the next call.
    number: u32,
    /// This rank's times in nanoseconds, by candidate.
    times: [[u32; TIMED]; CANDIDATES],
    /// Result of the agreement: the index of the quickest candidate, and the mean times over all ranks in nanoseconds.
    learned: Option<(usize, [u64; CANDIDATES])>,
}

impl TrialRecord {
    /// Returns this rank's median time of each candidate.
    fn medians(&self) -> [u64; CANDIDATES] {
        self.times.map(|mut times| {
            times.sort_unstable();
            times[TIMED / 2].into()
        })
    }
}

/// A call whose algorithm is chosen, but that has not begun.
#[derive(Clone, Copy)]
struct PendingTrial {
    record: usize,
    step: TrialStep,
    choice: AlgorithmChoice,
}

/// Algorithm that the trials choose for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriedAlgorithm {
    /// Only for this call.
    Now(AlgorithmChoice),
    /// For this call and all later calls with the same key.
    Learned(AlgorithmChoice),
}

/// Trials of a communicator's blocking operations.
#[derive(Default)]
pub struct AlgorithmTrials {
    records: RefCell<Vec<TrialRecord>>,
    /// Index of the record that the next new key replaces, if all records are in use.
    oldest: Cell<usize>,
    pending: Cell<Option<PendingTrial>>,
}

impl AlgorithmTrials {
    /// Returns the algorithm of the next call with this key; `None` if the key has no record. All ranks ask in the same order.
    pub fn next(&self, key: TrialKey) -> Option<TriedAlgorithm> {
        let mut records = self.records.borrow_mut();
        let record = records.iter().position(|record| record.key == key)?;
        let TrialRecord { candidates, number, learned, .. } = &mut records[record];
        if let Some((candidate, _)) = learned {
            return Some(TriedAlgorithm::Learned(candidates[*candidate]));
        }
        let step = TrialStep::of(*number, candidates.len());
        // If the agreement fails because of an error of the job, the next call tries again to agree.
        *number += u32::from(step != TrialStep::Agreement);
        let choice = match step {
            TrialStep::Untimed { candidate } | TrialStep::Timed { candidate, .. } => {
                candidates[candidate]
            }
            TrialStep::Agreement => candidates[0],
        };
        self.pending.set(match step {
            TrialStep::Untimed { .. } => None,
            _ => Some(PendingTrial { record, step, choice }),
        });
        Some(TriedAlgorithm::Now(choice))
    }

    /// Opens a record for calls with a new key. All ranks open the same records in the same order. With a single candidate there is
    /// nothing to try.
    pub fn open(&self, key: TrialKey, candidates: TrialCandidates) {
        let mut records = self.records.borrow_mut();
        // A candidate without times has the longest times, so that it is never chosen.
        let times = [[u32::MAX; TIMED]; CANDIDATES];
        let learned = (candidates.len() == 1).then_some((0, [0; CANDIDATES]));
        let record = TrialRecord { key, candidates, number: 1, times, learned };
        self.pending.set(None);
        if records.len() < RECORDS {
            return records.push(record);
        }
        let oldest = self.oldest.get();
        records[oldest] = record;
        self.oldest.set((oldest + 1) % RECORDS);
    }

    /// Forgets all trials, because the rules of the selection have changed. All ranks call this function between the same two
    /// operations.
    pub fn forget(&self) {
        self.records.borrow_mut().clear();
        self.oldest.set(0);
        self.pending.set(None);
    }

    /// Returns true if the call for which [`AlgorithmTrials::next`] has just chosen has a task.
    #[inline]
    pub fn has_due(&self) -> bool {
        self.pending.get().is_some()
    }

    /// Returns the task of the trials in a call that now begins by `choice`.
    #[inline]
    pub(crate) fn due(&self, choice: AlgorithmChoice) -> Option<DueTrial<'_>> {
        self.pending.get()?;
        let PendingTrial { record, step, .. } =
            self.pending.take().filter(|pending| pending.choice == choice)?;
        match step {
            TrialStep::Timed { candidate, place } => {
                let watch =
                    TrialWatch { trials: self, record, candidate, place, start: Instant::now() };
                Some(DueTrial::Timed(watch))
            }
            TrialStep::Agreement => {
                Some(DueTrial::Agreement(TrialAgreement { trials: self, record }))
            }
            TrialStep::Untimed { .. } => None,
        }
    }

    /// Returns a line for each call for which an algorithm was learned.
    pub fn report(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for TrialRecord { key, candidates, learned, .. } in &*self.records.borrow() {
            let Some((quickest, means)) = learned else { continue };
            if candidates.len() == 1 {
                continue;
            }
            let each = candidates.iter().zip(means);
            let each = each.map(|(choice, ns)| format!("{choice} {:.2} us", *ns as f64 / 1e3));
            lines.push(format!(
                "{} of {} bytes: {} by trials ({})",
                key.operation,
                key.asked.bytes,
                candidates[*quickest],
                each.collect::<Vec<_>>().join(", ")
            ));
        }
        lines
    }
}

/// Task of the trials in a call.
pub(crate) enum DueTrial<'t> {
    /// The call is timed until this watch is dropped.
    Timed(TrialWatch<'t>),
    /// The ranks agree before the operation.
    Agreement(TrialAgreement<'t>),
}

/// Watch of a call. The watch notes the time when the operation ends.
pub struct TrialWatch<'t> {
    trials: &'t AlgorithmTrials,
    record: usize,
    candidate: usize,
    place: usize,
    start: Instant,
}

impl Drop for TrialWatch<'_> {
    fn drop(&mut self) {
        let time = self.start.elapsed().as_nanos().min(u32::MAX.into()) as u32;
        if let Some(record) = self.trials.records.borrow_mut().get_mut(self.record) {
            record.times[self.candidate][self.place] = time;
        }
    }
}

/// Agreement of the ranks on the quickest candidate.
pub(crate) struct TrialAgreement<'t> {
    trials: &'t AlgorithmTrials,
    record: usize,
}

impl TrialAgreement<'_> {
    /// Returns this rank's median time of each candidate, in nanoseconds.
    pub(crate) fn medians(&self) -> [u64; CANDIDATES] {
        self.trials.records.borrow()[self.record].medians()
    }

    /// Chooses the quickest candidate by the sums of the medians of all `ranks` ranks.
    pub(crate) fn decide(self, sums: [u64; CANDIDATES], ranks: usize) {
        let record = &mut self.trials.records.borrow_mut()[self.record];
        let quickest = quickest(&sums[..record.candidates.len()]);
        record.learned = Some((quickest, sums.map(|sum| sum / ranks as u64)));
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
