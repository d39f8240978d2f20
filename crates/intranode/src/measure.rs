//! The costs of this machine, measured in a few milliseconds.
//!
//! ```text
//!   thread 1, bound to a processor        thread 2, bound to another processor
//!   alone:  copies, yields, system calls
//!   with thread 2 on the same cache:      touches the memory that it is asked to touch, and answers
//!   with thread 2 on another cache:       the same
//!   with thread 2 on the same processor:  yields
//! ```
//! Of several samples the second shortest counts. Other programs make samples longer, and a change of the clock may make a sample
//! too short. A value that could not be measured in time stays as in [`CopyModel::GENERIC`], and the result names it. Both threads
//! end with the measurement. The caller's processors, signals and memory stay as they are.

mod one_thread;
mod pair;

use crate::measurement_places::{self, MEASURED_LEVELS, MeasurementPlaces};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};
use weft_fabric::CopyModel;
use weft_topology::Sysfs;

/// Maximum time of the whole measurement, even if other threads want the processors.
const MOST: Duration = Duration::from_millis(8);

/// Maximum additional time for each level of the machine.
const MOST_OF_LEVEL: Duration = Duration::from_millis(1);

/// Minimum number of samples of a value.
const LEAST_SAMPLES: usize = 3;

/// The result of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredModel {
    /// The measured values; all other values are taken from [`CopyModel::GENERIC`].
    pub model: CopyModel,
    /// Names of the fields that cannot be measured on this machine, because there is no such pair of processors or a call is not
    /// permitted.
    pub absent: BTreeSet<String>,
    /// Names of the fields for which there was no time.
    pub late: BTreeSet<String>,
    /// Duration of the whole measurement.
    pub took: Duration,
}

/// The outcome of the measurement of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    /// A measured value, in the model's unit.
    Had(f64),
    Late,
    Absent,
}

/// Returns the second shortest of at most `most` samples, which are taken before `end`. If a sample is `None`, the value cannot
/// be measured at all.
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

/// Returns the nanoseconds for which `work` runs.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}

/// Returns the end of a part of the measurement: `micros` microseconds from now, but at most `end`, the end of the whole
/// measurement.
fn within(end: Instant, micros: u64) -> Instant {
    end.min(Instant::now() + Duration::from_micros(micros))
}

/// Measures the nanoseconds of two successive readings of the clock.
fn clock(end: Instant) -> Outcome {
    // A single pair of readings is too short to be measured, so many pairs are measured together.
    sampled(16, within(end, 100), || Some(timed(|| (0..32).for_each(|_| _ = timed(|| ()))) / 32.0))
}

/// Waits until at most as many threads want to run as there are processors, but not beyond `end`. With more threads, a second
/// thread would take turns with them, and would need many milliseconds to begin and to end. Returns true if the machine is quiet.
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

/// Returns true if at most as many threads want to run now as there are processors.
pub fn is_quiet() -> bool {
    let online = Sysfs::real().online().map_or(usize::MAX, |online| online.len());
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = text.split_whitespace().nth(3).and_then(|word| word.split_once('/'));
    let running = running.and_then(|(running, _)| running.parse::<usize>().ok());
    running.is_none_or(|running| running <= online)
}

/// Binds this thread to a processor.
fn bind(processor: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(processor).is_ok() && sched_setaffinity(Pid::from_raw(0), &set).is_ok()
}

/// Returns the processors for the measurement.
pub fn places() -> MeasurementPlaces {
    measurement_places::places(&Sysfs::real(), &measurement_places::allowed_to_job())
}

/// Load of the machine under which two threads are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineLoad {
    /// No other thread wants the processors.
    Quiet,
    /// Other threads may want the processors.
    Any,
}

/// Measures on this thread, which is bound to processors and should end afterwards. Returns `None` if a tool such as a debugger
/// watches this process, because times mean nothing then. On a loaded machine the measurement may take longer.
pub fn on_this_thread(places: &MeasurementPlaces, load: MachineLoad) -> Option<MeasuredModel> {
    if watched() {
        return None;
    }
    let start = Instant::now();
    let levels = places.by_level.iter().flatten().count() as u32;
    let end = start + MOST + levels * MOST_OF_LEVEL;
    let mut all = Vec::new();
    all.push(("clock".to_owned(), clock(end)));
    one_thread::measure(end, &mut all);
    let quiet = load == MachineLoad::Any || quiet(within(end, 1500));
    for (pair, distance) in [(places.shared, "shared"), (places.apart, "apart")] {
        let had = match pair {
            Some((one, other)) if quiet => pair::measure(one, other, cached(&all), end),
            Some(_) => [Outcome::Late; pair::NAMES.len()],
            None => [Outcome::Absent; pair::NAMES.len()],
        };
        let names = pair::NAMES.map(|name| format!("{name}.{distance}"));
        all.extend(names.into_iter().zip(had));
    }
    for (level, pair) in MEASURED_LEVELS.into_iter().zip(places.by_level) {
        let had = match pair {
            // The pair without a common cache has been measured.
            Some(_) if pair == places.apart => {
                pair::LEVEL_NAMES.map(|name| outcome(&all, &format!("{name}.apart")))
            }
            Some((one, other)) if quiet => pair::measure_level(one, other, end),
            Some(_) => [Outcome::Late; pair::LEVEL_NAMES.len()],
            None => [Outcome::Absent; pair::LEVEL_NAMES.len()],
        };
        let names = pair::LEVEL_NAMES.map(|name| format!("{name}.{}", level.name()));
        all.extend(names.into_iter().zip(had));
    }
    let switch = match places.first {
        Some(processor) if quiet => pair::switch(processor, end),
        Some(_) => Outcome::Late,
        None => Outcome::Absent,
    };
    all.push(("switch".to_owned(), switch));
    // The cost of memory is measured last, because this takes the longest.
    let memory = if quiet { one_thread::memory(end) } else { Outcome::Late };
    all.push(("memory".to_owned(), memory));
    for (name, size) in [("private", places.private), ("last", places.last)] {
        all.push((name.to_owned(), size.map_or(Outcome::Absent, |size| Outcome::Had(size as f64))));
    }
    Some(gathered(&all, start.elapsed()))
}

/// Returns the outcome of the measurement of a field, which has been tried.
fn outcome(all: &[(String, Outcome)], name: &str) -> Outcome {
    all.iter().find(|(other, _)| other == name).map_or(Outcome::Absent, |(_, outcome)| *outcome)
}

/// Returns the nanoseconds for each byte of a copy in the processor's own caches.
fn cached(all: &[(String, Outcome)]) -> f64 {
    match outcome(all, "cached") {
        Outcome::Had(rate) => rate,
        _ => CopyModel::GENERIC.cached,
    }
}

/// Makes a model of the measured values.
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

    /// Corrects the order of the two distances: a cost between processors without a common cache is never less than the cost
    /// between processors with a common cache. If only one of the two costs was measured, the other follows from the measured cost.
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
        for name in pair::LEVEL_NAMES {
            self.inherit(name);
        }
    }

    /// Gives each level that was not measured the cost of the nearest level before it.
    fn inherit(&mut self, name: &str) {
        for [level, before] in
            [["core", "shared"], ["numa", "apart"], ["socket", "numa"], ["node", "socket"]]
        {
            let [level, before] = [level, before].map(|level| format!("{name}.{level}"));
            if !self.had(&level) {
                let [to, from] = [&level, &before]
                    .map(|name| CopyModel::field(name).expect("a field of the model"));
                let cost = from.of(&self.model);
                to.set(&mut self.model, cost);
            }
        }
    }

    /// Takes the values that this measurement lacks from a later measurement of the same machine. If the later measurement also
    /// lacks a value, takes the later measurement's reason.
    pub fn fill(&mut self, later: &MeasuredModel) {
        self.complete(later);
        // Trying again is worthwhile for a value for which only the time was missing, but not for a value that cannot be measured.
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

    /// Takes the values that this measurement lacks from another measurement of the same machine.
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

    /// Returns true if a measurement at `places` may find values that this measurement lacks.
    pub fn lacks(&self, places: &MeasurementPlaces) -> bool {
        let pair = |pair: &Option<_>, name: &str| pair.is_some() && self.absent.contains(name);
        !self.late.is_empty()
            || pair(&places.shared, "line.shared")
            || pair(&places.apart, "line.apart")
            || MEASURED_LEVELS
                .iter()
                .zip(&places.by_level)
                .any(|(level, places)| pair(places, &format!("line.{}", level.name())))
    }
}

/// Returns true if a tool such as a debugger watches this process, so that measured times are not the times of the machine.
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

// These tests need files, processors and signals of the system, which Miri does not have.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// Measures on a separate thread, as callers do.
    fn measured(places: &MeasurementPlaces) -> MeasuredModel {
        std::thread::scope(|scope| {
            scope.spawn(|| on_this_thread(places, MachineLoad::Quiet)).join().unwrap().unwrap()
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
    fn levels_that_are_not_there_cost_as_much_as_nearer_ones() {
        let all = [
            ("line.shared", Outcome::Had(50.0)),
            ("line.apart", Outcome::Had(120.0)),
            ("line.core", Outcome::Absent),
            ("line.numa", Outcome::Had(120.0)),
            ("line.socket", Outcome::Late),
            ("line.node", Outcome::Had(400.0)),
        ];
        let costs = gathered(&all, Duration::ZERO).model.line_by_level;
        assert_eq!((costs.core, costs.numa, costs.socket, costs.node), (50.0, 120.0, 120.0, 400.0));
        let two = gathered(
            &all.map(|(name, outcome)| match name {
                "line.shared" | "line.apart" => (name, outcome),
                _ => (name, Outcome::Absent),
            }),
            Duration::ZERO,
        );
        let costs = two.model.line_by_level;
        assert_eq!((costs.core, costs.numa, costs.socket, costs.node), (50.0, 120.0, 120.0, 120.0));
        let other = MeasurementPlaces {
            by_level: [None, None, None, Some((0, 1))],
            ..MeasurementPlaces::default()
        };
        assert!(two.lacks(&other) && !two.lacks(&MeasurementPlaces::default()));
    }

    #[test]
    fn processors_that_are_not_there_are_refused() {
        let (gone, end) = (CpuSet::count() - 1, Instant::now() + Duration::from_secs(60));
        std::thread::scope(|scope| {
            let pair = scope.spawn(move || pair::measure(gone, gone, 0.03, end));
            assert_eq!(pair.join().unwrap(), [Outcome::Absent; pair::NAMES.len()]);
            // The first processor exists; the second processor does not.
            let first = places().first.unwrap();
            let pair = scope.spawn(move || pair::measure(first, gone, 0.03, end));
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
        // Processors without a common cache are at least as far from each other as processors that share a cache.
        assert_eq!(first.model.line.apart, 300.0);
        assert!(first.absent.contains("line.apart") && first.late.is_empty());
        let other = [("line.shared", Outcome::Late), ("line.apart", Outcome::Had(500.0))];
        let mut second = gathered(&other, Duration::ZERO);
        assert!(second.lacks(&MeasurementPlaces::default()));
        second.complete(&first);
        assert_eq!((second.model.line.shared, second.model.line.apart), (300.0, 500.0));
        assert!(!second.lacks(&MeasurementPlaces::default()));
        // Values that are absent are not tried again, and measured values are not replaced.
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
        // A value that is out of range counts as a value for which there was no time.
        let wild = gathered(&[("cached", Outcome::Had(1e-9))], Duration::ZERO);
        assert_eq!(wild.model, CopyModel::GENERIC);
        assert!(wild.late.contains("cached"));
    }
}
