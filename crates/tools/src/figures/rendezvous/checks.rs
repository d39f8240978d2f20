//! What the text of Rendezvous states, from runs.

use super::{FEW_NODES, LARGE, MACHINE, MATRIX, NODES, cannon, overlap, policies, sizes};
use crate::figures::figure::{Check, Shown, Simulate};
use crate::figures::lab::Lab;
use crate::figures::published::Value;
use crate::figures::workload::{Memory, Part, Progress, Side, Team, Workload};
use weft_fabric_sim::machine::Policy;

/// The smallest power of two in KiB whose message is a rendezvous.
fn least_rendezvous(lab: &Lab) -> Result<Value, String> {
    for size in sizes(1 << 10) {
        if lab.measure(MACHINE, Workload::IsRendezvous, size)? > 0.0 {
            return Ok(Value::Number(size as f64 / 1024.0));
        }
    }
    Ok(Value::Word("none".to_owned()))
}

/// The mean over all sizes that are drawn of a design's bandwidth by that of none, in words: within 5 %
/// they are similar.
fn bandwidth(lab: &Lab, design: Progress) -> Result<&'static str, String> {
    let of = |design, size| lab.measure(MACHINE, Workload::Bandwidth(Memory::Once, design), size);
    let all = sizes(8 << 10);
    let mut sum = 0.0;
    for &size in &all {
        sum += of(design, size)? / of(Progress::None, size)?;
    }
    Ok(match sum / all.len() as f64 {
        mean if mean < 0.95 => "slower",
        mean if mean > 1.05 => "faster",
        _ => "similar",
    })
}

/// With the lock whose waiter spins. The text does not name the kind, but what it describes: the main thread "cannot make
/// any progress, however, it hinders the auxiliary thread from being scheduled", by "exhaustion of CPU resources" (5.1).
/// Who waits for a mutex hinders nobody; the figure draws both.
fn existing_bandwidth(lab: &Lab) -> Result<Value, String> {
    let word = bandwidth(lab, Progress::Spinning)?;
    Ok(Value::Word(format!("existing {word}")))
}

/// The lower of two designs' overlaps at the sender, of a large message.
fn at_sender(lab: &Lab) -> Result<Value, String> {
    let of = |design| {
        let what = overlap(Side::Sender, Memory::Once, design);
        lab.measure(MACHINE, Workload::Availability(what), LARGE)
    };
    Ok(Value::Number(of(Progress::None)?.min(of(Progress::Signal)?)))
}

/// Overlap of each policy, summed over all sizes, the best first; those that differ by less than a
/// percentage point a size are one place.
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

/// All that share the place of `first`, in one word.
fn tied(all: impl Iterator<Item = (f64, &'static str)>) -> Value {
    let all: Vec<_> = all.collect();
    let close = |other: &&(f64, &str)| (other.0 - all[0].0).abs() < sizes(8 << 10).len() as f64;
    let names: Vec<_> = all.iter().filter(close).map(|(_, name)| *name).collect();
    Value::Word(names.join(" and "))
}

fn over_iterations(lab: &Lab) -> Result<Value, String> {
    let of = |x| lab.measure(MACHINE, super::over_iterations(Policy::Dynamic), x);
    let all = super::iterations();
    let (first, last) = (of(all[0])?, of(all[all.len() - 1])?);
    let word = match last - first {
        apart if apart > 10.0 => "rises",
        apart if apart < -10.0 => "falls",
        _ => "stays",
    };
    Ok(Value::Word(word.to_owned()))
}

/// By how many percent the proposed design shortens a multiplication.
fn reduction(lab: &Lab, team: Team, nodes: usize, size: usize) -> Result<f64, String> {
    let time = |design| {
        let what = Workload::CannonOnNodes(size, cannon(team, design, Part::Total));
        lab.measure(MACHINE, what, nodes)
    };
    Ok(100.0 * (1.0 - time(Progress::Signal)? / time(Progress::None)?))
}

fn percent(lab: &Lab, team: Team, nodes: usize, size: usize) -> Result<Value, String> {
    Ok(Value::Number(reduction(lab, team, nodes, size)?))
}

/// Whether both configurations without threads gain less than that with threads, at every system size.
fn against_threads(lab: &Lab) -> Result<Value, String> {
    for nodes in NODES {
        let threads = reduction(lab, Team::Threads, nodes, MATRIX)?;
        for team in [Team::Single, Team::Four] {
            if reduction(lab, team, nodes, MATRIX)? >= threads {
                return Ok(Value::Word("not always less".to_owned()));
            }
        }
    }
    Ok(Value::Word("less".to_owned()))
}

/// What an interrupt at the end of the read gains, the mean over matrices: below 1 % is none.
fn second_interrupt(lab: &Lab) -> Result<Value, String> {
    let all = super::matrices();
    let mut sum = 0.0;
    for &size in &all {
        let time = |design| {
            let what = cannon(Team::Single, design, Part::Total);
            lab.measure(MACHINE, Workload::CannonOfSize(FEW_NODES, what), size)
        };
        sum += 1.0 - time(Progress::SignalTwice)? / time(Progress::Signal)?;
    }
    let word = match sum / all.len() as f64 {
        gain if gain > 0.01 => "some",
        gain if gain < -0.01 => "a loss",
        _ => "none",
    };
    Ok(Value::Word(word.to_owned()))
}

pub fn checks() -> Vec<Check> {
    let availability = |side, design| Workload::Availability(overlap(side, Memory::Once, design));
    let runs = [
        (
            "receiver-side overlap of the proposed design; above 1 MB",
            availability(Side::Receiver, Progress::Signal),
            2 * LARGE,
        ),
        (super::RECEIVER, availability(Side::Receiver, Progress::None), LARGE),
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
    let shown: [Shown; 12] = [
        (super::SENDER, at_sender),
        ("smallest message that uses rendezvous; MVAPICH as measured", least_rendezvous),
        (
            "bandwidth of the proposed design against no asynchronous progress; large messages",
            |lab| Ok(Value::Word(bandwidth(lab, Progress::Signal)?.to_owned())),
        ),
        (
            "bandwidth of the existing design against no asynchronous progress; large messages",
            existing_bandwidth,
        ),
        ("best scheduling policy for overlap; all message sizes", |lab| {
            Ok(tied(ranking(lab)?.into_iter()))
        }),
        ("worst scheduling policy for overlap; all message sizes", |lab| {
            Ok(tied(ranking(lab)?.into_iter().rev()))
        }),
        ("overlap under the default policy as iterations grow; 256 KiB", over_iterations),
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
        (
            "gain of an interrupt at the completion of the read; 4 nodes, matrix multiplication",
            second_interrupt,
        ),
    ];
    let runs = runs.map(|(row, work, x)| Check { row, simulate: Simulate::Run(MACHINE, work, x) });
    let shown = shown.map(|(row, run)| Check { row, simulate: Simulate::Runs(run) });
    runs.into_iter().chain(shown).collect()
}
