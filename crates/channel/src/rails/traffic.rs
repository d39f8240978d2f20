//! Traffic in one direction of all rails, and the speeds of the rails in comparison with each other.
//!
//! ```text
//!   sample   rail 0   ████████████  bytes, seconds        rails that are busy together; the sample ends when each rail has
//!            rail 1   ████████████████  bytes, seconds    been idle
//!   window   led by rail 0 │ led by rail 1 │              as many samples as rails, each led by another rail
//!   weight   bytes of the window / its seconds, in units of the average
//! ```
//! Rails that share a bus take turns on it. The last turn makes one of two equal rails seem slower: by half if each rail has one
//! part, but only by a sixteenth if each rail has eight parts. So rails are compared only over samples in which each rail came
//! first equally often. A rail that was busy while the other rails were idle is not compared, because it had the bus to itself.
//!
//! An end counts only if the process was waiting when the end came. A process that looks later does not know the time
//! of the end, and the sample is discarded.

use smallvec::SmallVec;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weft_fabric::{CounterTarget, Counters};

/// Minimum number of bytes of a sample, on average over its rails.
const SEEN: u64 = 64 << 10;

/// Fraction of the best weight above which rails count as equal.
const SAME: f64 = 0.9;

/// Relation between the time when a fragment ended and the time when the process looks for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeliness {
    /// The process has been waiting, so that the fragment ended just now.
    Prompt,
    /// The process was busy. The time of the end is unknown.
    Late,
}

/// A fragment under way.
struct FragmentLoad {
    end: CounterTarget,
    bytes: u64,
}

/// Bytes that a rail has carried, and the time that it was busy with them.
#[derive(Debug, Clone, Copy, Default)]
struct Throughput {
    bytes: u64,
    time: Duration,
}

impl Throughput {
    fn add(&mut self, other: Throughput) {
        self.bytes += other.bytes;
        self.time += other.time;
    }
}

/// Throughput of each rail, by its number. Zero bytes: the rail was idle.
type Sample = SmallVec<[Throughput; 4]>;

/// One direction of one rail.
struct Rail {
    under_way: VecDeque<FragmentLoad>,
    /// Bytes of all fragments under way.
    load: u64,
    /// Time since which fragments have been under way, and the bytes that have ended since.
    busy: Option<(Instant, u64)>,
    /// Throughput in the sample that is being taken.
    volume: Throughput,
    /// Speed in units of the average.
    weight: f64,
}

impl Default for Rail {
    fn default() -> Rail {
        let (busy, volume) = (None, Throughput::default());
        Rail { under_way: VecDeque::new(), load: 0, busy, volume, weight: 1.0 }
    }
}

impl Rail {
    /// Notes the fragments that are complete by `now`. Returns two flags: a fragment has ended; the rail has become idle.
    fn look(&mut self, counters: &Counters, now: Instant) -> (bool, bool) {
        let Some((since, mut ended)) = self.busy else { return (false, false) };
        let before = self.load;
        self.under_way.retain(|fragment| {
            let over = fragment.end.has_come(counters);
            if over {
                ended += fragment.bytes;
                self.load -= fragment.bytes;
            }
            !over
        });
        let idle = self.under_way.is_empty();
        if idle {
            let time = now.saturating_duration_since(since);
            self.volume.add(Throughput { bytes: ended, time });
        }
        self.busy = (!idle).then_some((since, ended));
        (self.load < before, idle)
    }
}

/// One direction of all rails.
#[derive(Default)]
pub(super) struct RailTraffic {
    rails: Vec<Rail>,
    /// Latest samples, all of the same rails. There are at most as many samples as these rails.
    window: VecDeque<Sample>,
    /// Number of samples so far. Each is led by the rail after the leading rail of the previous sample.
    count: usize,
    /// True if a fragment of the current sample ended while the process was not waiting, so that the time of the end is unknown.
    late: bool,
}

impl RailTraffic {
    /// Ensures room for `rails` rails.
    pub fn reserve(&mut self, rails: usize) {
        if self.rails.len() < rails {
            self.rails.resize_with(rails, Default::default);
        }
    }

    /// Returns the bytes under way on a rail.
    pub fn load(&self, rail: usize) -> u64 {
        self.rails[rail].load
    }

    /// Returns the speed of a rail in units of the average; 1 if the rail was never compared.
    pub fn weight(&self, rail: usize) -> f64 {
        self.rails.get(rail).map_or(1.0, |rail| rail.weight)
    }

    /// Returns the weights by which these rails share an operation. Weights that are nearly equal count as equal: measured speeds
    /// of equal rails always differ a little, and unequal shares would preserve the difference.
    pub fn weights(&self, rails: &[usize]) -> SmallVec<[f64; 4]> {
        let weights: SmallVec<[f64; 4]> = rails.iter().map(|&rail| self.weight(rail)).collect();
        let best = weights.iter().copied().fold(0.0, f64::max);
        match weights.iter().all(|&weight| weight > SAME * best) {
            true => SmallVec::from_elem(1.0, rails.len()),
            false => weights,
        }
    }

    /// Returns the index of the fragment that is posted first, out of `fragments`.
    pub fn lead(&self, fragments: usize) -> usize {
        self.count % fragments.max(1)
    }

    /// Notes a fragment of `bytes` that is under way over a rail since `now`.
    pub fn post(&mut self, rail: usize, bytes: u64, end: CounterTarget, now: Instant) {
        let rail = &mut self.rails[rail];
        rail.under_way.push_back(FragmentLoad { end, bytes });
        rail.load += bytes;
        rail.busy.get_or_insert((now, 0));
    }

    /// Notes the fragments that are complete by `now`. Returns true if a fragment is still under way.
    pub fn look(&mut self, counters: &Counters, now: Instant, timeliness: Timeliness) -> bool {
        let (mut ended, mut idle) = (false, false);
        for rail in &mut self.rails {
            let (some, all) = rail.look(counters, now);
            (ended, idle) = (ended | some, idle | all);
        }
        self.late |= ended && timeliness == Timeliness::Late;
        if idle {
            self.end_sample();
        }
        self.rails.iter().any(|rail| rail.busy.is_some())
    }

    /// Ends the sample if each of its rails has been idle.
    fn end_sample(&mut self) {
        let moved = |rail: &Rail| rail.volume.bytes > 0;
        if self.rails.iter().any(|rail| rail.busy.is_some() && !moved(rail)) {
            return;
        }
        let sample: Sample = self.rails.iter().map(|rail| rail.volume).collect();
        let compared = sample.iter().filter(|volume| volume.bytes > 0).count();
        let bytes: u64 = sample.iter().map(|volume| volume.bytes).sum();
        let short = bytes < compared as u64 * SEEN;
        // A sample that is too short may be the beginning of a longer sample.
        if (compared < 2 || short) && self.rails.iter().any(|rail| rail.busy.is_some()) {
            return;
        }
        self.rails.iter_mut().for_each(|rail| rail.volume = Throughput::default());
        if std::mem::take(&mut self.late) || compared < 2 || short {
            return;
        }
        self.take(sample, compared);
    }

    /// Adds a sample of `compared` rails to the window. Computes the weights if the window is full.
    fn take(&mut self, sample: Sample, compared: usize) {
        let there = |sample: &Sample| -> SmallVec<[bool; 4]> {
            sample.iter().map(|volume| volume.bytes > 0).collect()
        };
        if self.window.back().is_some_and(|last| there(last) != there(&sample)) {
            self.window.clear();
        }
        self.count += 1;
        self.window.push_back(sample);
        if self.window.len() > compared {
            self.window.pop_front();
        }
        if self.window.len() < compared {
            return;
        }
        let mut sums: Sample = SmallVec::from_elem(Throughput::default(), self.rails.len());
        for sample in &self.window {
            sums.iter_mut().zip(sample).for_each(|(sum, &volume)| sum.add(volume));
        }
        let rate = |sum: &Throughput| sum.bytes as f64 / sum.time.as_secs_f64().max(1e-9);
        let both = || self.rails.iter().zip(&sums).filter(|(_, sum)| sum.bytes > 0);
        // The ratio between these rails and the rails outside of the window does not change.
        let unit = both().map(|(_, sum)| rate(sum)).sum::<f64>()
            / both().map(|(rail, _)| rail.weight).sum::<f64>();
        for (rail, sum) in self.rails.iter_mut().zip(&sums).filter(|(_, sum)| sum.bytes > 0) {
            rail.weight = 0.5 * (rail.weight + rate(sum) / unit);
        }
    }
}
