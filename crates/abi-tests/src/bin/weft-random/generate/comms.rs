//! New communicators, made from existing communicators.

use crate::comm::{CommId, CommModel, Topology};
use crate::program::{CommCreation, How, ItemPhase, ProgramStep, RandomProgram};
use fastrand::Rng;
use std::collections::BTreeMap;

/// Adds a step that makes communicators.
pub fn make(rng: &mut Rng, program: &mut RandomProgram, open: &mut Vec<CommId>) {
    let parent = open[rng.usize(..open.len())];
    let comms = &program.comms;
    let (parent, how, fresh) = match intercomm(rng, comms, open) {
        Some((how, comm)) if rng.bool() => (0, how, vec![comm]),
        _ => {
            let (how, fresh) = from(rng, &comms[parent]);
            (parent, how, fresh)
        }
    };
    let made: Vec<CommId> = (comms.len()..).take(fresh.len()).collect();
    program.comms.extend(fresh);
    open.extend(&made);
    program.steps.push(ProgramStep::Make(CommCreation { parent, how, made }));
}

/// Makes an intercommunicator of two existing communicators, whose leaders meet in MPI_COMM_WORLD.
fn intercomm(rng: &mut Rng, comms: &[CommModel], open: &[CommId]) -> Option<(How, CommModel)> {
    let a = open[rng.usize(..open.len())];
    let apart = |b: &CommId| {
        let strange = |m: &usize| !comms[a].members.contains(m);
        comms[*b].first.is_none() && comms[*b].members.iter().all(strange)
    };
    let some: Vec<CommId> = open.iter().copied().filter(apart).collect();
    if comms[a].first.is_some() || some.is_empty() {
        return None;
    }
    let sides = [a, some[rng.usize(..some.len())]];
    let [x, y] = sides.map(|id| &comms[id].members);
    let leaders = [rng.usize(..x.len()), rng.usize(..y.len())];
    let comm =
        CommModel { members: [&x[..], &y[..]].concat(), first: Some(x.len()), topology: None };
    Some((How::Intercomm { sides, leaders, tag: rng.i64(0..100) }, comm))
}

/// Makes communicators from one parent.
fn from(rng: &mut Rng, parent: &CommModel) -> (How, Vec<CommModel>) {
    let dup = match rng.u32(..3) {
        0 => How::Dup,
        1 => How::DupWithInfo,
        _ => How::Idup,
    };
    if let Some(first) = parent.first {
        if rng.bool() {
            return (dup, vec![parent.clone()]);
        }
        let swapped = rng.bool();
        let (a, b) = parent.members.split_at(first);
        let members = if swapped { [b, a].concat() } else { parent.members.clone() };
        return (How::Merge { swapped }, vec![CommModel::new(members)]);
    }
    let n = parent.members.len();
    let group =
        |ranks: &[usize]| CommModel::new(ranks.iter().map(|r| parent.members[*r]).collect());
    match rng.u32(..10) {
        0 | 1 => (dup, vec![parent.clone()]),
        2 | 3 => {
            let groups = groups(rng, n);
            let comms = groups.iter().map(|ranks| group(ranks)).collect();
            if rng.bool() {
                return (How::Create(groups), comms);
            }
            (How::CreateGroup(groups, rng.i64(0..100)), comms)
        }
        4 => {
            let dims: Vec<usize> = dims(rng, n);
            let periodic: Vec<bool> = dims.iter().map(|_| rng.bool()).collect();
            let members = parent.members[..dims.iter().product()].to_vec();
            let topology = Some(Topology::cart(&dims, &periodic));
            (How::Cart { dims, periodic }, vec![CommModel { members, first: None, topology }])
        }
        5 => {
            let topology = Some(graph(rng, n));
            (How::Graph, vec![CommModel { topology, ..CommModel::new(parent.members.clone()) }])
        }
        6 => {
            let topology = Some(edges(rng, n));
            (How::DistGraph, vec![CommModel { topology, ..CommModel::new(parent.members.clone()) }])
        }
        _ => split(rng, n, group),
    }
}

/// Adds communicators of groups that overlap. Only their members make, use and free them, often under one tag or name: ranks run
/// ahead of each other as far as the library allows.
pub fn burst(
    rng: &mut Rng,
    program: &mut RandomProgram,
    parent: CommId,
    phase: impl Fn(&mut Rng, &[CommModel], &[CommId]) -> ItemPhase,
) {
    let mut live = Vec::new();
    for _ in 0..rng.usize(4..12) {
        let (how, comm) = overlapping(rng, &program.comms[parent]);
        let id = program.comms.len();
        program.comms.push(comm);
        program.steps.push(ProgramStep::Make(CommCreation { parent, how, made: vec![id] }));
        live.push(id);
        if rng.u32(..4) > 0 {
            program.steps.push(ProgramStep::Phase(phase(rng, &program.comms, &live)));
        }
        if rng.bool() {
            program.steps.push(ProgramStep::Free(live.remove(rng.usize(..live.len()))));
        }
    }
    rng.shuffle(&mut live);
    program.steps.extend(live.into_iter().map(ProgramStep::Free));
}

/// Makes a communicator of some ranks of an intracommunicator, in any order.
fn overlapping(rng: &mut Rng, parent: &CommModel) -> (How, CommModel) {
    let n = parent.members.len();
    let mut all: Vec<usize> = (0..n).collect();
    rng.shuffle(&mut all);
    all.truncate(if rng.bool() { n.min(2) } else { rng.usize(1..=n) });
    let members: Vec<usize> = all.iter().map(|r| parent.members[*r]).collect();
    let name = format!("weft://random/{}", rng.u32(..2));
    match rng.u32(..4) {
        0 => (How::FromGroup(all, name), CommModel::new(members)),
        1 if n > 1 && all.len() > 1 => {
            let first = rng.usize(1..all.len());
            let (a, b) = all.split_at(first);
            let leaders = [rng.usize(..a.len()), rng.usize(..b.len())];
            let sides = [a.to_vec(), b.to_vec()];
            let comm = CommModel { members, first: Some(first), topology: None };
            (How::FromGroups { sides, leaders, name }, comm)
        }
        _ => (How::CreateGroup(vec![all], rng.i64(0..2)), CommModel::new(members)),
    }
}

/// Returns disjoint groups of some of `n` ranks.
fn groups(rng: &mut Rng, n: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<usize> = (0..n).collect();
    rng.shuffle(&mut all);
    all.truncate(rng.usize(1..=n));
    let cut = rng.usize(0..=all.len());
    let (a, b) = all.split_at(cut);
    [a, b].into_iter().filter(|g| !g.is_empty()).map(<[usize]>::to_vec).collect()
}

fn split(rng: &mut Rng, n: usize, group: impl Fn(&[usize]) -> CommModel) -> (How, Vec<CommModel>) {
    let colors = rng.i64(1..=3);
    let color = |rng: &mut Rng| (rng.u32(..8) > 0).then(|| rng.i64(0..colors));
    let all: Vec<(Option<i64>, i64)> = (0..n).map(|_| (color(rng), rng.i64(-2..=2))).collect();
    let mut groups: BTreeMap<i64, Vec<(i64, usize)>> = BTreeMap::new();
    for (rank, (color, key)) in all.iter().enumerate() {
        if let Some(color) = color {
            groups.entry(*color).or_default().push((*key, rank));
        }
    }
    let sorted = groups.into_values().map(|mut members| {
        members.sort_unstable();
        group(&members.into_iter().map(|(_, rank)| rank).collect::<Vec<_>>())
    });
    (How::Split(all), sorted.collect())
}

/// Returns the dimensions of a grid that `n` processes can fill.
fn dims(rng: &mut Rng, n: usize) -> Vec<usize> {
    let mut dims: Vec<usize> = Vec::new();
    let mut left = n;
    for _ in 0..rng.usize(1..=3) {
        let size = rng.usize(1..=left);
        dims.push(size);
        left /= size;
    }
    dims
}

/// Returns a graph whose edges go both ways.
fn graph(rng: &mut Rng, n: usize) -> Topology {
    let mut lists = vec![Vec::new(); n];
    for a in 0..n {
        for b in a..n {
            if rng.u32(..3) == 0 {
                lists[a].push(Some(b));
                if a != b {
                    lists[b].push(Some(a));
                }
            }
        }
    }
    lists.iter_mut().for_each(|list| rng.shuffle(list));
    Topology { sources: lists.clone(), destinations: lists, grid: false }
}

/// Returns edges in one direction, some of them twice, some from a rank to itself.
fn edges(rng: &mut Rng, n: usize) -> Topology {
    let (mut sources, mut destinations) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    for _ in 0..rng.usize(0..=3 * n) {
        let (from, to) = (rng.usize(..n), rng.usize(..n));
        sources[to].push(Some(from));
        destinations[from].push(Some(to));
    }
    let all = sources.iter_mut().chain(&mut destinations);
    all.for_each(|list| rng.shuffle(list));
    Topology { sources, destinations, grid: false }
}
