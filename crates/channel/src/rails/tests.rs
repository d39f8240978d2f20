use super::*;
use std::collections::VecDeque;
use std::time::Duration;
use weft_fabric::Counter;

/// Rails on a bus. A part has the bus to itself while it passes. Rates of each rail and of the bus in bytes per microsecond.
struct Machine<'m> {
    rails: &'m [f64],
    bus: f64,
}

const NO_BUS: f64 = f64::INFINITY;

impl Machine<'_> {
    /// Carries the parts that wait at each rail, in their order. If parts of several rails could begin, the rails take turns.
    /// Returns the time at which the last part of each fragment has passed.
    fn carry(
        &self,
        fragments: &[Fragment],
        mut lines: Vec<VecDeque<f64>>,
        mut turns: VecDeque<usize>,
    ) -> Vec<f64> {
        let (mut ports, mut bus) = (vec![0.0f64; fragments.len()], 0.0f64);
        let start = |ports: &[f64], bus: f64, i: usize| ports[i].max(bus);
        while let Some(at) = (0..turns.len())
            .min_by(|&a, &b| start(&ports, bus, turns[a]).total_cmp(&start(&ports, bus, turns[b])))
        {
            let i = turns.remove(at).expect("a turn");
            let part = lines[i].pop_front().expect("a part");
            let begin = start(&ports, bus, i);
            ports[i] = begin + part / self.rails[fragments[i].rail];
            bus = begin + part / self.bus;
            if !lines[i].is_empty() {
                turns.push_back(i);
            }
        }
        ports
    }
}

/// A process that waits for each of its transfers, one after the other.
struct Process {
    rails: RailSet,
    counters: Counters,
    now: Instant,
}

impl Process {
    fn new() -> Process {
        Process { rails: RailSet::default(), counters: Counters::new(), now: Instant::now() }
    }

    /// Moves `len` bytes. Returns the length of each fragment by rail, and the duration in microseconds.
    fn move_bytes(&mut self, machine: &Machine, len: usize) -> (Vec<usize>, f64) {
        let (fragments, mut ends) = self.post(machine, len);
        self.rails.wait_begins(|| self.now);
        ends.sort_by(|a, b| a.1.total_cmp(&b.1));
        let took = ends.last().expect("a fragment").1;
        for (counter, at) in ends {
            self.counters.add(counter, 1);
            self.rails.observe(&self.counters, self.after(at));
        }
        self.rails.wait_ends();
        self.now = self.after(took);
        (self.lens(machine, &fragments), took)
    }

    /// Posts `len` bytes. Returns the fragments, and the time at which the counter of each is reached, in microseconds.
    fn post(&mut self, machine: &Machine, len: usize) -> (RailFragments, Vec<(Counter, f64)>) {
        let fragments = self.rails.spread(RdmaDirection::Write, len, machine.rails.len(), |_| true);
        let mut lines = vec![VecDeque::new(); fragments.len()];
        let mut turns = VecDeque::new();
        for (i, _, part) in self.rails.parts(RdmaDirection::Write, &fragments) {
            if lines[i].is_empty() {
                turns.push_back(i);
            }
            lines[i].push_back(part as f64);
        }
        let ports = machine.carry(&fragments, lines, turns);
        let counters: Vec<Counter> = ports.iter().map(|_| self.counters.allocate()).collect();
        for (&fragment, &counter) in fragments.iter().zip(&counters) {
            let mut end = CounterTarget::new(&self.counters, counter);
            end.one_more();
            self.rails.posted(RdmaDirection::Write, fragment, end, self.now);
        }
        (fragments, counters.into_iter().zip(ports).collect())
    }

    fn after(&self, us: f64) -> Instant {
        self.now + Duration::from_secs_f64(us * 1e-6)
    }

    fn lens(&self, machine: &Machine, fragments: &[Fragment]) -> Vec<usize> {
        let on = |rail| fragments.iter().filter(|f| f.rail == rail).map(|f| f.len).sum();
        (0..machine.rails.len()).map(on).collect()
    }

    /// Moves `len` bytes several times. Returns the lengths of the fragments of the next transfer.
    fn settled(&mut self, machine: &Machine, len: usize) -> Vec<usize> {
        (0..20).for_each(|_| drop(self.move_bytes(machine, len)));
        self.move_bytes(machine, len).0
    }
}

fn lens(fragments: &RailFragments) -> Vec<(usize, usize)> {
    let mut end = 0;
    for fragment in fragments {
        assert_eq!(fragment.offset, end, "fragments follow each other");
        end += fragment.len;
    }
    fragments.iter().map(|f| (f.rail, f.len)).collect()
}

#[test]
fn turns_leave_out_what_does_not_work() {
    let rails = RailSet::default();
    let turns: Vec<_> =
        (0..6).map(|_| rails.next(RdmaDirection::Write, 3, |rail| rail != 1)).collect();
    assert!(turns.contains(&0) && turns.contains(&2) && !turns.contains(&1), "{turns:?}");
    assert_eq!(rails.next(RdmaDirection::Write, 2, |_| false), 0);
}

#[test]
fn equal_rails_share_evenly() {
    let rails = RailSet::default();
    let spread = rails.spread(RdmaDirection::Write, 1 << 20, 2, |_| true);
    assert_eq!(lens(&spread), [(0, 1 << 19), (1, 1 << 19)]);
    assert_eq!(lens(&rails.spread(RdmaDirection::Write, 5, 2, |_| true)), [(1, 5)]);
    // Operations shorter than two grains are also fragmented if the threshold is low.
    for (len, first) in [(2048, 1024), (8191, 4032), (8192, 4096), (200, 64), (127, 0)] {
        let spread = lens(&rails.spread(RdmaDirection::Write, len, 2, |_| true));
        let last = (1, len - first);
        assert_eq!(spread, if first > 0 { vec![(0, first), last] } else { vec![last] });
    }
    assert_eq!(lens(&rails.spread(RdmaDirection::Write, 1 << 20, 3, |r| r == 1)), [(1, 1 << 20)]);
    assert_eq!(lens(&rails.spread(RdmaDirection::Write, 100, 2, |_| false)), [(0, 100)]);
}

#[test]
fn what_is_under_way_counts() {
    let mut process = Process::new();
    let rails = &process.rails;
    rails.spread(RdmaDirection::Write, 3 << 20, 2, |_| true);
    let counter = process.counters.allocate();
    let first = Fragment { rail: 0, offset: 0, len: 3 << 20 };
    rails.posted(RdmaDirection::Write, first, CounterTarget { counter, value: 1 }, process.now);
    assert_eq!(lens(&rails.spread(RdmaDirection::Write, 1 << 20, 2, |_| true)), [(1, 1 << 20)]);
    let reads = rails.spread(RdmaDirection::Read, 1 << 20, 2, |_| true);
    assert_eq!(lens(&reads), [(0, 1 << 19), (1, 1 << 19)], "reads do not mind writes");
    assert!(rails.is_busy());
    process.counters.add(counter, 1);
    rails.observe(&process.counters, process.after(1000.0));
    assert!(!rails.is_busy());
    assert_eq!(rails.weights(RdmaDirection::Write, 2), [1.0, 1.0], "a rail by itself says nothing");
    let machine = Machine { rails: &[900.0, 900.0], bus: NO_BUS };
    assert_eq!(process.settled(&machine, 1 << 20), [1 << 19; 2]);
}

/// Each rail has the bus for one, two, or more parts in turn. The rail that comes last seems slower by up to a half.
#[test]
fn equal_rails_on_one_bus_stay_equal() {
    for len in [128 << 10, 256 << 10, 512 << 10, 1 << 20, 3 << 20] {
        for (rails, bus) in [(&[971.0; 2][..], 1500.0), (&[971.0; 2], 971.0), (&[500.0; 3], 700.0)]
        {
            let (mut process, machine) = (Process::new(), Machine { rails, bus });
            for _ in 0..20 {
                let (lens, _) = process.move_bytes(&machine, len);
                let (most, least) = (lens.iter().max().unwrap(), lens.iter().min().unwrap());
                assert!(most - least < 2 * GRAIN, "{len} bytes on a bus of {bus}: {lens:?}");
            }
        }
    }
}

/// Rails stay equal if lengths alternate, and if transfers of other lengths come between.
#[test]
fn lengths_in_turns_do_not_favour_a_rail() {
    let (mut process, machine) = (Process::new(), Machine { rails: &[971.0; 2], bus: 1000.0 });
    for _ in 0..20 {
        for len in [128 << 10, 16 << 10, 512 << 10, 256 << 10] {
            let (lens, _) = process.move_bytes(&machine, len);
            assert_eq!(lens, [len / 2; 2], "{:?}", process.rails.weights(RdmaDirection::Write, 2));
        }
    }
}

#[test]
fn unequal_rails_end_together() {
    for (fast, slow) in [(900.0, 300.0), (1000.0, 500.0), (1000.0, 100.0)] {
        for rails in [[fast, slow], [slow, fast]] {
            for len in [128 << 10, 512 << 10, 4 << 20] {
                let (mut process, machine) =
                    (Process::new(), Machine { rails: &rails, bus: NO_BUS });
                let halves = len as f64 / 2.0 / slow;
                let lens = process.settled(&machine, len);
                let took = process.move_bytes(&machine, len).1;
                let best = len as f64 / (fast + slow);
                let grain = GRAIN as f64 / slow;
                assert!(
                    took < 1.05 * best + 2.0 * grain,
                    "{rails:?}: {lens:?} in {took}, not {best} us"
                );
                assert!(took < halves);
            }
        }
    }
}

/// The bus is slower than both rails together, and one rail is slower than its share of the bus.
#[test]
fn unequal_rails_on_one_bus_share_by_their_rates() {
    let len = 1 << 20;
    for rails in [[971.0, 300.0], [300.0, 971.0]] {
        let (mut process, machine) = (Process::new(), Machine { rails: &rails, bus: 1000.0 });
        process.settled(&machine, len);
        // There are two transfers, each led by another rail.
        let took = [0; 2].map(|_| process.move_bytes(&machine, len).1);
        let (took, best) = (took[0].max(took[1]), len as f64 / 1000.0);
        assert!(took < 1.2 * best, "{rails:?}: {took}, not {best} us");
    }
}

#[test]
fn a_rail_that_becomes_slower_and_recovers_is_noticed() {
    let mut process = Process::new();
    for slow in [900.0, 200.0, 900.0, 50.0, 900.0] {
        let machine = Machine { rails: &[900.0, slow], bus: NO_BUS };
        let lens = process.settled(&machine, 1 << 20);
        let part = slow / (900.0 + slow);
        let off = (lens[1] as f64 / (1 << 20) as f64 - part).abs();
        assert!(off < 0.02, "{slow}: {lens:?}, not {part} of it");
    }
    let turns: Vec<_> =
        (0..4).map(|_| process.rails.next(RdmaDirection::Write, 2, |_| true)).collect();
    assert!(turns.contains(&0) && turns.contains(&1), "{turns:?}");
}

#[test]
fn short_operations_do_not_take_a_slow_rail() {
    let (mut process, machine) = (Process::new(), Machine { rails: &[900.0, 300.0], bus: NO_BUS });
    process.settled(&machine, 1 << 20);
    let rails = &process.rails;
    let turns: Vec<_> = (0..4).map(|_| rails.next(RdmaDirection::Write, 2, |_| true)).collect();
    assert_eq!(turns, [0; 4]);
    assert_eq!(
        rails.next(RdmaDirection::Write, 2, |rail| rail == 1),
        1,
        "unless it is the only one"
    );
    assert_ne!(
        rails.next(RdmaDirection::Read, 2, |_| true),
        rails.next(RdmaDirection::Read, 2, |_| true)
    );
}

/// A program computes while its data move, and observes only when some or all of them have long ended.
#[test]
fn an_end_that_nobody_waited_for_says_nothing() {
    let (mut process, machine) = (Process::new(), Machine { rails: &[900.0, 300.0], bus: NO_BUS });
    let known = process.settled(&machine, 1 << 20);
    for seen in [1, 2] {
        for _ in 0..10 {
            let (fragments, ends) = process.post(&machine, 1 << 20);
            assert_eq!(process.lens(&machine, &fragments), known);
            ends[..seen].iter().for_each(|&(counter, _)| process.counters.add(counter, 1));
            process.rails.observe(&process.counters, process.after(50_000.0));
            // From here on the process waits.
            process.rails.wait_begins(|| process.after(50_000.0));
            ends[seen..].iter().for_each(|&(counter, _)| process.counters.add(counter, 1));
            process.rails.observe(&process.counters, process.after(50_001.0));
            process.rails.wait_ends();
            process.now = process.after(60_000.0);
        }
    }
    let lens = process.move_bytes(&machine, 1 << 20).0;
    assert_eq!(lens, known);
}
