//! The hang report: the calls in which ranks wait, and cycles of ranks that wait for each other.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use weft_bootstrap::report::{Pending, Phase, RankStatus};

/// State of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankReport {
    /// Name of the program.
    pub program: String,
    /// Number of the process.
    pub pid: i32,
    /// Status that the rank publishes; `None` if the status cannot be read.
    pub status: Option<RankStatus>,
    /// State letter of the process; `None` if the process has ended.
    pub state: Option<char>,
}

/// Lists ranks in words: `1`, `1 and 2`, `1, 2 and 5`.
fn list(ranks: &[usize]) -> String {
    let words: Vec<String> = ranks.iter().map(usize::to_string).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

fn operation(pending: &Pending, now: u64) -> String {
    let mut text = pending.operation.clone();
    let name = pending.operation.to_ascii_lowercase();
    let direction = match () {
        () if name.contains("recv") || name.contains("probe") => "from",
        () if name.contains("send") => "to",
        () => "with",
    };
    match pending.peer {
        Some(peer) => write!(text, " {direction} rank {peer}"),
        None if direction == "from" => write!(text, " from any rank"),
        None => Ok(()),
    }
    .expect("a string takes all");
    if let Some(tag) = pending.tag {
        write!(text, ", tag {tag}").expect("a string takes all");
    }
    if !pending.communicator.is_empty() {
        write!(text, ", {}", pending.communicator).expect("a string takes all");
    }
    let seconds = now.saturating_sub(pending.since_millis) as f64 / 1000.0;
    write!(text, ", {} bytes, for {seconds:.1} s", pending.bytes).expect("a string takes all");
    text
}

fn phase(rank: &RankReport) -> Option<Phase> {
    rank.state?;
    Some(rank.status.as_ref()?.phase)
}

fn is_waiting(rank: &RankReport) -> bool {
    rank.state.is_some() && rank.status.as_ref().is_some_and(|status| !status.pending.is_empty())
}

fn headline(rank: &RankReport) -> String {
    let process = match rank.state {
        None => return "ended".into(),
        Some('T' | 't') => " (the process is stopped)",
        Some('D') => " (the process waits for a device)",
        Some('R') => " (the process is running)",
        Some(_) => " (the process sleeps)",
    };
    let Some(status) = &rank.status else { return format!("state changes too fast{process}") };
    match (status.phase, status.pending.is_empty()) {
        (Phase::Outside, _) => format!("not in MPI yet{process}"),
        (Phase::Running, true) => format!("computing, no wait in MPI{process}"),
        (Phase::Running, false) if status.progress.loop_reports != 0 => {
            "has tested or probed in a loop, without a result".into()
        }
        (Phase::Running, false) => "waits in MPI".into(),
        (Phase::Finalizing, _) => "in MPI_Finalize".into(),
        (Phase::Finalized, _) => format!("after MPI_Finalize{process}"),
    }
}

/// Returns the rank for which `rank` waits, if there is exactly one such rank.
fn target(rank: &RankReport) -> Option<usize> {
    let status = rank.status.as_ref().filter(|status| is_waiting(rank) && status.more == 0)?;
    let first = status.pending.first()?.peer?;
    status.pending.iter().all(|pending| pending.peer == Some(first)).then_some(first)
}

/// Finds cycles of ranks in which each rank waits only for the next rank. Each cycle begins with its lowest rank.
pub fn cycles(targets: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    // For each rank, the start of the walk that has visited the rank.
    let mut seen = vec![usize::MAX; targets.len()];
    for start in 0..targets.len() {
        let mut path = Vec::new();
        let mut next = Some(start);
        while let Some(at) = next.filter(|&at| at < targets.len() && seen[at] == usize::MAX) {
            seen[at] = start;
            path.push(at);
            next = targets[at];
        }
        // If the walk has returned to a rank of its own path, the cycle begins at this rank.
        let entry = next.and_then(|at| path.iter().position(|&on_path| on_path == at));
        if let Some(entry) = entry {
            let mut cycle = path.split_off(entry);
            let lowest = (0..cycle.len()).min_by_key(|&at| cycle[at]).unwrap_or(0);
            cycle.rotate_left(lowest);
            found.push(cycle);
        }
    }
    found
}

/// Writes the report. `now` is the present time in milliseconds, on the clock of the ranks' status.
pub fn render(ranks: &[RankReport], now: u64) -> String {
    let mut text = format!("mpiexec: what {} ranks are doing\n", ranks.len());
    for (number, rank) in ranks.iter().enumerate() {
        let RankReport { program, pid, status, .. } = rank;
        writeln!(text, "  rank {number} ({program}, process {pid}): {}", headline(rank))
            .expect("a string takes all");
        if let Some(status) = status.as_ref().filter(|_| is_waiting(rank)) {
            for pending in &status.pending {
                writeln!(text, "    {}", operation(pending, now)).expect("a string takes all");
            }
            if status.more > 0 {
                writeln!(text, "    and {} more", status.more).expect("a string takes all");
            }
        }
    }
    let targets: Vec<_> = ranks.iter().map(target).collect();
    for cycle in cycles(&targets) {
        let mut words: Vec<String> = cycle.iter().map(usize::to_string).collect();
        words.push(cycle[0].to_string());
        writeln!(text, "  these wait for each other: {}", words.join(" -> "))
            .expect("a string takes all");
    }
    for (number, target) in targets.iter().enumerate() {
        let Some((at, rank)) = target.and_then(|at| Some((at, ranks.get(at)?))) else { continue };
        let why = match phase(rank) {
            None if rank.state.is_none() => "has ended",
            Some(Phase::Finalizing | Phase::Finalized) => "has called MPI_Finalize",
            _ => continue,
        };
        writeln!(text, "  rank {number} waits for rank {at}, which {why}")
            .expect("a string takes all");
    }
    let which = |test: &dyn Fn(&RankReport) -> bool| -> Vec<usize> {
        (0..ranks.len()).filter(|&number| test(&ranks[number])).collect()
    };
    let leaving = which(&|rank| phase(rank) == Some(Phase::Finalizing));
    let inside = which(&|rank| phase(rank) == Some(Phase::Running) && is_waiting(rank));
    if !leaving.is_empty() && !inside.is_empty() {
        let (verb, verb2) = (
            if leaving.len() == 1 { "is" } else { "are" },
            if inside.len() == 1 { "waits" } else { "wait" },
        );
        writeln!(
            text,
            "  {} {verb} in MPI_Finalize while {} still {verb2} in other calls",
            list(&leaving),
            list(&inside)
        )
        .expect("a string takes all");
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_bootstrap::report::WaitProgress;

    fn rank(phase: Phase, peers: &[Option<usize>]) -> RankReport {
        let pending = peers.iter().map(|&peer| Pending {
            operation: "MPI_Recv".into(),
            peer,
            tag: Some(7),
            bytes: 8,
            communicator: "MPI_COMM_WORLD".into(),
            since_millis: 1000,
        });
        let progress = WaitProgress::default();
        let status = RankStatus { phase, pending: pending.collect(), more: 0, progress };
        RankReport { program: "a".into(), pid: 10, status: Some(status), state: Some('S') }
    }

    #[test]
    fn circles_are_found_once_each() {
        assert_eq!(cycles(&[Some(1), Some(2), Some(0)]), [[0, 1, 2]]);
        assert_eq!(cycles(&[Some(3), Some(2), Some(1), Some(1)]), [[1, 2]]);
        assert_eq!(cycles(&[Some(0), None, Some(9)]), [[0]]);
        assert_eq!(cycles(&[Some(1), None]), Vec::<Vec<usize>>::new());
        assert_eq!(cycles(&[Some(2), Some(3), Some(0), Some(1)]), [[0, 2], [1, 3]]);
    }

    #[test]
    fn the_report_names_calls_and_the_circle() {
        let ranks = [rank(Phase::Running, &[Some(1)]), rank(Phase::Running, &[Some(0)])];
        let text = render(&ranks, 3500);
        let call = "MPI_Recv from rank 1, tag 7, MPI_COMM_WORLD, 8 bytes, for 2.5 s";
        assert!(text.contains(call), "{text}");
        assert!(text.contains("0 -> 1 -> 0"), "{text}");
    }

    #[test]
    fn who_waits_for_several_is_in_no_circle() {
        let ranks = [
            rank(Phase::Running, &[Some(1), Some(0)]),
            rank(Phase::Running, &[Some(0), None]),
            rank(Phase::Running, &[]),
        ];
        let text = render(&ranks, 0);
        assert!(!text.contains("->"), "{text}");
        assert!(text.contains("from any rank") && text.contains("computing"), "{text}");
    }

    #[test]
    fn finalize_against_another_call_is_said() {
        let mut gone = rank(Phase::Finalized, &[]);
        gone.state = None;
        let ranks = [
            rank(Phase::Finalizing, &[]),
            rank(Phase::Running, &[Some(0)]),
            rank(Phase::Running, &[Some(3)]),
            gone,
        ];
        let text = render(&ranks, 0);
        assert!(text.contains("0 is in MPI_Finalize while 1 and 2 still wait"), "{text}");
        assert!(text.contains("rank 1 waits for rank 0, which has called MPI_Finalize"), "{text}");
        assert!(text.contains("rank 2 waits for rank 3, which has ended"), "{text}");
    }
}
