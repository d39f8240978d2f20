//! Predicted times of the catalogue: each algorithm that may serve ranks in several caches of a node has one.

use super::ALGORITHMS;
use crate::algorithm::{Algorithm, Carrier, Method};
use crate::level_steps::LevelSteps;
use crate::selection_key::{RankPlacement, SelectionKey};
use crate::{CollectiveKind, Selection};
use weft_fabric::CopyModel;
use weft_fabric::copies::ProcessorGroups;

/// Algorithms without a predicted time, and the reason.
const EXCEPTIONS: [(Carrier, Option<Method>, &str); 2] = [
    (
        Carrier::Immediates,
        None,
        "the selection does not know if the fabric has writes with immediate, and falls back without them",
    ),
    (
        Carrier::Memory,
        Some(Method::Lines),
        "only LEVELS chooses them, around the step between its leaders, whose time is a part of theirs",
    ),
];

/// Returns a call of `ranks` ranks on a node with 8 processors in a cache, 24 in a NUMA domain and 96 in a socket.
fn call(ranks: usize, bytes: usize) -> SelectionKey {
    let place = |p: u32| ProcessorGroups { core: p, cache: p / 8, numa: p / 24, socket: p / 96 };
    let places: Vec<ProcessorGroups> = (0..ranks as u32).map(place).collect();
    let levels = LevelSteps::of(&places);
    let site = RankPlacement { levels, in_place: Some(true), ..RankPlacement::together(ranks) };
    SelectionKey { ranks, bytes, element: 8, commutes: true, equal: true, site }
}

fn exception(algorithm: &Algorithm) -> Option<&'static str> {
    let is_it = |&&(carrier, method, _): &&(Carrier, Option<Method>, &str)| {
        carrier == algorithm.carrier && method.is_none_or(|method| method == algorithm.method)
    };
    EXCEPTIONS.iter().find(is_it).map(|&(_, _, reason)| reason)
}

/// An algorithm has a time wherever it is eligible among ranks in several caches. An exception has none anywhere, so that no reason
/// stays in the list without need.
#[test]
fn every_algorithm_has_a_time_or_a_reason() {
    let mut selection = Selection::default();
    selection.use_maps(None, None);
    let model = CopyModel::GENERIC;
    let mut timed = 0;
    for algorithm in ALGORITHMS {
        let name = format!("{} {}", algorithm.operation, algorithm.name);
        for (ranks, bytes) in
            [9, 16, 24, 64, 192].into_iter().flat_map(|n| [(n, 0), (n, 1536), (n, 3 << 20)])
        {
            let bytes = if algorithm.operation == CollectiveKind::Barrier { 0 } else { bytes };
            let case = call(ranks, bytes);
            if algorithm.eligible(&case).is_err() {
                continue;
            }
            let time = selection.predicted(algorithm.usual(), &case, &model);
            match exception(algorithm) {
                Some(reason) => assert_eq!(time, None, "{name}: not so any more: {reason}"),
                None => {
                    assert!(
                        time.is_some_and(|ns| ns > 0.0),
                        "{name}: {time:?}, {ranks} ranks, {bytes} bytes"
                    );
                    timed += 1;
                }
            }
        }
    }
    assert!(timed > 500, "{timed} times");
}
