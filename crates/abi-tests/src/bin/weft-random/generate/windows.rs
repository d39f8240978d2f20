//! Windows, and the synchronization of their epochs. `regions.rs` adds the operations.

use super::regions::Draw;
use crate::comm::CommId;
use crate::mpi;
use crate::onesided::{
    Action, Epoch, Flavor, LockSync, PostSync, RankPart, Sync, WindowId, WindowModel,
};
use fastrand::Rng;

const FENCES: [&str; 6] = ["2S", "2S-APART", "1S", "1S-BARRIER", "RI", "ACK"];
const ORDERS: [&str; 2] = ["called", "turns"];

/// Makes a window of `n` ranks.
pub fn window(rng: &mut Rng, comm: CommId, n: usize) -> WindowModel {
    let flavor = match rng.u32(..5) {
        0 => Flavor::Create,
        1 => Flavor::Allocate,
        2 => Flavor::Shared { contiguous: rng.bool() },
        3 => Flavor::Dynamic,
        _ => [Flavor::Create, Flavor::Allocate][rng.usize(..2)],
    };
    let unit = |rng: &mut Rng| [1, 4, 8][rng.usize(..3)];
    let usual = rng.bool().then(|| unit(rng));
    let one = |rng: &mut Rng| {
        let own = unit(rng);
        let mut len = length(rng);
        match flavor {
            Flavor::Shared { .. } => len = len / 16 * 16,
            Flavor::Dynamic => return attached(rng, len),
            _ => {}
        }
        RankPart { len, unit: usual.unwrap_or(own), chunks: vec![(0, len)] }
    };
    let parts = (0..n).map(|_| one(rng)).collect();
    let mut hints = Vec::new();
    if rng.u32(..4) > 0 {
        hints.push(("weft_fence", FENCES[rng.usize(..FENCES.len())]));
    }
    if rng.bool() {
        hints.push(("weft_rma_order", ORDERS[rng.usize(..ORDERS.len())]));
    }
    if flavor == (Flavor::Shared { contiguous: false }) {
        hints.push(("alloc_shared_noncontig", "true"));
    }
    WindowModel { comm, flavor, parts, hints }
}

/// Returns the number of bytes of a rank's part, which is seldom large.
fn length(rng: &mut Rng) -> i64 {
    match rng.u32(..64) {
        0..4 => 0,
        4..32 => rng.i64(1..800),
        32..60 => rng.i64(800..8000),
        60..63 => rng.i64(8000..100_000),
        _ => rng.i64(100_000..800_000),
    }
}

/// Returns one or two pieces of memory, apart from each other.
fn attached(rng: &mut Rng, len: i64) -> RankPart {
    let second = rng.i64(0..=len) / 16 * 16;
    let chunks = match rng.u32(..3) {
        0 if len >= 256 => {
            let first = (second - 48).max(16);
            vec![(0, first), (first + 32, len)]
        }
        _ => vec![(0, len)],
    };
    RankPart { len, unit: 1, chunks }
}

/// Makes an epoch of a window.
pub fn epoch(rng: &mut Rng, id: WindowId, window: &WindowModel) -> Epoch {
    let n = window.parts.len();
    let mut sync = sync(rng, n);
    let rounds = match sync {
        Sync::Fence(_) | Sync::LockAll { .. } => rng.usize(1..=3),
        _ => 1,
    };
    let mut draw = Draw::new(rng, window, &sync, rounds);
    let mut actions: Vec<Action> = Vec::new();
    for round in 0..rounds {
        actions.extend(draw.round(round));
    }
    let (stores, groups) = (std::mem::take(&mut draw.stores), draw.groups);
    let stored = |seat: usize| stores.iter().any(|s| s.seat == seat);
    let written = |seat: usize, round: usize| {
        actions.iter().any(|a| a.target == Some(seat) && a.round == round && a.what.writes())
    };
    match &mut sync {
        Sync::Fence(asserts) => *asserts = fences(rng, n, rounds, stored, written),
        Sync::Post(PostSync { asserts, unchecked, .. }) => {
            let one = |rng: &mut Rng, seat: usize| {
                let stored = may(rng, (!stored(seat)).then_some(mpi::MODE_NOSTORE));
                let put = may(rng, (!written(seat, 0)).then_some(mpi::MODE_NOPUT));
                stored | put | if *unchecked { mpi::MODE_NOCHECK } else { 0 }
            };
            *asserts = (0..n).map(|seat| one(rng, seat)).collect();
        }
        _ => {}
    }
    let dynamic = window.flavor == Flavor::Dynamic;
    let reattach = (0..n).filter(|_| dynamic && rng.u32(..4) == 0).collect();
    let peek = matches!(window.flavor, Flavor::Shared { .. }) && rng.bool();
    let free_early = rng.bool();
    Epoch { window: id, sync, rounds, stores, actions, groups, reattach, free_early, peek }
}

/// Returns the assertion, if there is an assertion that is true, or leaves it out.
fn may(rng: &mut Rng, assertion: Option<i64>) -> i64 {
    if rng.bool() { assertion.unwrap_or(0) } else { 0 }
}

fn fences(
    rng: &mut Rng,
    n: usize,
    rounds: usize,
    stored: impl Fn(usize) -> bool,
    written: impl Fn(usize, usize) -> bool,
) -> Vec<Vec<i64>> {
    let one = |rng: &mut Rng, round: usize| -> Vec<i64> {
        // All ranks give the same assertions about preceding and succeeding operations.
        let mut all = may(rng, (round == 0).then_some(mpi::MODE_NOPRECEDE));
        all |= may(rng, (round == rounds).then_some(mpi::MODE_NOSUCCEED));
        let seat = |seat: usize| {
            let nothing_stored = round > 0 || !stored(seat);
            let unstored = may(rng, nothing_stored.then_some(mpi::MODE_NOSTORE));
            let nothing_put = round == rounds || !written(seat, round);
            let unput = may(rng, nothing_put.then_some(mpi::MODE_NOPUT));
            // Operations after the last fence are not known here, unless there are none.
            let last = round == rounds && all & mpi::MODE_NOSUCCEED == 0;
            all | unstored | if last { 0 } else { unput }
        };
        (0..n).map(seat).collect()
    };
    (0..=rounds).map(|round| one(rng, round)).collect()
}

fn sync(rng: &mut Rng, n: usize) -> Sync {
    let unchecked = rng.u32(..3) == 0;
    match rng.u32(..4) {
        0 => Sync::Fence(Vec::new()),
        1 => {
            let dense = rng.u32(1..=4);
            let row = |rng: &mut Rng| (0..n).map(|_| rng.u32(..5) < dense).collect();
            let pairs = (0..n).map(|_| row(rng)).collect();
            Sync::Post(PostSync { pairs, asserts: Vec::new(), unchecked, empty: rng.bool() })
        }
        2 => {
            let together = rng.bool();
            let kind = rng.u32(..3);
            let one = |rng: &mut Rng| {
                let exclusive = |rng: &mut Rng| kind == 1 || kind == 2 && rng.bool();
                let mut targets: Vec<(usize, bool)> = Vec::new();
                for target in 0..n {
                    if rng.u32(..3) > 0 {
                        targets.push((target, exclusive(rng)));
                    }
                }
                // Locks that are held at the same time are taken in ascending order, since two origins might wait for each other
                // otherwise.
                if !together {
                    rng.shuffle(&mut targets);
                }
                targets
            };
            let targets = (0..n).map(|_| one(rng)).collect();
            Sync::Lock(LockSync { targets, together, unchecked: unchecked && kind == 0 })
        }
        _ => Sync::LockAll { unchecked },
    }
}
