//! Statements of CollGM's text, checked by runs.

use super::{BCAST, LARGE, MACHINE, SMALL, barrier_nodes, powers, segments};
use crate::figure::{Check, Shown, Simulate};
use crate::lab::Lab;
use crate::orders::order;
use crate::published::{CheckResult, FigureValue};
use crate::workload::{Bound, Contenders, Passing, Workload};
use weft_collective::CollectiveKind;

pub const BEST_SEGMENT: &str = "best eager segment size; 32 MByte transfer";
pub const BLOCK: &str = "registration pipeline block; rendezvous";
pub const SWITCH: &str =
    "switch from binomial tree to flat tree in scatter and gather; message size at or above";
pub const VERY_SMALL: &str = "best broadcast algorithm; very small messages";
pub const STANDARD: &str = "best broadcast algorithm; small to standard messages";
pub const BIG: &str = "best broadcast algorithm; large messages";
pub const BARRIER: &str = "barrier against the tuned module of Open MPI; all node counts";
pub const ALLTOALL_16: &str = "alltoall against the tuned module of Open MPI; 16 nodes";
pub const BCAST_16: &str = "broadcast against the tuned module of Open MPI; 16 nodes";
pub const BCAST_64: &str = "broadcast against the tuned module of Open MPI; 64 nodes";
pub const SCATTER_16: &str = "scatter against the tuned module of Open MPI; 16 nodes";
pub const SCATTER_64: &str = "scatter against the tuned module of Open MPI; 64 nodes";
pub const GATHER: &str = "gather against scatter; 16 nodes";
pub const MAP_7: &str =
    "fastest at most places of the map, the component or what is beside it; alltoall";
pub const MAP_9: &str =
    "fastest at most places of the map, the component or what is beside it; broadcast";
pub const MAP_11: &str =
    "fastest at most places of the map, the component or what is beside it; scatter";
pub const REGIONS_9: &str = "regions of the map by growing message; broadcast, most node counts";
pub const REGIONS_11: &str = "regions of the map by growing message; scatter, most node counts";

const PAPER: &str = "CollGM";

/// Returns the size at which `workload` is fastest, in KiB. Sizes whose times are close to the shortest time count as equally fast,
/// because a measurement cannot distinguish the times. The largest of these sizes is returned. In the model, smaller sizes may be
/// as fast, because the model hides the cost of a segment behind the transfer of the segment's bytes.
fn best_size(lab: &Lab, workload: Workload, row: &str) -> CheckResult {
    let level = lab.threshold(PAPER, row)?;
    let time = |size| Ok((lab.measure(MACHINE, workload, size)?, size));
    let times = segments().into_iter().map(time).collect::<Result<Vec<_>, String>>()?;
    let least = times.iter().map(|t| t.0).fold(f64::INFINITY, f64::min);
    let largest = times.iter().filter(|t| t.0 <= least * level).map(|t| t.1).max();
    Ok(FigureValue::Number(largest.unwrap_or(0) as f64 / 1024.0))
}

/// Returns the broadcast that is fastest for a class of sizes on both node counts: the broadcast whose times have the smallest
/// product. The name is spelled as in the list of published numbers.
fn best_bcast(lab: &Lab, sizes: &[usize]) -> CheckResult {
    let mut best = (f64::INFINITY, "");
    for name in BCAST {
        let mut product = 0.0;
        for nodes in [SMALL, LARGE] {
            for &bytes in sizes {
                let workload = Workload::Collective(CollectiveKind::Bcast, name, nodes);
                product += lab.measure(MACHINE, workload, bytes)?.ln();
            }
        }
        if product < best.0 {
            best = (product, name);
        }
    }
    Ok(FigureValue::Word(spelled(best.1).to_owned()))
}

/// Returns an algorithm's name as spelled in the list of published numbers.
fn spelled(name: &'static str) -> &'static str {
    match name {
        "BINOMIAL" => "binomial tree",
        "SPLIT-BINARY" => "split binary tree",
        "PIPELINE" => "pipeline",
        "FLAT" => "flat tree",
        "BINARY" => "binary tree",
        other => other,
    }
}

/// Returns a power of two, in KiB. From this size on, the flat tree is at least as fast as the binomial tree, in both operations on
/// the small node count.
fn switch(lab: &Lab) -> CheckResult {
    let mut from = None;
    for bytes in powers(1, 64 << 10, 2) {
        let mut flat = true;
        for operation in [CollectiveKind::Scatter, CollectiveKind::Gather] {
            let time =
                |name| lab.measure(MACHINE, Workload::Collective(operation, name, SMALL), bytes);
            flat &= time("FLAT")? <= time("BINOMIAL")?;
        }
        from = if flat { from.or(Some(bytes)) } else { None };
    }
    Ok(from
        .map_or(FigureValue::Word("never".to_owned()), |b| FigureValue::Number(b as f64 / 1024.0)))
}

/// Compares the faster of two barriers over streams with the faster of two barriers over messages, at each node count.
fn barriers(lab: &Lab) -> CheckResult {
    let alike = lab.threshold(PAPER, BARRIER)?;
    let mut most = (1.0, 0);
    for nodes in barrier_nodes() {
        let of = |a, b| {
            let time = |name| lab.measure(MACHINE, Workload::Barrier(name), nodes);
            Ok::<_, String>(time(a)?.min(time(b)?))
        };
        let factor = of("MPI-PE", "MPI-DS")? / of("RECURSIVE-DOUBLING", "BRUCK")?;
        let apart = factor.max(1.0 / factor);
        if apart > most.0 {
            most = (apart, nodes);
        }
    }
    let (apart, nodes) = most;
    Ok(FigureValue::Word(if apart <= alike {
        "similar".to_owned()
    } else {
        format!("{apart:.2} apart on {nodes} nodes")
    }))
}

/// Compares the component with the best variant of the baseline, at each size of the figure. If the component is not the faster
/// broadcast at each size, also compares the component with shorter segments.
fn against_tuned(lab: &Lab, operation: CollectiveKind, nodes: usize, most: usize) -> CheckResult {
    let sizes = powers(1, most, 4);
    let time = |who, bytes| lab.measure(MACHINE, Workload::Fastest(who, operation, nodes), bytes);
    let compared = |who| {
        let (mut ahead, mut worst) = (0, (1.0, 0));
        for &bytes in &sizes {
            let factor = time(who, bytes)? / time(Contenders::Tuned, bytes)?;
            ahead += usize::from(factor < 1.0);
            if factor > worst.0 {
                worst = (factor, bytes);
            }
        }
        Ok::<_, String>((ahead, worst))
    };
    let said = |(ahead, (factor, bytes)): (usize, (f64, usize))| match sizes.len() {
        all if ahead == all => "CollGM faster".to_owned(),
        all => format!(
            "CollGM faster at {ahead} of {all} sizes; at worst {factor:.2} times the tuned one's time, at {bytes} bytes"
        ),
    };
    let as_it_is = compared(Contenders::Component)?;
    let mut word = said(as_it_is);
    if operation == CollectiveKind::Bcast && as_it_is.0 < sizes.len() {
        word +=
            &format!("; with segments cut as short: {}", said(compared(Contenders::ComponentCut)?));
    }
    Ok(FigureValue::Word(word))
}

/// Compares gather with scatter at each size. For each operation, the faster tree counts.
fn gather(lab: &Lab) -> CheckResult {
    let alike = lab.threshold(PAPER, GATHER)?;
    let mut most = (1.0, 0);
    for bytes in powers(1, 64 << 10, 4) {
        let time = |operation| {
            let workload = Workload::Fastest(Contenders::Component, operation, SMALL);
            lab.measure(MACHINE, workload, bytes)
        };
        let factor = time(CollectiveKind::Gather)? / time(CollectiveKind::Scatter)?;
        if factor.max(1.0 / factor) > most.0 {
            most = (factor.max(1.0 / factor), bytes);
        }
    }
    let (apart, bytes) = most;
    Ok(FigureValue::Word(match apart <= alike {
        true => "identical".to_owned(),
        false => format!("{apart:.2} apart at {bytes} bytes"),
    }))
}

/// Lists the algorithms that are fastest on `processes` processes, in the order of growing message sizes. An algorithm that is
/// fastest at several consecutive sizes is listed once. The baseline is left out.
fn regions(lab: &Lab, map: &super::AlgorithmMap, processes: usize) -> Result<String, String> {
    let mut found: Vec<&str> = Vec::new();
    for &bytes in &map.bytes {
        let mut best = (f64::INFINITY, "");
        for (name, workload) in map.names.iter().filter(|(name, _)| *name != super::TUNED) {
            let time = lab.measure(MACHINE, workload(map.operation, processes), bytes)?;
            if time < best.0 {
                best = (time, name);
            }
        }
        if found.last() != Some(&spelled(best.1)) {
            found.push(spelled(best.1));
        }
    }
    Ok(found.join(", "))
}

/// Returns the most common list of [`regions`] among all numbers of processes. Adds the number of processes with this list unless
/// their share exceeds the threshold.
fn common(lab: &Lab, id: &str, row: &str) -> CheckResult {
    let map = super::maps().into_iter().find(|map| map.id == id).ok_or("no such map")?;
    let all =
        map.processes.iter().map(|&n| regions(lab, &map, n)).collect::<Result<Vec<_>, _>>()?;
    let count = |word: &String| all.iter().filter(|other| *other == word).count();
    // If two lists are equally common, takes the list of the larger numbers of processes.
    let word = all.iter().max_by_key(|word| count(word)).ok_or("an empty map")?;
    let most = lab.threshold(PAPER, row)?;
    Ok(FigureValue::Word(match count(word) as f64 > most * all.len() as f64 {
        true => word.clone(),
        false => format!("{word} on {} of {} numbers of processes", count(word), all.len()),
    }))
}

/// Checks that the component is faster than the best variant of the baseline at most points of a map.
fn places(lab: &Lab, id: &str, row: &str) -> CheckResult {
    let map = super::maps().into_iter().find(|map| map.id == id).ok_or("no such map")?;
    let (mut own, mut all) = (0, 0);
    for &processes in &map.processes {
        for &bytes in &map.bytes {
            let time =
                |who| lab.measure(MACHINE, Workload::Fastest(who, map.operation, processes), bytes);
            own += u32::from(time(Contenders::Component)? < time(Contenders::Tuned)?);
            all += 1;
        }
    }
    let most = lab.threshold(PAPER, row)?;
    Ok(FigureValue::Word(match f64::from(own) > most * f64::from(all) {
        true => "the component".to_owned(),
        false => format!("the component at {own} of {all} places"),
    }))
}

const BLOCKS: &str =
    "rendezvous with memory registered in blocks of 128 KiB against all at once; 32 MByte transfer";
const FLOW: &str = "time that flow control takes; 32 MByte transfer in segments";
const FORWARDING: &str = "broadcast down a pipeline that forwards from where it received against receiving and sending again; 16 nodes, 1 MByte";

const OWN_INTERFACE: &str = "the same algorithm over the network's own interface against messages of MPI; broadcast, scatter and gather, 16 nodes, up to 1 KByte";

/// For each of three operations and each tree, compares the tree over streams with the same tree over messages.
fn own_interface(lab: &Lab) -> CheckResult {
    use CollectiveKind::{Bcast, Gather, Scatter};
    let mut pairs = Vec::new();
    for operation in [Bcast, Scatter, Gather] {
        for [own, over_messages] in [["BINOMIAL", "MPI-BINOMIAL"], ["FLAT", "MPI-FLAT"]] {
            for bytes in powers(1, 1 << 10, 4) {
                let of = [own, over_messages]
                    .map(|name| (Workload::Collective(operation, name, SMALL), bytes));
                pairs.push(pair(lab, of)?);
            }
        }
    }
    Ok(order("own interface", &pairs))
}

/// Measures two workloads on one machine, each at its own x.
fn pair(lab: &Lab, of: [(Workload, usize); 2]) -> Result<(f64, f64), String> {
    let [one, other] = of.map(|(workload, x)| lab.measure(MACHINE, workload, x));
    Ok((one?, other?))
}

/// Measures how much longer a long transfer takes under the library's bound on segments in flight than without a bound.
fn flow_control(lab: &Lab) -> CheckResult {
    let segment = 64 << 10;
    let of = [Bound::Usual, Bound::Unlimited].map(|bound| (Workload::Stream(bound), segment));
    let (bounded, free) = pair(lab, of)?;
    Ok(FigureValue::Word(match bounded / free {
        factor if factor <= lab.threshold(PAPER, FLOW)? => "none".to_owned(),
        factor => format!("{factor:.3} times the time"),
    }))
}

/// Lists the checks of statements in the text that no figure shows.
fn claims() -> Vec<Check> {
    let shown: [Shown; 4] = [
        (BLOCKS, |lab| {
            let of = [128 << 10, 32 << 20].map(|block| (Workload::Blocks, block));
            Ok(order("blocks", &[pair(lab, of)?]))
        }),
        (FLOW, flow_control),
        (FORWARDING, |lab| {
            let of = [Passing::Forwarded, Passing::SentAgain];
            let of = of.map(|passing| (Workload::Chain(passing), SMALL));
            Ok(order("forwarding", &[pair(lab, of)?]))
        }),
        (OWN_INTERFACE, own_interface),
    ];
    shown.map(|(row, runs)| Check { row, simulate: Simulate::Runs(runs) }).into()
}

/// Lists all checks of the document.
pub fn checks() -> Vec<Check> {
    use CollectiveKind::{Alltoall, Bcast, Scatter};
    let shown: [Shown; 18] = [
        (BEST_SEGMENT, |lab| best_size(lab, Workload::Segments, BEST_SEGMENT)),
        (BLOCK, |lab| best_size(lab, Workload::Blocks, BLOCK)),
        (SWITCH, switch),
        (VERY_SMALL, |lab| best_bcast(lab, &[1, 4, 16, 64])),
        (STANDARD, |lab| best_bcast(lab, &powers(1 << 10, 64 << 10, 4))),
        (BIG, |lab| best_bcast(lab, &[1 << 20, 4 << 20, 16 << 20])),
        (BARRIER, barriers),
        (ALLTOALL_16, |lab| against_tuned(lab, Alltoall, SMALL, 64 << 10)),
        (BCAST_16, |lab| against_tuned(lab, Bcast, SMALL, 1 << 20)),
        (BCAST_64, |lab| against_tuned(lab, Bcast, LARGE, 1 << 20)),
        (SCATTER_16, |lab| against_tuned(lab, Scatter, SMALL, 64 << 10)),
        (SCATTER_64, |lab| against_tuned(lab, Scatter, LARGE, 64 << 10)),
        (GATHER, gather),
        (MAP_7, |lab| places(lab, "collgm-7", MAP_7)),
        (MAP_9, |lab| places(lab, "collgm-9", MAP_9)),
        (MAP_11, |lab| places(lab, "collgm-11", MAP_11)),
        (REGIONS_9, |lab| common(lab, "collgm-9", REGIONS_9)),
        (REGIONS_11, |lab| common(lab, "collgm-11", REGIONS_11)),
    ];
    let shown = shown.map(|(row, runs)| Check { row, simulate: Simulate::Runs(runs) });
    shown.into_iter().chain(claims()).collect()
}
