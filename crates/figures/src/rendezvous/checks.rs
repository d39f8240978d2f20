//! Statements of the text of Rendezvous, checked by runs.

use super::{FEW_NODES, LARGE, MACHINE, MATRIX, NODES, cannon, overlap, policies, sizes};
use crate::figure::{Check, Shown, Simulate};
use crate::lab::Lab;
use crate::orders::order;
use crate::published::{CheckResult, FigureValue};
use crate::workload::{
    Cannon, ComputingSide, MeasuredPart, Progress, RegistrationPolicy, Team, Workload,
};
use weft_fabric_sim::machine::SchedulerPolicy;

/// Returns the smallest message size that uses rendezvous, a power of two in KiB.
fn least_rendezvous(lab: &Lab) -> CheckResult {
    for size in sizes(1 << 10) {
        if lab.measure(MACHINE, Workload::IsRendezvous, size)? > 0.0 {
            return Ok(FigureValue::Number(size as f64 / 1024.0));
        }
    }
    Ok(FigureValue::Word("none".to_owned()))
}

/// Compares the bandwidth of a design with the bandwidth without progress in the background. Both are means over all drawn sizes.
/// The result depends on the threshold of `row`, and is returned in words.
fn bandwidth(lab: &Lab, design: Progress, row: &str) -> Result<&'static str, String> {
    let apart = lab.threshold(PAPER, row)?;
    let of = |design, size| {
        lab.measure(MACHINE, Workload::Bandwidth(RegistrationPolicy::Once, design), size)
    };
    let all = sizes(8 << 10);
    let mut sum = 0.0;
    for &size in &all {
        sum += of(design, size)? / of(Progress::None, size)?;
    }
    Ok(match sum / all.len() as f64 {
        mean if mean < 1.0 - apart => "slower",
        mean if mean > 1.0 + apart => "faster",
        _ => "similar",
    })
}

/// Checks the bandwidth of the existing design, with a spin lock. The text does not name the kind of lock, but it describes the
/// effect: the main thread "cannot make any progress, however, it hinders the auxiliary thread from being scheduled", by
/// "exhaustion of CPU resources" (5.1). A thread that waits for a mutex hinders no other thread. The figure draws both kinds of
/// lock.
fn existing_bandwidth(lab: &Lab) -> CheckResult {
    let word = bandwidth(lab, Progress::Spinning, EXISTING_BANDWIDTH)?;
    Ok(FigureValue::Word(format!("existing {word}")))
}

/// Compares the overlaps of two designs at the sender of a large message. Returns the lower overlap.
fn at_sender(lab: &Lab) -> CheckResult {
    let of = |design| {
        let what = overlap(ComputingSide::Sender, RegistrationPolicy::Once, design);
        lab.measure(MACHINE, Workload::Availability(what), LARGE)
    };
    Ok(FigureValue::Number(of(Progress::None)?.min(of(Progress::Signal)?)))
}

/// Returns the scheduling policies, each with the sum of its overlaps over all sizes. The best policy comes first.
fn ranking(lab: &Lab) -> Result<Vec<(f64, &'static str)>, String> {
    let mut all = Vec::new();
    for (name, policy) in policies() {
        let at = |size| lab.measure(MACHINE, super::scheduled(policy), size);
        let sum = sizes(8 << 10).into_iter().map(at).sum::<Result<f64, String>>()?;
        all.push((sum, name));
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(all)
}

/// Names the best policy, and all policies whose mean differs from the best mean by less than the threshold of `row`.
fn tied(lab: &Lab, row: &str, all: impl Iterator<Item = (f64, &'static str)>) -> CheckResult {
    let apart = lab.threshold(PAPER, row)? * sizes(8 << 10).len() as f64;
    let all: Vec<_> = all.collect();
    let close = |other: &&(f64, &str)| (other.0 - all[0].0).abs() < apart;
    let names: Vec<_> = all.iter().filter(close).map(|(_, name)| *name).collect();
    Ok(FigureValue::Word(names.join(" and ")))
}

fn over_iterations(lab: &Lab) -> CheckResult {
    let of = |x| lab.measure(MACHINE, super::over_iterations(SchedulerPolicy::Dynamic), x);
    let all = super::iterations();
    let (first, last) = (of(all[0])?, of(all[all.len() - 1])?);
    let least = lab.threshold(PAPER, OVER_ITERATIONS)?;
    let word = match last - first {
        apart if apart > least => "rises",
        apart if apart < -least => "falls",
        _ => "stays",
    };
    Ok(FigureValue::Word(word.to_owned()))
}

/// Returns the percentage by which the proposed design shortens a matrix multiplication.
fn reduction(lab: &Lab, team: Team, nodes: usize, size: usize) -> Result<f64, String> {
    let time = |design| {
        let what = Workload::CannonOnNodes(size, cannon(team, design, MeasuredPart::Total));
        lab.measure(MACHINE, what, nodes)
    };
    Ok(100.0 * (1.0 - time(Progress::Signal)? / time(Progress::None)?))
}

fn percent(lab: &Lab, team: Team, nodes: usize, size: usize) -> CheckResult {
    Ok(FigureValue::Number(reduction(lab, team, nodes, size)?))
}

/// Checks that the design gains less without OpenMP threads, in both configurations, than with threads, at every number of nodes.
fn against_threads(lab: &Lab) -> CheckResult {
    for nodes in NODES {
        let threads = reduction(lab, Team::Threads, nodes, MATRIX)?;
        for team in [Team::Single, Team::Four] {
            if reduction(lab, team, nodes, MATRIX)? >= threads {
                return Ok(FigureValue::Word("not always less".to_owned()));
            }
        }
    }
    Ok(FigureValue::Word("less".to_owned()))
}

/// Measures the gain if the end of the read also causes an interrupt. The gain is the mean over matrices.
fn second_interrupt(lab: &Lab) -> CheckResult {
    let all = super::matrices();
    let mut sum = 0.0;
    for &size in &all {
        let time = |design| {
            let what = cannon(Team::Single, design, MeasuredPart::Total);
            lab.measure(MACHINE, Workload::CannonOfSize(FEW_NODES, what), size)
        };
        sum += 1.0 - time(Progress::SignalTwice)? / time(Progress::Signal)?;
    }
    let least = lab.threshold(PAPER, SECOND_INTERRUPT)?;
    let word = match sum / all.len() as f64 {
        gain if gain > least => "some",
        gain if gain < -least => "a loss",
        _ => "none",
    };
    Ok(FigureValue::Word(word.to_owned()))
}

const PAPER: &str = "Rendezvous";
const PROPOSED_BANDWIDTH: &str =
    "bandwidth of the proposed design against no asynchronous progress; large messages";
const EXISTING_BANDWIDTH: &str =
    "bandwidth of the existing design against no asynchronous progress; large messages";
const BEST_POLICY: &str = "best scheduling policy for overlap; all message sizes";
const WORST_POLICY: &str = "worst scheduling policy for overlap; all message sizes";
const OVER_ITERATIONS: &str = "overlap under the default policy as iterations grow; 256 KiB";
const SECOND_INTERRUPT: &str =
    "gain of an interrupt at the completion of the read; 4 nodes, matrix multiplication";
pub const SP_WAITS: &str = "part of the time of NAS SP in MPI_Wait; existing design";
pub const SPARE_CORE: &str =
    "existing design with an extra core against no asynchronous progress; NAS SP and bandwidth";
pub const GROWS: &str = "receiver-side overlap of the proposed design as messages grow; rendezvous";
pub const FIFO: &str = "overlap under FIFO against the default policy; all message sizes";
pub const NO_COST: &str = "execution time with the proposed design where no message is a rendezvous; matrix multiplication";
pub const WAIT_9: &str =
    "time in MPI_Wait with the proposed design, figure 9; all system sizes, MPI+OpenMP";
pub const WAIT_10: &str = "time in MPI_Wait with the proposed design, figure 10; all problem sizes but 128x128, MPI+OpenMP";
pub const WAIT_11A: &str =
    "time in MPI_Wait with the proposed design, figure 11 (a); all problem sizes, MPI x1";
pub const WAIT_11B: &str =
    "time in MPI_Wait with the proposed design, figure 11 (b); all system sizes, MPI x1";
pub const WAIT_12A: &str = "time in MPI_Wait with the proposed design, figure 12 (a); all problem sizes but 256x256, MPI x4";
pub const WAIT_12B: &str =
    "time in MPI_Wait with the proposed design, figure 12 (b); all system sizes, MPI x4";

/// Measures the part of a time step that ranks spend in MPI_Wait, at every number of ranks. The time step is modelled on NAS SP. A
/// rank spins while it waits for the lock.
fn sp_waits(lab: &Lab) -> CheckResult {
    let part = |ranks| {
        let of = |part| lab.measure(MACHINE, Workload::Sweeps(Progress::Spinning, part), ranks);
        Ok::<_, String>(of(MeasuredPart::Wait)? / of(MeasuredPart::Total)?)
    };
    let (mut most, mut all) = (true, Vec::new());
    for ranks in super::RANKS {
        let part = part(ranks)?;
        most &= part > lab.threshold(PAPER, SP_WAITS)?;
        all.push(format!("{:.0} % on {ranks}", 100.0 * part));
    }
    Ok(FigureValue::Word(if most {
        "most".to_owned()
    } else {
        format!("{} ranks", all.join(", "))
    }))
}

/// Compares the design whose helper has its own core with the design without progress in the background. The comparison uses the
/// mean bandwidth, and the duration of a time step at each number of ranks.
fn spare_core(lab: &Lab) -> CheckResult {
    let mut slowest = 1.0f64;
    for ranks in super::RANKS {
        let time =
            |design| lab.measure(MACHINE, Workload::Sweeps(design, MeasuredPart::Total), ranks);
        slowest = slowest.max(time(Progress::SpinningApart)? / time(Progress::None)?);
    }
    let word = bandwidth(lab, Progress::SpinningApart, SPARE_CORE)?;
    Ok(FigureValue::Word(
        match slowest <= 1.0 + lab.threshold(PAPER, SPARE_CORE)? && word != "slower" {
            true => "performs well".to_owned(),
            false => format!("bandwidth {word}, SP up to {slowest:.2} times as long"),
        },
    ))
}

/// Checks that the overlap of rendezvous never falls as the message size grows.
fn grows(lab: &Lab) -> CheckResult {
    let what = overlap(ComputingSide::Receiver, RegistrationPolicy::Once, Progress::Signal);
    let mut before = 0.0f64;
    for size in sizes(8 << 10) {
        let now = lab.measure(MACHINE, Workload::Availability(what), size)?;
        if now < before - lab.threshold(PAPER, GROWS)? {
            return Ok(FigureValue::Word(format!("falls to {now:.1} % at {size} bytes")));
        }
        before = before.max(now);
    }
    Ok(FigureValue::Word("rises".to_owned()))
}

fn fifo(lab: &Lab) -> CheckResult {
    let all = ranking(lab)?;
    let sum = |name| all.iter().find(|(_, other)| *other == name).map_or(0.0, |(sum, _)| *sum);
    let least = lab.threshold(PAPER, FIFO)? * sizes(8 << 10).len() as f64;
    let better = sum("fifo") - sum("default") > least;
    Ok(FigureValue::Word(if better { "FIFO better" } else { "not better" }.to_owned()))
}

/// Checks that ranks always wait less with the proposed design. Returns the smallest and the largest reduction.
fn waits(lab: &Lab, places: &[usize], team: Team, at: fn(Cannon) -> Workload) -> CheckResult {
    let mut more = Vec::new();
    for &x in places {
        let time = |design| lab.measure(MACHINE, at(cannon(team, design, MeasuredPart::Wait)), x);
        let (with, without) = (time(Progress::Signal)?, time(Progress::None)?);
        if with >= without {
            more.push(x.to_string());
        }
    }
    Ok(FigureValue::Word(match more.is_empty() {
        true => "less".to_owned(),
        false => format!("not less at {}", more.join(", ")),
    }))
}

fn by_nodes(what: Cannon) -> Workload {
    Workload::CannonOnNodes(MATRIX, what)
}

/// Returns the matrix sizes of at least `least`. In the text, smaller matrices use no rendezvous.
fn sizes_from(least: usize) -> Vec<usize> {
    super::matrices().into_iter().filter(|size| *size >= least).collect()
}

/// Checks that matrices whose blocks are too small for a rendezvous take the same time with the design and without it.
fn no_cost(lab: &Lab) -> CheckResult {
    for size in [16, 32] {
        let time = |design| {
            let what = cannon(Team::Threads, design, MeasuredPart::Total);
            lab.measure(MACHINE, Workload::CannonOfSize(FEW_NODES, what), size)
        };
        let factor = time(Progress::Signal)? / time(Progress::None)?;
        if (factor - 1.0).abs() > lab.threshold(PAPER, NO_COST)? {
            return Ok(FigureValue::Word(format!("{factor:.4} times, {size}x{size}")));
        }
    }
    Ok(FigureValue::Word("unaffected".to_owned()))
}

const SP_TIME: &str =
    "time of NAS SP with the existing design against no asynchronous progress; all system sizes";
const SCHEDULED: &str =
    "bandwidth of the existing design under one scheduler and another; all message sizes";
const UNEVEN: &str = "overlap under the default policy from size to size; all message sizes";
const AT_ONCE: &str = "overlap under FIFO and round robin of few iterations against many; 256 KiB";
const TOTAL_12A: &str =
    "matrix multiplication time with the proposed design; all problem sizes but 256x256, MPI x4";
const TOTAL_12B: &str =
    "matrix multiplication time with the proposed design; all system sizes, MPI x4";

fn sp_time(lab: &Lab) -> CheckResult {
    let at = |ranks| {
        let time =
            |design| lab.measure(MACHINE, Workload::Sweeps(design, MeasuredPart::Total), ranks);
        Ok((time(Progress::Spinning)?, time(Progress::None)?))
    };
    let pairs = super::RANKS.into_iter().map(at).collect::<Result<Vec<_>, String>>()?;
    Ok(order("existing", &pairs))
}

/// Checks that the scheduling policy changes the bandwidth of the existing design at some size. The lock is a mutex. A thread that
/// spins with a higher priority than the lock's owner would never get the lock.
fn scheduled_bandwidth(lab: &Lab) -> CheckResult {
    let apart = 1.0 + lab.threshold(PAPER, SCHEDULED)?;
    for size in sizes(8 << 10) {
        let rate = |(_, policy)| {
            lab.measure(MACHINE, Workload::BandwidthUnder(policy, Progress::Locked), size)
        };
        let rates = policies().map(rate).into_iter().collect::<Result<Vec<_>, _>>()?;
        let (least, most) = rates
            .into_iter()
            .fold((f64::INFINITY, 0f64), |(l, m), rate| (l.min(rate), m.max(rate)));
        if most / least > apart {
            return Ok(FigureValue::Word("differs".to_owned()));
        }
    }
    Ok(FigureValue::Word("the same".to_owned()))
}

/// Checks that the overlap under the default policy equals the overlap under round robin at some rendezvous sizes, and is lower at
/// other sizes.
fn uneven(lab: &Lab) -> CheckResult {
    let apart = lab.threshold(PAPER, UNEVEN)?;
    let (mut near, mut far) = (0, 0);
    for size in sizes(8 << 10) {
        let of = |policy| lab.measure(MACHINE, super::scheduled(policy), size);
        let below = of(SchedulerPolicy::RoundRobin)? - of(SchedulerPolicy::Dynamic)?;
        *if below <= apart { &mut near } else { &mut far } += 1;
    }
    Ok(FigureValue::Word(match (near, far) {
        (_, 0) => "as round robin at all".to_owned(),
        (0, _) => "below round robin at all".to_owned(),
        _ => "uneven".to_owned(),
    }))
}

/// Compares the overlap after the fewest iterations with the overlap after the most iterations, under both policies.
fn at_once(lab: &Lab) -> CheckResult {
    let (alike, all) = (lab.threshold(PAPER, AT_ONCE)?, super::iterations());
    for (name, policy) in
        [("FIFO", SchedulerPolicy::Fifo), ("round robin", SchedulerPolicy::RoundRobin)]
    {
        let of = |x| lab.measure(MACHINE, super::over_iterations(policy), x);
        let (few, many) = (of(all[0])?, of(all[all.len() - 1])?);
        if (many - few).abs() > alike {
            return Ok(FigureValue::Word(format!("from {few:.1} to {many:.1} % under {name}")));
        }
    }
    Ok(FigureValue::Word("the same".to_owned()))
}

/// Checks that the design shortens a multiplication by four ranks per node by at least the threshold of `row`. Each of `places` is
/// a number of nodes and a matrix size.
fn shortens(lab: &Lab, row: &str, places: &[(usize, usize)]) -> CheckResult {
    let least = 100.0 * lab.threshold(PAPER, row)?;
    let mut below = Vec::new();
    for &(nodes, size) in places {
        let gain = reduction(lab, Team::Four, nodes, size)?;
        if gain < least {
            below.push(format!("{gain:.1} % at {size}x{size} on {nodes} nodes"));
        }
    }
    Ok(FigureValue::Word(match below.is_empty() {
        true => "considerably less".to_owned(),
        false => below.join(", "),
    }))
}

/// Lists the checks of statements in the text about the figures.
fn claims() -> Vec<Check> {
    let shown: [Shown; 6] = [
        (SP_TIME, sp_time),
        (SCHEDULED, scheduled_bandwidth),
        (UNEVEN, uneven),
        (AT_ONCE, at_once),
        (TOTAL_12A, |lab| {
            let places: Vec<_> = sizes_from(512).into_iter().map(|size| (64, size)).collect();
            shortens(lab, TOTAL_12A, &places)
        }),
        (TOTAL_12B, |lab| shortens(lab, TOTAL_12B, &NODES.map(|nodes| (nodes, MATRIX)))),
    ];
    shown.map(|(row, run)| Check { row, simulate: Simulate::Runs(run) }).into()
}

pub fn checks() -> Vec<Check> {
    let availability =
        |side, design| Workload::Availability(overlap(side, RegistrationPolicy::Once, design));
    let runs = [
        (
            "receiver-side overlap of the proposed design; above 1 MB",
            availability(ComputingSide::Receiver, Progress::Signal),
            2 * LARGE,
        ),
        (super::RECEIVER, availability(ComputingSide::Receiver, Progress::None), LARGE),
        (
            "interrupts per rendezvous; existing design",
            Workload::Interrupts(Progress::Locked),
            LARGE,
        ),
        (
            "interrupts per rendezvous; proposed design",
            Workload::Interrupts(Progress::Signal),
            LARGE,
        ),
    ];
    let shown: [Shown; 23] = [
        (super::SENDER, at_sender),
        ("smallest message that uses rendezvous; MVAPICH as measured", least_rendezvous),
        (PROPOSED_BANDWIDTH, |lab| {
            Ok(FigureValue::Word(bandwidth(lab, Progress::Signal, PROPOSED_BANDWIDTH)?.to_owned()))
        }),
        (EXISTING_BANDWIDTH, existing_bandwidth),
        (BEST_POLICY, |lab| tied(lab, BEST_POLICY, ranking(lab)?.into_iter())),
        (WORST_POLICY, |lab| tied(lab, WORST_POLICY, ranking(lab)?.into_iter().rev())),
        (OVER_ITERATIONS, over_iterations),
        ("reduction of matrix multiplication time; 256 cores, 2048x2048, MPI+OpenMP", |lab| {
            percent(lab, Team::Threads, 64, MATRIX)
        }),
        ("reduction of matrix multiplication time; 4 nodes, 128x128, MPI+OpenMP", |lab| {
            percent(lab, Team::Threads, FEW_NODES, 128)
        }),
        ("reduction of matrix multiplication time; 4 processes a node, 256x256, MPI", |lab| {
            percent(lab, Team::Four, 64, 256)
        }),
        (
            "reduction of matrix multiplication time with MPI against MPI+OpenMP; 4 nodes and more",
            against_threads,
        ),
        (SECOND_INTERRUPT, second_interrupt),
        (SP_WAITS, sp_waits),
        (SPARE_CORE, spare_core),
        (GROWS, grows),
        (FIFO, fifo),
        (NO_COST, no_cost),
        (WAIT_9, |lab| waits(lab, &NODES, Team::Threads, by_nodes)),
        (WAIT_10, |lab| {
            let at = |what| Workload::CannonOfSize(FEW_NODES, what);
            waits(lab, &sizes_from(256), Team::Threads, at)
        }),
        (WAIT_11A, |lab| {
            let at = |what| Workload::CannonOfSize(FEW_NODES, what);
            waits(lab, &sizes_from(128), Team::Single, at)
        }),
        (WAIT_11B, |lab| waits(lab, &NODES, Team::Single, by_nodes)),
        (WAIT_12A, |lab| {
            waits(lab, &sizes_from(512), Team::Four, |what| Workload::CannonOfSize(64, what))
        }),
        (WAIT_12B, |lab| waits(lab, &NODES, Team::Four, by_nodes)),
    ];
    let runs = runs.map(|(row, work, x)| Check { row, simulate: Simulate::Run(MACHINE, work, x) });
    let shown = shown.map(|(row, run)| Check { row, simulate: Simulate::Runs(run) });
    runs.into_iter().chain(shown).chain(claims()).collect()
}
