//! The costs of this machine, measured in a few milliseconds.
//!
//! ```text
//!   thread 1, bound to a processor        thread 2, bound to another
//!   alone: copies, yields, system calls
//!   with one that shares a cache:         touches what it is asked to, and answers
//!   with one that shares none: the same
//!   with one on the same processor:       yields
//! ```
//! Of several samples the second shortest counts: others of the machine make them longer, and a clock that was set makes one
//! too short. What is not had within its time stays as [`CopyModel::GENERIC`] has it, and is named. Both threads end
//! with the measurement; the caller's processors, signals and memory stay as they are.

mod alone;
mod pair;

use crate::topology::{self, MeasurementPlaces, SYSTEM};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use weft_fabric::CopyModel;

/// All of it takes no longer than this, even if others want the processors.
const MOST: Duration = Duration::from_millis(8);

/// Fewer samples say nothing.
const LEAST_SAMPLES: usize = 3;

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredModel {
    /// What was had; the rest as [`CopyModel::GENERIC`] has it.
    pub model: CopyModel,
    /// Fields that could not be measured here: no such pair of processors, or a call that is not permitted.
    pub absent: BTreeSet<String>,
    /// Fields for which there was no time.
    pub late: BTreeSet<String>,
    /// How long the whole measurement lasted.
    pub took: Duration,
}

/// What came of one field.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    /// In the model's unit.
    Had(f64),
    Late,
    Absent,
}

/// The second shortest of at most `most` samples, as many as there are before `end`. A sample of `None`: it cannot be
/// had at all.
fn sampled(most: usize, end: Instant, mut sample: impl FnMut() -> Option<f64>) -> Outcome {
    let mut all = Vec::with_capacity(most);
    while all.len() < most && Instant::now() < end {
        match sample() {
            Some(value) => all.push(value),
            None => return Outcome::Absent,
        }
    }
    if all.len() < LEAST_SAMPLES {
        return Outcome::Late;
    }
    all.sort_by(f64::total_cmp);
    Outcome::Had(all[1])
}

/// Nanoseconds that `work` takes.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}

/// When a part that may take `micros` ends, within the whole.
fn within(end: Instant, micros: u64) -> Instant {
    end.min(Instant::now() + Duration::from_micros(micros))
}

/// Nanoseconds that nothing takes.
fn clock(end: Instant) -> Outcome {
    // Two reads in a row are too short to be told by one.
    sampled(16, within(end, 100), || Some(timed(|| (0..32).for_each(|_| _ = timed(|| ()))) / 32.0))
}

/// Waits until no more threads want to run than there are processors, at most until `end`. A second thread would be waited for
/// elsewhere, to begin and to end: many milliseconds where many take turns.
fn quiet(end: Instant) -> bool {
    loop {
        if is_quiet() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Whether no more threads want to run now than there are processors.
pub fn is_quiet() -> bool {
    let online = topology::online(Path::new(SYSTEM)).unwrap_or(usize::MAX);
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = text.split_whitespace().nth(3).and_then(|word| word.split_once('/'));
    let running = running.and_then(|(running, _)| running.parse::<usize>().ok());
    running.is_none_or(|running| running <= online)
}

/// Binds this thread to one processor.
fn bind(processor: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(processor).is_ok() && sched_setaffinity(Pid::from_raw(0), &set).is_ok()
}

/// Where there is to measure.
pub fn places() -> MeasurementPlaces {
    topology::places(Path::new(SYSTEM), &topology::listed(&topology::allowed()))
}

/// Measures on this thread, which it binds to processors: one that ends afterwards. `None`: times mean nothing here, because a
/// tool watches this process. `insists`: with two threads, too, where others want the processors, so that it may take longer.
pub fn on_this_thread(places: &MeasurementPlaces, insists: bool) -> Option<MeasuredModel> {
    if watched() {
        return None;
    }
    let start = Instant::now();
    let end = start + MOST;
    let mut all = Vec::new();
    all.push(("clock".to_owned(), clock(end)));
    alone::measure(end, &mut all);
    let quiet = insists || quiet(within(end, 1500));
    for (pair, distance) in [(places.shared, "shared"), (places.apart, "apart")] {
        let had = match pair {
            Some(pair) if quiet => pair::measure(pair, cached(&all), end),
            Some(_) => [Outcome::Late; pair::NAMES.len()],
            None => [Outcome::Absent; pair::NAMES.len()],
        };
        let names = pair::NAMES.map(|name| format!("{name}.{distance}"));
        all.extend(names.into_iter().zip(had));
    }
    let switch = match places.first {
        Some(processor) if quiet => pair::switch(processor, end),
        Some(_) => Outcome::Late,
        None => Outcome::Absent,
    };
    all.push(("switch".to_owned(), switch));
    // Last: it takes the longest.
    let memory = if quiet { alone::memory(end) } else { Outcome::Late };
    all.push(("memory".to_owned(), memory));
    for (name, size) in [("private", places.private), ("last", places.last)] {
        all.push((name.to_owned(), size.map_or(Outcome::Absent, |size| Outcome::Had(size as f64))));
    }
    Some(gathered(&all, start.elapsed()))
}

/// Nanoseconds for each byte that is copied in the own caches.
fn cached(all: &[(String, Outcome)]) -> f64 {
    match all.iter().find(|(name, _)| name == "cached") {
        Some((_, Outcome::Had(rate))) => *rate,
        _ => CopyModel::GENERIC.cached,
    }
}

/// A model of what was had.
fn gathered<N: AsRef<str>>(all: &[(N, Outcome)], took: Duration) -> MeasuredModel {
    let mut model = CopyModel::GENERIC;
    let mut measured = MeasuredModel {
        model: model.clone(),
        absent: BTreeSet::new(),
        late: BTreeSet::new(),
        took,
    };
    for (name, outcome) in all {
        let (name, outcome) = (name.as_ref(), *outcome);
        let field = CopyModel::field(name).expect("a field of the model");
        match outcome {
            Outcome::Had(value) => {
                let before = field.of(&model);
                field.set(&mut model, value);
                if !field.allows(field.shown(&model)) {
                    field.set(&mut model, before);
                    measured.late.insert(name.to_owned());
                }
            }
            Outcome::Late => _ = measured.late.insert(name.to_owned()),
            Outcome::Absent => _ = measured.absent.insert(name.to_owned()),
        }
    }
    measured.model = model;
    measured.order();
    measured
}

impl MeasuredModel {
    fn had(&self, name: &str) -> bool {
        !self.absent.contains(name) && !self.late.contains(name)
    }

    /// Nobody is nearer without a common cache than with one: what was had moves what was not.
    fn order(&mut self) {
        for name in pair::NAMES {
            let [shared, apart] = [".shared", ".apart"].map(|end| format!("{name}{end}"));
            let [near, far] =
                [&shared, &apart].map(|name| CopyModel::field(name).expect("a field of the model"));
            let (a, b) = (near.of(&self.model), far.of(&self.model));
            if a > b && self.had(&apart) && !self.had(&shared) {
                near.set(&mut self.model, b);
            } else if a > b {
                far.set(&mut self.model, a);
            }
        }
    }

    /// Takes what a later measurement of the same machine had and this one had not, and why the rest is missing.
    pub fn fill(&mut self, later: &MeasuredModel) {
        self.complete(later);
        // Where it was there and only the time was missing, it is worth another try; and the other way round.
        for name in &later.absent {
            if self.late.remove(name) {
                self.absent.insert(name.clone());
            }
        }
        for name in &later.late {
            if self.absent.remove(name) {
                self.late.insert(name.clone());
            }
        }
    }

    /// Takes what was not had from another measurement of the same machine.
    pub fn complete(&mut self, other: &MeasuredModel) {
        let missing: Vec<String> = self.absent.union(&self.late).cloned().collect();
        for name in missing.iter().filter(|name| other.had(name)) {
            let field = CopyModel::field(name).expect("a field of the model");
            field.set(&mut self.model, field.of(&other.model));
            self.absent.remove(name);
            self.late.remove(name);
        }
        self.order();
    }

    /// Whether measuring at `places` may find what this one lacks.
    pub fn lacks(&self, places: &MeasurementPlaces) -> bool {
        let pair = |pair: &Option<_>, name| pair.is_some() && self.absent.contains(name);
        !self.late.is_empty()
            || pair(&places.shared, "line.shared")
            || pair(&places.apart, "line.apart")
    }
}

/// Whether a tool watches this process, so that its times are not the machine's.
fn watched() -> bool {
    if cfg!(miri) {
        return true;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    if tracer.is_some_and(|pid| pid.trim() != "0") {
        return true;
    }
    const TOOLS: [&str; 6] =
        ["/vgpreload", "/valgrind", "libasan", "libtsan", "libclang_rt", "/pin"];
    let maps = fs::read("/proc/self/maps").unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    TOOLS.iter().any(|tool| maps.contains(tool))
}

// Files, processors and signals of the system, which Miri has not.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// On a thread of its own, as it is meant.
    fn measured(places: &MeasurementPlaces) -> MeasuredModel {
        std::thread::scope(|scope| {
            scope.spawn(|| on_this_thread(places, false)).join().unwrap().unwrap()
        })
    }

    #[test]
    fn the_caller_keeps_its_processors_and_has_a_model() {
        let before = nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
        let measured = measured(&places());
        assert!(nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap() == before);
        assert!(CopyModel::from_words(measured.model.words()).is_some());
        for field in CopyModel::FIELDS {
            assert!(field.allows(field.shown(&measured.model)), "{}", field.name);
        }
    }

    #[test]
    fn one_processor_leaves_pairs_generic_and_says_so() {
        let places = MeasurementPlaces { shared: None, apart: None, ..places() };
        let measured = measured(&places);
        for name in ["line.shared", "rewrite.apart", "fetch.shared"] {
            assert!(measured.absent.contains(name), "{name}");
            let field = CopyModel::field(name).unwrap();
            assert_eq!(field.of(&measured.model), field.of(&CopyModel::GENERIC), "{name}");
        }
        assert!(
            measured
                .lacks(&MeasurementPlaces { shared: Some((0, 1)), ..MeasurementPlaces::default() })
        );
    }

    #[test]
    fn processors_that_are_not_there_are_refused() {
        let (gone, end) = (CpuSet::count() - 1, Instant::now() + Duration::from_secs(60));
        std::thread::scope(|scope| {
            let pair = scope.spawn(move || pair::measure((gone, gone), 0.03, end));
            assert_eq!(pair.join().unwrap(), [Outcome::Absent; pair::NAMES.len()]);
            // The first is there, the second not.
            let first = places().first.unwrap();
            let pair = scope.spawn(move || pair::measure((first, gone), 0.03, end));
            assert_eq!(pair.join().unwrap(), [Outcome::Absent; pair::NAMES.len()]);
            let alone = scope.spawn(move || pair::switch(gone, end));
            assert_eq!(alone.join().unwrap(), Outcome::Absent);
        });
    }

    #[test]
    fn the_second_shortest_counts_and_few_do_not() {
        let far = Instant::now() + Duration::from_secs(60);
        let mut values = [5.0, 1.0, 9.0, 2.0].into_iter();
        assert_eq!(sampled(4, far, || values.next()), Outcome::Had(2.0));
        assert_eq!(sampled(2, far, || Some(1.0)), Outcome::Late);
        assert_eq!(sampled(9, Instant::now(), || Some(1.0)), Outcome::Late);
        assert_eq!(sampled(9, far, || None), Outcome::Absent);
    }

    #[test]
    fn what_is_missing_is_named_and_completed_from_before() {
        let some = [("line.shared", Outcome::Had(300.0)), ("line.apart", Outcome::Absent)];
        let first = gathered(&some, Duration::ZERO);
        // Not nearer than what shares a cache.
        assert_eq!(first.model.line.apart, 300.0);
        assert!(first.absent.contains("line.apart") && first.late.is_empty());
        let other = [("line.shared", Outcome::Late), ("line.apart", Outcome::Had(500.0))];
        let mut second = gathered(&other, Duration::ZERO);
        assert!(second.lacks(&MeasurementPlaces::default()));
        second.complete(&first);
        assert_eq!((second.model.line.shared, second.model.line.apart), (300.0, 500.0));
        assert!(!second.lacks(&MeasurementPlaces::default()));
        // What is not there is not tried again, nor is what was had replaced.
        let mut third = gathered(
            &[("line.shared", Outcome::Late), ("cached", Outcome::Had(0.02))],
            Duration::ZERO,
        );
        let later = [("line.shared", Outcome::Absent), ("cached", Outcome::Had(0.05))];
        third.fill(&gathered(&later, Duration::ZERO));
        assert!(third.absent.contains("line.shared") && third.late.is_empty());
        assert_eq!(third.model.cached, 0.02);
        third.fill(&gathered(&[("line.shared", Outcome::Late)], Duration::ZERO));
        assert!(third.late.contains("line.shared") && third.absent.is_empty());
        // Out of range: as if there had been no time.
        let wild = gathered(&[("cached", Outcome::Had(1e-9))], Duration::ZERO);
        assert_eq!(wild.model, CopyModel::GENERIC);
        assert!(wild.late.contains("cached"));
    }
}
