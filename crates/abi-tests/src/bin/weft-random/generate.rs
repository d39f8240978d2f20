//! Makes a program from a seed: communicators, and phases of messages and collective calls.

mod collectives;
mod comms;
#[cfg(test)]
mod legal;
mod messages;
mod regions;
mod windows;

use crate::comm::{CommId, CommModel};
use crate::onesided::WindowId;
use crate::program::{CallForm, Item, ItemPhase, ProgramStep, RandomProgram};
use fastrand::Rng;
use std::collections::BTreeMap;

/// Returns a number that depends on all `parts`, as the seed of a stream of random numbers.
pub fn key(parts: &[u64]) -> u64 {
    let mix = |state: u64, part: &u64| {
        // The finaliser of SplitMix64.
        let mut x = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    parts.iter().fold(0, mix)
}

/// Parameters of a program. The same values make the same program.
#[derive(Clone, Copy)]
pub struct Recipe {
    pub seed: u64,
    pub number: u64,
    pub ranks: usize,
    pub steps: usize,
}

/// Maximum number of communicators that exist at the same time.
const COMMS: usize = 6;
/// Maximum number of windows that exist at the same time.
const WINDOWS: usize = 3;

impl Recipe {
    pub fn program(&self) -> RandomProgram {
        let mut rng = Rng::with_seed(key(&[self.seed, self.number, self.ranks as u64, 1]));
        let world = CommModel::new((0..self.ranks).collect());
        let (windows, steps) = (Vec::new(), Vec::new());
        let mut program = RandomProgram { ranks: self.ranks, comms: vec![world], windows, steps };
        let mut open = vec![0];
        let mut shown: Vec<WindowId> = Vec::new();
        for _ in 0..self.steps {
            match rng.u32(..15) {
                0..3 if open.len() < COMMS => comms::make(&mut rng, &mut program, &mut open),
                3 if open.len() > 1 => {
                    let id = open.remove(rng.usize(1..open.len()));
                    let on = |w: &WindowId| program.windows[*w].comm == id;
                    let (closed, rest) = shown.iter().partition(|w| on(w));
                    shown = rest;
                    let closed: Vec<WindowId> = closed;
                    program.steps.extend(closed.into_iter().map(ProgramStep::Close));
                    program.steps.push(ProgramStep::Free(id));
                }
                10..14 => one_sided(&mut rng, &mut program, &open, &mut shown),
                14 => {
                    let whole = |c: &CommId| program.comms[*c].first.is_none();
                    let some: Vec<CommId> = open.iter().copied().filter(whole).collect();
                    let parent = some[rng.usize(..some.len())];
                    comms::burst(&mut rng, &mut program, parent, phase);
                }
                _ => {
                    let phase = phase(&mut rng, &program.comms, &open);
                    program.steps.push(ProgramStep::Phase(phase));
                }
            }
        }
        program.steps.extend(shown.into_iter().map(ProgramStep::Close));
        program
    }
}

/// Adds an epoch, on a new or an existing window. Sometimes frees a window.
fn one_sided(
    rng: &mut Rng,
    program: &mut RandomProgram,
    open: &[CommId],
    shown: &mut Vec<WindowId>,
) {
    if shown.is_empty() || shown.len() < WINDOWS && rng.u32(..3) == 0 {
        let some: Vec<CommId> =
            open.iter().copied().filter(|c| program.comms[*c].first.is_none()).collect();
        let comm = some[rng.usize(..some.len())];
        let n = program.comms[comm].members.len();
        let id = program.windows.len();
        program.windows.push(windows::window(rng, comm, n));
        program.steps.push(ProgramStep::Open(id));
        shown.push(id);
    }
    let i = rng.usize(..shown.len());
    let id = shown[i];
    let epoch = windows::epoch(rng, id, &program.windows[id]);
    program.steps.push(ProgramStep::Epoch(epoch));
    if rng.u32(..6) == 0 {
        program.steps.push(ProgramStep::Close(shown.remove(i)));
    }
}

/// Returns a number of units of data, which is seldom large.
pub(super) fn times(rng: &mut Rng, unit_bytes: usize) -> usize {
    let bytes = match rng.u32(..64) {
        0..8 => 0,
        8..48 => rng.usize(1..200),
        48..60 => rng.usize(200..5000),
        60..63 => rng.usize(5000..70_000),
        _ if rng.u32(..4) > 0 => rng.usize(70_000..600_000),
        _ => rng.usize(600_000..4_000_000),
    };
    bytes.div_ceil(unit_bytes)
}

fn phase(rng: &mut Rng, comms: &[CommModel], open: &[CommId]) -> ItemPhase {
    let mut items: Vec<Item> = Vec::new();
    let mut closing = Vec::new();
    let size = rng.usize(1..=6);
    while items.len() < size {
        let comm = open[rng.usize(..open.len())];
        match rng.u32(..4) {
            0 => {
                let used = closing.contains(&comm) || items.iter().any(|i| message_on(i, comm));
                // Messages of one communicator in a phase come from one plan, which decides the matching.
                if !used && messages::plan(rng, comm, &comms[comm], &mut items) {
                    closing.push(comm);
                }
            }
            1 if !closing.contains(&comm) && comms[comm].first.is_none() => {
                items.push(Item::Shift(messages::shift(rng, comm, comms[comm].members.len())));
            }
            _ => {
                let one = collectives::collective(rng, comm, &comms[comm]);
                items.push(Item::Collective(one));
            }
        }
    }
    mix(rng, &mut items);
    let persistent = items.iter().any(|item| match item {
        Item::Message(m) => {
            m.form == CallForm::Persistent
                || m.taking == crate::program::Taking::Receive(CallForm::Persistent)
        }
        Item::Collective(c) => c.form == CallForm::Persistent,
        Item::Shift(_) => false,
    });
    let rounds = if persistent { rng.u64(1..=3) } else { 1 };
    let ready =
        |i: &Item| matches!(i, Item::Message(m) if m.mode == crate::program::MessageMode::Ready);
    let ready = items.iter().any(ready);
    let free_early = !persistent && rng.bool();
    closing.sort_unstable();
    ItemPhase { items, rounds, ready, closing, free_early }
}

fn message_on(item: &Item, comm: CommId) -> bool {
    match item {
        Item::Message(m) => m.comm == comm,
        Item::Shift(s) => s.comm == comm,
        Item::Collective(_) => false,
    }
}

/// Mixes the items. Messages of one communicator keep their order.
fn mix(rng: &mut Rng, items: &mut Vec<Item>) {
    let mut keys: Vec<(u32, usize)> = (0..items.len()).map(|i| (rng.u32(..), i)).collect();
    let mut last: BTreeMap<CommId, u32> = BTreeMap::new();
    for (key, i) in &mut keys {
        let comm = match &items[*i] {
            Item::Message(m) => m.comm,
            Item::Shift(s) => s.comm,
            Item::Collective(_) => continue,
        };
        // Ascending within the communicator.
        let least = last.get(&comm).copied().unwrap_or(0);
        *key = least + (*key - least.min(*key)) / 4;
        last.insert(comm, *key);
    }
    keys.sort_unstable();
    let mut slots: Vec<Option<Item>> = items.drain(..).map(Some).collect();
    items.extend(keys.into_iter().filter_map(|(_, i)| slots[i].take()));
}
