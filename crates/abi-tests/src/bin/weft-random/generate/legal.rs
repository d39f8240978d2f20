//! Test that the concurrent accesses of origins are legal (MPI 5.0, section 12.7), byte by byte.

use super::Recipe;
use crate::buffer::Piece;
use crate::onesided::{
    AccumulateOp, Action, Epoch, Fetched, FlushForm, LockSync, OneSidedCall, Sync, WindowModel,
};
use crate::program::{ProgramStep, RandomProgram};
use crate::reduce::Element;
use std::collections::BTreeSet;

/// An access to a byte of a target.
#[derive(Clone, Copy, PartialEq)]
struct Access {
    origin: usize,
    writes: bool,
    /// For an accumulate: its operator (`None` if it only fetches), and the offset of the byte in its element.
    atomic: Option<(Element, Option<OneSidedCall>, usize)>,
    /// True under an exclusive lock that this origin holds.
    exclusive: bool,
    /// Number of flushes of the origin before this access, which completed all its earlier accesses.
    after: usize,
}

fn runs(piece: &Piece) -> Vec<(i64, usize)> {
    let extent = piece.ty.extent();
    let one = |i: i64| piece.ty.map.iter().map(move |(b, d)| (piece.at + i * extent + d, b.size()));
    (0..piece.count).flat_map(one).collect()
}

/// Returns the property that all accumulates to one place must share.
fn kind(action: &Action) -> Option<OneSidedCall> {
    match (action.what, action.what.op()) {
        (_, Some(AccumulateOp::Nothing)) => None,
        (_, Some(op)) => Some(OneSidedCall::Accumulate(op)),
        _ => Some(OneSidedCall::CompareAndSwap { hit: false }),
    }
}

fn conflict(a: &Access, b: &Access) -> bool {
    let ordered = a.origin == b.origin && a.after != b.after;
    let atomic = match (a.atomic, b.atomic) {
        (Some((x, f, i)), Some((y, g, j))) => {
            let same = f == g || f.is_none() || g.is_none();
            x == y && i == j && same
        }
        _ => false,
    };
    (a.writes || b.writes) && !atomic && !ordered && !(a.exclusive && b.exclusive)
}

fn check(window: &WindowModel, epoch: &Epoch, seen: &mut BTreeSet<String>) {
    let longest = window.parts.iter().map(|p| p.len).max().unwrap_or(0);
    if longest > 3000 {
        return;
    }
    for round in 0..epoch.rounds {
        let fresh = || -> Vec<Vec<Access>> { vec![Vec::new(); longest as usize] };
        let mut bytes: Vec<_> = window.parts.iter().map(|_| fresh()).collect();
        let mut flushes = vec![vec![0; window.parts.len()]; window.parts.len()];
        for action in epoch.actions.iter().filter(|a| a.round == round) {
            seen.insert(format!("{}{}", action.what.name(), action.request));
            let Some(target) = action.target else { continue };
            if let OneSidedCall::Flush(flush) = action.what {
                match flush {
                    FlushForm::One => flushes[action.origin][target] += 1,
                    FlushForm::All => flushes[action.origin].iter_mut().for_each(|n| *n += 1),
                    FlushForm::LocalOne | FlushForm::LocalAll => {}
                }
                assert!(epoch.sync.passive());
                continue;
            }
            let place = action.place.as_ref().expect("a call has a place");
            let part = &window.parts[target];
            assert!(place.at >= 0 && place.at % part.unit == 0, "{action}");
            if let Some((lo, hi)) = place.bounds() {
                seen.insert(part.chunks.len().to_string());
                assert!(part.chunks.iter().any(|c| c.0 <= lo && hi <= c.1), "{action}\n{window}");
            }
            let allowed = match &epoch.sync {
                Sync::Post(post) => post.pairs[action.origin][target],
                Sync::Lock(lock) => lock.targets[action.origin].iter().any(|t| t.0 == target),
                _ => true,
            };
            assert!(allowed, "{action}\n{:?}", epoch.sync);
            let exclusive = action.what == OneSidedCall::Increment;
            if let (true, Sync::Lock(lock)) = (exclusive, &epoch.sync) {
                assert!(lock.targets[action.origin].contains(&(target, true)), "{action}");
            }
            for (at, len) in runs(place) {
                for byte in 0..len {
                    let atomic = action.element.filter(|_| !exclusive);
                    let access = Access {
                        origin: action.origin,
                        writes: action.what.writes(),
                        atomic: atomic.map(|element| (element, kind(action), byte)),
                        exclusive,
                        after: flushes[action.origin][target],
                    };
                    let here = &mut bytes[target][at as usize + byte];
                    if let Some(other) = here.iter().find(|other| conflict(other, &access)) {
                        let by = other.origin;
                        panic!(
                            "byte {} of {target}, also accessed by {by}: {action}",
                            at as usize + byte
                        );
                    }
                    if !here.contains(&access) {
                        here.push(access);
                    }
                }
            }
            if action.fetched != Fetched::Known && action.what.op().is_none() {
                assert!(matches!(
                    action.what,
                    OneSidedCall::CompareAndSwap { .. } | OneSidedCall::Increment
                ));
            }
        }
    }
    // Exclusive locks that are held at the same time are taken in ascending order.
    if let Sync::Lock(LockSync { targets, together: true, .. }) = &epoch.sync {
        assert!(targets.iter().all(|t| t.is_sorted()));
    }
}

#[test]
fn no_two_accesses_conflict() {
    let mut seen = BTreeSet::new();
    let mut epochs = 0;
    for number in 0..400 {
        let recipe = Recipe { seed: 11, number, ranks: 2 + number as usize % 5, steps: 12 };
        let RandomProgram { windows, steps, .. } = recipe.program();
        for step in &steps {
            if let ProgramStep::Epoch(epoch) = step {
                check(&windows[epoch.window], epoch, &mut seen);
                epochs += 1;
            }
        }
    }
    assert!(epochs > 500, "{epochs} epochs");
    for name in ["Put", "Get", "Accumulate", "Get_accumulate"] {
        for request in [false, true] {
            assert!(seen.contains(&format!("{name}{request}")), "{name} {request} never came up");
        }
    }
    for name in ["Fetch_and_op", "Compare_and_swap", "Get, flush, Put", "Win_flush_local"] {
        assert!(seen.contains(&format!("{name}false")), "{name} never came up");
    }
}
