//! Rendezvous: asynchronous progress by an auxiliary thread and signals.

mod checks;

use super::figure::{Axis, Document, Figure, FigureHeading, Headline, Mark};
use super::series::{Quotient, Series};
use super::workload::{
    Cannon, ComputingSide, MeasuredPart, Overlap, Progress, RegistrationPolicy, Team, Workload,
};
use weft_fabric_sim::machine::SchedulerPolicy;

const MACHINE: &str = "rendezvous";
/// Maximum message size that is drawn, in bytes.
const LARGEST: usize = 4 << 20;
/// Message size in bytes above which the document reports an overlap of 100 %.
const LARGE: usize = 1 << 20;
/// Number of elements on a side of the matrix of figure 9, and number of nodes of figure 10.
const MATRIX: usize = 2048;
const FEW_NODES: usize = 4;
/// Numbers of nodes. They are squares, so that the largest matrix can be divided evenly.
const NODES: [usize; 3] = [4, 16, 64];
/// Numbers of ranks of NAS SP. They are squares, too.
const RANKS: [usize; 4] = [4, 9, 16, 36];

/// Numbers of ranks on a torus, each on its own node.
const MANY: [usize; 4] = [16, 64, 256, 1024];

/// Names of the designs. The last is our own design.
const BASE: &str = "no-async";
const EXISTING: &str = "existing-async";
const SPINNING: &str = "existing-async, spinning lock";
const NEW: &str = "new-async";
const APART: &str = "existing-async, spinning lock, two cores";
const OURS: &str = "handover (ours)";

const BYTES: Axis = Axis { label: "Message", unit: "bytes", doubling: true };
const AVAILABILITY: Axis = Axis { label: "Availability", unit: "%", doubling: false };
const ELEMENTS: Axis = Axis { label: "Elements a side", unit: "", doubling: true };
const ON_NODES: Axis = Axis { label: "Nodes", unit: "", doubling: true };
const TIME: Axis = Axis { label: "Time", unit: "us", doubling: true };
const SPEED: Axis = Axis { label: "Time of no-async over its own", unit: "", doubling: false };

const SENDER: &str = "sender-side overlap of both designs; large messages";
const RECEIVER: &str = "receiver-side overlap without asynchronous progress; large messages";
const PROPOSED: &str = "receiver-side overlap of the proposed design; above 1 MB";

fn doubling(from: usize, to: usize) -> Vec<usize> {
    std::iter::successors(Some(from), |x| Some(x * 2)).take_while(|x| *x <= to).collect()
}

fn sizes(from: usize) -> Vec<usize> {
    doubling(from, LARGEST)
}

/// Returns the problem sizes of figures 2, 10, 11 and 12.
fn matrices() -> Vec<usize> {
    doubling(128, MATRIX)
}

fn iterations() -> Vec<usize> {
    doubling(32, 8192)
}

/// Returns the document's three scheduling policies, with the names that the document uses.
fn policies() -> [(&'static str, SchedulerPolicy); 3] {
    [
        ("default", SchedulerPolicy::Dynamic),
        ("fifo", SchedulerPolicy::Fifo),
        ("round robin", SchedulerPolicy::RoundRobin),
    ]
}

/// Returns an overlap test under round robin, the policy that the document found best.
fn overlap(side: ComputingSide, memory: RegistrationPolicy, progress: Progress) -> Overlap {
    Overlap { side, memory, progress, policy: SchedulerPolicy::RoundRobin, rounds: None }
}

/// Returns the workload of figure 7. Like the benchmark, it has 1000 iterations.
fn scheduled(policy: SchedulerPolicy) -> Workload {
    let overlap = overlap(ComputingSide::Receiver, RegistrationPolicy::Once, Progress::Signal);
    Workload::Availability(Overlap { policy, rounds: Some(1000), ..overlap })
}

/// Returns the workload of figure 8.
fn over_iterations(policy: SchedulerPolicy) -> Workload {
    let overlap = overlap(ComputingSide::Receiver, RegistrationPolicy::Once, Progress::Signal);
    Workload::AvailabilityOver(256 << 10, Overlap { policy, ..overlap })
}

const fn cannon(team: Team, progress: Progress, part: MeasuredPart) -> Cannon {
    Cannon { team, progress, part }
}

fn curve(name: &'static str, workload: Workload, x: Vec<usize>) -> Series {
    Series { name, machine: MACHINE, workload, over: None, x }
}

/// Returns curves of the overlap on one side: one curve for each design, and one for the base with the registration that our
/// library does for each message.
fn overlaps(side: ComputingSide) -> Vec<Series> {
    let at = |memory, design| Workload::Availability(overlap(side, memory, design));
    let all = || sizes(1 << 10);
    vec![
        curve(BASE, at(RegistrationPolicy::Once, Progress::None), all()),
        curve(NEW, at(RegistrationPolicy::Once, Progress::Signal), all()),
        curve(OURS, at(RegistrationPolicy::Once, Progress::Handover), all()),
        curve(
            "no-async, registering each time",
            at(RegistrationPolicy::Each, Progress::None),
            all(),
        ),
    ]
}

fn bandwidths() -> Vec<Series> {
    let at =
        |name, memory, design| curve(name, Workload::Bandwidth(memory, design), sizes(8 << 10));
    let under = |name, policy, design| {
        curve(name, Workload::BandwidthUnder(policy, design), sizes(8 << 10))
    };
    vec![
        at(BASE, RegistrationPolicy::Once, Progress::None),
        at(NEW, RegistrationPolicy::Once, Progress::Signal),
        at(EXISTING, RegistrationPolicy::Once, Progress::Locked),
        at(SPINNING, RegistrationPolicy::Once, Progress::Spinning),
        at(APART, RegistrationPolicy::Once, Progress::SpinningApart),
        at(OURS, RegistrationPolicy::Once, Progress::Handover),
        under("existing-async, round robin", SchedulerPolicy::RoundRobin, Progress::Locked),
        under("new-async, default policy", SchedulerPolicy::Dynamic, Progress::Signal),
        at("no-async, registering each time", RegistrationPolicy::Each, Progress::None),
    ]
}

/// Returns curves of the total time and of the time in MPI_Wait of multiplications, for each design.
fn multiplications(x: &[usize], at: impl Fn(Cannon) -> Workload, team: Team) -> Vec<Series> {
    let names = [
        ("no-async", Progress::None, MeasuredPart::Total),
        ("new-async", Progress::Signal, MeasuredPart::Total),
        ("handover (ours)", Progress::Handover, MeasuredPart::Total),
        ("MPI_Wait, no-async", Progress::None, MeasuredPart::Wait),
        ("MPI_Wait, new-async", Progress::Signal, MeasuredPart::Wait),
        ("MPI_Wait, handover (ours)", Progress::Handover, MeasuredPart::Wait),
    ];
    let of = |(name, design, part)| curve(name, at(cannon(team, design, part)), x.to_vec());
    names.into_iter().map(of).collect()
}

/// Returns curves of the speed of designs relative to the base.
fn speeds(
    designs: &[(&'static str, Progress)],
    x: &[usize],
    at: impl Fn(Progress) -> Workload,
) -> Vec<Series> {
    let of = |&(name, design)| Series {
        over: Some(at(Progress::None)),
        ..curve(name, at(design), x.to_vec())
    };
    designs.iter().map(of).collect()
}

struct Matrices {
    id: &'static str,
    title: &'static str,
    place: &'static str,
    team: Team,
    rows: Vec<&'static str>,
    note: &'static str,
}

impl Matrices {
    fn on_nodes(self) -> Figure {
        let at = |what| Workload::CannonOnNodes(MATRIX, what);
        let series = multiplications(&NODES, at, self.team);
        self.figure(ON_NODES, series)
    }

    fn of_size(self, nodes: usize) -> Figure {
        let at = |what| Workload::CannonOfSize(nodes, what);
        let series = multiplications(&matrices(), at, self.team);
        self.figure(ELEMENTS, series)
    }

    fn figure(self, x: Axis, series: Vec<Series>) -> Figure {
        let Matrices { id, title, place, rows, note, .. } = self;
        Figure { id, title, place, x, y: TIME, series, marks: Vec::new(), rows, note }
    }
}

/// Returns a figure without marks.
fn plain(
    heading: FigureHeading,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    rows: Vec<&'static str>,
    note: &'static str,
) -> Figure {
    let FigureHeading { id, title, place } = heading;
    Figure { id, title, place, x, y, series, marks: Vec::new(), rows, note }
}

/// Returns figures 2 to 4: comparisons of the designs.
fn designs() -> Vec<Figure> {
    let of_size = |design| {
        let what = cannon(Team::Single, design, MeasuredPart::Total);
        Workload::CannonOfSize(FEW_NODES, what)
    };
    vec![
        plain(
            FigureHeading::new("rendezvous-2", "An interrupt at the end of the read", "figure 2"),
            ELEMENTS,
            SPEED,
            speeds(
                &[("one interrupt", Progress::Signal), ("two interrupts", Progress::SignalTwice)],
                &matrices(),
                of_size,
            ),
            vec![
                "gain of an interrupt at the completion of the read; 4 nodes, matrix multiplication",
            ],
            "Cannon's algorithm on 4 nodes, a rank each; signals when a payload is offered, and also \
             when its read is over, so that the end of the rendezvous is sent at once.",
        ),
        plain(
            FigureHeading::new("rendezvous-3", "Bandwidth for large messages", "figure 3"),
            BYTES,
            Axis { label: "Bandwidth", unit: "MB/s", doubling: false },
            bandwidths(),
            vec![
                "bandwidth of the proposed design against no asynchronous progress; large messages",
                "bandwidth of the existing design against no asynchronous progress; large messages",
                "interrupts per rendezvous; existing design",
                "interrupts per rendezvous; proposed design",
            ],
            "Windows of 64 messages, each window answered by an empty message, as in the OSU benchmarks. \
             The text does not name the lock of the existing design; the row below is that with a spinning one, under Linux's default \
             policy here. With a mutex, for which threads sleep, an interrupt costs four switches, which large \
             messages hide. With a spinning lock a helper that interrupts the polling main thread spins \
             until its slice is over, and nobody gets on; on a core of its own it does not, as the text says. \
             The existing design is drawn under the default policy and the others under round robin, but where a \
             name says otherwise: under round robin a helper that spins at its higher priority keeps the holder of \
             the lock from its core for ever, so it cannot be drawn there.",
        ),
        plain(
            FigureHeading::new("rendezvous-4", "Time steps like those of NAS SP", "figure 4"),
            Axis { label: "Processes", unit: "", doubling: true },
            SPEED,
            speeds(
                &[
                    (NEW, Progress::Signal),
                    (EXISTING, Progress::Locked),
                    (SPINNING, Progress::Spinning),
                    (APART, Progress::SpinningApart),
                    (OURS, Progress::Handover),
                ],
                &RANKS,
                |design| Workload::Sweeps(design, MeasuredPart::Total),
            ),
            vec![checks::SP_WAITS, checks::SPARE_CORE],
            "Messages and computation of class B in the order of SP, in small: not the program itself. The \
             document's bars are times normalized to no-async, the reciprocal of these.",
        ),
    ]
}

/// Returns figures 5 to 8: the part of the processor time that is left for the program.
fn availability() -> Vec<Figure> {
    let by_policy = |of: fn(SchedulerPolicy) -> Workload, x: Vec<usize>| {
        policies().map(|(name, policy)| curve(name, of(policy), x.clone())).to_vec()
    };
    vec![
        Figure {
            marks: vec![
                Mark { row: RECEIVER, series: BASE, x: LARGE },
                Mark { row: PROPOSED, series: NEW, x: 2 * LARGE },
            ],
            ..plain(
                FigureHeading::new(
                    "rendezvous-5",
                    "Application availability at the receiver",
                    "figure 5",
                ),
                BYTES,
                AVAILABILITY,
                overlaps(ComputingSide::Receiver),
                vec![checks::GROWS],
                "Sandia Micro-Benchmark: a message is started, the program computes, then waits.",
            )
        },
        Figure {
            marks: vec![Mark { row: SENDER, series: BASE, x: LARGE }],
            ..plain(
                FigureHeading::new(
                    "rendezvous-6",
                    "Application availability at the sender",
                    "figure 6",
                ),
                BYTES,
                AVAILABILITY,
                overlaps(ComputingSide::Sender),
                Vec::new(),
                "As figure 5. Simulated is the lower of both designs.",
            )
        },
        plain(
            FigureHeading::new("rendezvous-7", "Effect of the scheduler", "figure 7"),
            BYTES,
            AVAILABILITY,
            by_policy(scheduled, sizes(8 << 10)),
            vec![
                "best scheduling policy for overlap; all message sizes",
                "worst scheduling policy for overlap; all message sizes",
                checks::FIFO,
            ],
            "The proposed design at the receiver, 1000 iterations. The helper has the highest priority \
             that its policy offers: under the default one that is the program's own.",
        ),
        plain(
            FigureHeading::new("rendezvous-8", "Effect of the scheduler over time", "figure 8"),
            Axis { label: "Iterations", unit: "", doubling: true },
            AVAILABILITY,
            by_policy(over_iterations, iterations()),
            vec!["overlap under the default policy as iterations grow; 256 KiB"],
            "As figure 7, messages of 256 KiB.",
        ),
    ]
}

/// Returns figures 9 to 12: matrix multiplication, with threads and without.
fn products() -> Vec<Figure> {
    vec![
        Matrices {
            id: "rendezvous-9",
            title: "Matrix multiplication, MPI+OpenMP, varying system size",
            place: "figure 9",
            team: Team::Threads,
            rows: vec![
                "reduction of matrix multiplication time; 256 cores, 2048x2048, MPI+OpenMP",
                checks::WAIT_9,
            ],
            note: "2048 x 2048 doubles; one rank a node, four threads share its products.",
        }
        .on_nodes(),
        Matrices {
            id: "rendezvous-10",
            title: "Matrix multiplication, MPI+OpenMP, varying problem size",
            place: "figure 10",
            team: Team::Threads,
            rows: vec![
                "reduction of matrix multiplication time; 4 nodes, 128x128, MPI+OpenMP",
                checks::WAIT_10,
                checks::NO_COST,
            ],
            note: "4 nodes. A block of a 128 x 128 matrix has 32 KiB here and is a rendezvous; the \
                   document's messages were of 4 KiB, which it does not explain.",
        }
        .of_size(FEW_NODES),
        Matrices {
            id: "rendezvous-11a",
            title: "Matrix multiplication, MPI x1, varying problem size",
            place: "figure 11 (a)",
            team: Team::Single,
            rows: vec![checks::WAIT_11A],
            note: "One rank a node, 4 nodes.",
        }
        .of_size(FEW_NODES),
        Matrices {
            id: "rendezvous-11b",
            title: "Matrix multiplication, MPI x1, varying system size",
            place: "figure 11 (b)",
            team: Team::Single,
            rows: vec![
                "reduction of matrix multiplication time with MPI against MPI+OpenMP; 4 nodes and more",
                checks::WAIT_11B,
            ],
            note: "One rank a node, 2048 x 2048 doubles.",
        }
        .on_nodes(),
        Matrices {
            id: "rendezvous-12a",
            title: "Matrix multiplication, MPI x4, varying problem size",
            place: "figure 12 (a)",
            team: Team::Four,
            rows: vec![
                "reduction of matrix multiplication time; 4 processes a node, 256x256, MPI",
                checks::WAIT_12A,
            ],
            note: "Four ranks a node, 64 nodes: of those that are squares, only there are the blocks of a \
                   256 x 256 matrix below 8 KiB, as the text says.",
        }
        .of_size(64),
        Matrices {
            id: "rendezvous-12b",
            title: "Matrix multiplication, MPI x4, varying system size",
            place: "figure 12 (b)",
            team: Team::Four,
            rows: vec![checks::WAIT_12B],
            note: "Four ranks a node, 2048 x 2048 doubles.",
        }
        .on_nodes(),
    ]
}

/// Returns the figure that the document leaves to future work.
fn neighbours() -> Figure {
    plain(
        FigureHeading::new(
            "rendezvous-ranks",
            "Time steps with large faces, up to 1,024 ranks",
            "section 7, future work",
        ),
        Axis { label: "Ranks", unit: "", doubling: true },
        TIME,
        [BASE, NEW, EXISTING, OURS]
            .into_iter()
            .zip([Progress::None, Progress::Signal, Progress::Locked, Progress::Handover])
            .map(|(name, design)| curve(name, Workload::Halos(design), MANY.to_vec()))
            .collect(),
        Vec::new(),
        "Simulated only: 256 KiB to each of four neighbours on a torus, about 1.5 ms of computation that \
         differs by rank and step, a barrier every fourth step. What is not moved on while a rank computes holds \
         its neighbours up, and they theirs.",
    )
}

fn figures() -> Vec<Figure> {
    let mut all = designs();
    all.extend(availability());
    all.extend(products());
    all.push(neighbours());
    all
}

fn headlines() -> Vec<Headline> {
    let one =
        |name, workload, x| Headline { name, machine: MACHINE, of: Quotient::One(workload, x) };
    let at = |side, design| Workload::Availability(overlap(side, RegistrationPolicy::Once, design));
    let product = |design| {
        (Workload::CannonOnNodes(MATRIX, cannon(Team::Threads, design, MeasuredPart::Total)), 64)
    };
    vec![
        one(
            "bandwidth, 4 MiB",
            Workload::Bandwidth(RegistrationPolicy::Once, Progress::None),
            LARGEST,
        ),
        one(
            "availability at the receiver, no-async, 1 MiB",
            at(ComputingSide::Receiver, Progress::None),
            LARGE,
        ),
        one(
            "availability at the receiver, new-async, 1 MiB",
            at(ComputingSide::Receiver, Progress::Signal),
            LARGE,
        ),
        one(
            "availability at the sender, no-async, 1 MiB",
            at(ComputingSide::Sender, Progress::None),
            LARGE,
        ),
        Headline {
            name: "matrix multiplication on 256 cores, new-async over no-async",
            machine: MACHINE,
            of: Quotient::Ratio([product(Progress::Signal), product(Progress::None)]),
        },
    ]
}

pub fn document() -> Document {
    Document {
        id: "rendezvous",
        paper: "Rendezvous",
        title: "Kumar et al. 2008, lock-free asynchronous rendezvous",
        machines: &[MACHINE],
        about: "Rendezvous by RDMA read over the shipped messages: without progress while the program \
                computes, with the existing design (a helper under a lock), with the proposed one (a helper \
                that signals), and with ours (a helper that works while the program is outside of the \
                library). Where no policy is named, threads are scheduled round robin, which the \
                document found best. MVAPICH, which it measured, keeps memory registered between \
                messages; ours registers it for each rendezvous, on the sender's processor. Both are \
                drawn for the base, and all else is with memory registered once.",
        figures: figures(),
        maps: Vec::new(),
        checks: checks::checks(),
        headlines: headlines(),
    }
}
