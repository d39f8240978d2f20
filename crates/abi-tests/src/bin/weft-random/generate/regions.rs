//! Operations of the origins of an epoch: the targets' bytes are divided into regions, and each region has one use in a round (MPI
//! 5.0, section 12.7), so that no two accesses conflict.
//!
//!     put          one origin, one put; if it may flush, it then reads the bytes, or puts again
//!     get          any origins, only read
//!     accumulate   one type and operator: any origins, or one, whose results are then known
//!     swap         one origin: compare and swap
//!     ticket       any origins add one to a number and fetch it
//!     race         any origins swap against the same value: one is first

use crate::basic::{Class, ElementType, all};
use crate::buffer::Piece;
use crate::grow::{Use, piece, signature};
use crate::mpi::CountWidth;
use crate::onesided::{
    AccumulateOp, Action, Fetched, FlushForm, LockSync, OneSidedCall, Store, Sync, WindowModel,
};
use crate::reduce::{self, Element, StandardOp};
use crate::types::{Shape, TypeModel};
use fastrand::Rng;
use std::ops::Range;

pub struct Draw<'a> {
    rng: &'a mut Rng,
    window: &'a WindowModel,
    sync: &'a Sync,
    rounds: usize,
    round: usize,
    /// Beginning of the free bytes of each target.
    free: Vec<i64>,
    pub stores: Vec<Store>,
    pub groups: usize,
    chains: Vec<Vec<Action>>,
}

fn up(value: i64, unit: i64) -> i64 {
    (value + unit - 1) / unit * unit
}

/// Returns true if no element belongs to a predefined pair, which is another type than its `int`.
fn alike(piece: &Piece) -> bool {
    !piece.ty.to_string().contains("2INT")
}

/// An integer in a region of its own.
struct IntegerRegion {
    element: Element,
    place: Piece,
}

impl<'a> Draw<'a> {
    pub fn new(
        rng: &'a mut Rng,
        window: &'a WindowModel,
        sync: &'a Sync,
        rounds: usize,
    ) -> Draw<'a> {
        let free = vec![0; window.parts.len()];
        let (stores, chains) = (Vec::new(), Vec::new());
        Draw { rng, window, sync, rounds, round: 0, free, stores, groups: 0, chains }
    }

    /// Returns all calls of a round, in their order.
    pub fn round(&mut self, round: usize) -> Vec<Action> {
        let n = self.window.parts.len();
        self.round = round;
        for target in 0..n {
            self.free[target] = self.rng.i64(0..16);
        }
        for _ in 0..self.rng.usize(1..=3 + 2 * n) {
            let target = self.rng.usize(..n);
            let origins = self.origins(target);
            if !origins.is_empty() {
                self.region(target, &origins);
            }
        }
        if self.rng.u32(..4) == 0 {
            self.nowhere(n);
        }
        let mut chains = std::mem::take(&mut self.chains);
        chains.iter_mut().for_each(|chain| chain.reverse());
        let mut actions = Vec::new();
        while !chains.is_empty() {
            let i = self.rng.usize(..chains.len());
            match chains[i].pop() {
                Some(action) => actions.push(action),
                None => drop(chains.swap_remove(i)),
            }
        }
        actions
    }

    /// Returns the origins that may access a target.
    fn origins(&self, target: usize) -> Vec<usize> {
        let may = |origin: &usize| match self.sync {
            Sync::Post(post) => post.pairs[*origin][target],
            Sync::Lock(lock) => lock.targets[*origin].iter().any(|t| t.0 == target),
            _ => true,
        };
        (0..self.window.parts.len()).filter(may).collect()
    }

    fn one(&mut self, of: &[usize]) -> usize {
        of[self.rng.usize(..of.len())]
    }

    /// Returns the displacement in the target such that data from `lo` to `hi` around it are free.
    fn fit(&self, target: usize, bytes: Range<i64>, align: i64) -> Option<i64> {
        let part = &self.window.parts[target];
        part.chunks.iter().find_map(|(begin, end)| {
            let first = self.free[target].max(*begin);
            let base = up((first - bytes.start).max(0), part.unit.max(align));
            (base + bytes.end <= *end).then_some(base)
        })
    }

    /// Takes the bytes of a target before `end`, and a few more.
    fn take(&mut self, target: usize, end: i64) {
        self.free[target] = self.free[target].max(end + self.rng.i64(0..24));
    }

    /// Returns a number of units of `bytes` bytes each.
    fn times(&mut self, target: usize, bytes: usize) -> usize {
        let room = self.window.parts[target].len as usize / bytes;
        super::times(self.rng, bytes).min(room)
    }

    fn region(&mut self, target: usize, origins: &[usize]) {
        let done = match self.rng.u32(..16) {
            0..4 => self.put(target, origins),
            4..7 => self.get(target, origins),
            7..12 => self.accumulate(target, origins),
            12 => self.swap(target, origins),
            13 if self.round + 1 == self.rounds => self.race(target, origins),
            _ => self.ticket(target, origins),
        };
        // If no room is left, the target gets no more operations.
        done.unwrap_or(());
    }

    fn action(&mut self, origin: usize, target: usize, what: OneSidedCall) -> Action {
        let requested = match what {
            OneSidedCall::Put
            | OneSidedCall::Get
            | OneSidedCall::Accumulate(_)
            | OneSidedCall::GetAccumulate(_) => self.sync.passive() && self.rng.u32(..3) == 0,
            _ => false,
        };
        let many = !matches!(
            what,
            OneSidedCall::FetchAndOp(_)
                | OneSidedCall::CompareAndSwap { .. }
                | OneSidedCall::Increment
                | OneSidedCall::Flush(_)
        );
        Action {
            round: self.round,
            origin,
            target: Some(target),
            what,
            place: None,
            from: None,
            to: None,
            element: None,
            suits: None,
            fetched: Fetched::Known,
            request: requested,
            width: if many { CountWidth::mostly_int(self.rng) } else { CountWidth::Int },
        }
    }

    /// Flushes a target, or all targets: chooses the first or the second of `forms`.
    fn flush(&mut self, origin: usize, target: usize, forms: [FlushForm; 2]) -> Action {
        let flush = forms[usize::from(self.rng.bool())];
        self.action(origin, target, OneSidedCall::Flush(flush))
    }

    fn put(&mut self, target: usize, origins: &[usize]) -> Option<()> {
        let origin = self.one(origins);
        let unit = signature(self.rng);
        let times = self.times(target, unit.iter().map(|b| b.size()).sum());
        let mut place = piece(self.rng, &unit, times, Use::Receive);
        let (lo, hi) = place.bounds().unwrap_or((0, 0));
        place.at = self.fit(target, lo..hi, 1)?;
        self.take(target, place.at + hi);
        let mut chain = Vec::new();
        let again = if self.sync.passive() { self.rng.usize(..3) } else { 0 };
        for step in 0..=again {
            let reads = step > 0 && self.rng.bool();
            let what = if reads { OneSidedCall::Get } else { OneSidedCall::Put };
            let mut action = self.action(origin, target, what);
            action.place = Some(place.clone());
            let side = if reads { Use::Receive } else { Use::Send };
            let own = Some(piece(self.rng, &unit, times, side));
            *if reads { &mut action.to } else { &mut action.from } = own;
            chain.push(action);
            if step < again {
                chain.push(self.flush(origin, target, [FlushForm::One, FlushForm::All]));
            } else if self.sync.passive() && self.rng.u32(..4) == 0 {
                chain.push(self.flush(origin, target, [FlushForm::LocalOne, FlushForm::LocalAll]));
            }
        }
        self.chains.push(chain);
        Some(())
    }

    fn get(&mut self, target: usize, origins: &[usize]) -> Option<()> {
        let mut reach: Option<(i64, i64)> = None;
        for _ in 0..self.rng.usize(1..=3) {
            let origin = self.one(origins);
            let unit = signature(self.rng);
            let times = self.times(target, unit.iter().map(|b| b.size()).sum());
            let mut place = piece(self.rng, &unit, times, Use::Send);
            let (lo, hi) = place.bounds().unwrap_or((0, 0));
            let Some(at) = self.fit(target, lo..hi, 1) else { continue };
            place.at = at;
            let (first, end) = reach.unwrap_or((at + lo, at + hi));
            reach = Some((first.min(at + lo), end.max(at + hi)));
            let mut action = self.action(origin, target, OneSidedCall::Get);
            action.place = Some(place);
            action.to = Some(piece(self.rng, &unit, times, Use::Receive));
            self.chains.push(vec![action]);
        }
        let (first, end) = reach?;
        self.take(target, end);
        // All operations read the bytes that the target stored before.
        let within = self.window.parts[target].chunks.iter().any(|c| c.0 <= first && end <= c.1);
        if self.round == 0 && first < end && within && self.rng.bool() {
            let byte = TypeModel::basic(ElementType::named("BYTE"));
            let piece = Piece::new(byte, end - first, first);
            self.stores.push(Store { seat: target, piece, values: None });
        }
        Some(())
    }

    /// Returns a piece of some of the `m` elements that begin at `base`, and their number.
    fn some(&mut self, target: usize, element: Element, m: i64, base: i64) -> (Piece, usize) {
        let unit = self.window.parts[target].unit;
        let ty = element.datatype();
        let end = base + m * ty.extent();
        if let Element::Basic(basic) = element
            && self.rng.u32(..3) == 0
        {
            let times = self.rng.usize(1..=m as usize);
            let mut piece = piece(self.rng, &[basic], times, Use::Receive);
            let (lo, hi) = piece.bounds().unwrap_or((0, 0));
            let size = basic.size() as i64;
            piece.at = up((base - lo).max(0), unit.max(size));
            let aligned = |i: i64| {
                piece.ty.runs.iter().all(|(d, _)| {
                    (piece.at + i * piece.ty.extent() + d - base).rem_euclid(size) == 0
                })
            };
            if piece.at + hi <= end && alike(&piece) && (0..piece.count).all(aligned) {
                return (piece, times);
            }
        }
        let mut skip = self.rng.i64(0..m);
        if (skip * ty.extent()) % unit != 0 {
            skip = 0;
        }
        let count = self.rng.i64(1..=m - skip);
        let at = base + skip * ty.extent();
        if count > 2 && self.rng.u32(..4) == 0 {
            let count = (count + 1) / 2;
            let shape = Shape::Vector { count, block: 1, stride: 2, child: ty };
            return (Piece::new(TypeModel::new(shape, CountWidth::Int), 1, at), count as usize);
        }
        (Piece::new(ty, count, at), count as usize)
    }

    /// Makes a buffer of the origin with `times` elements, none of which overlap: the values suit the operator.
    fn own(&mut self, element: Element, times: usize) -> Piece {
        if let Element::Basic(basic) = element {
            let piece = piece(self.rng, &[basic], times, Use::Receive);
            if alike(&piece) {
                return piece;
            }
        }
        Piece::new(element.datatype(), times as i64, 0)
    }

    fn accumulate(&mut self, target: usize, origins: &[usize]) -> Option<()> {
        let (op, element) = loop {
            if let (reduce::Operator::Predefined(op), element) = reduce::choose(self.rng) {
                break (op, element);
            }
        };
        let whole =
            |b: ElementType| matches!(b.class(), Class::Signed | Class::Unsigned | Class::Byte);
        let any = matches!(element, Element::Basic(b) if whole(b));
        if !any && self.round > 0 {
            return None;
        }
        let ty = element.datatype();
        let room = self.window.parts[target].len / ty.extent();
        let m = match self.rng.u32(..8) {
            0 => self.rng.i64(1..2000),
            _ => self.rng.i64(1..40),
        };
        let m = m.min(room);
        let align = ty.map.iter().map(|(b, _)| b.align() as i64).max()?;
        let base = (m > 0).then(|| self.fit(target, 0..m * ty.extent(), align))??;
        self.take(target, base + m * ty.extent());
        if !any || self.round == 0 && self.rng.bool() {
            let piece = Piece::new(ty, m, base);
            self.stores.push(Store { seat: target, piece, values: Some((op, element)) });
        }
        let replace = self.rng.u32(..6) == 0;
        let applied = if replace { AccumulateOp::Replace } else { AccumulateOp::Reduce(op) };
        let alone = (replace || self.rng.bool()).then(|| self.one(origins));
        let mut chain = Vec::new();
        for _ in 0..self.rng.usize(1..=6) {
            let origin = alone.unwrap_or_else(|| self.one(origins));
            let fetches = if self.rng.u32(..4) == 0 { AccumulateOp::Nothing } else { applied };
            let what = match self.rng.u32(..4) {
                0 | 1 => OneSidedCall::Accumulate(applied),
                2 => OneSidedCall::GetAccumulate(fetches),
                _ => OneSidedCall::FetchAndOp(fetches),
            };
            let mut action = self.action(origin, target, what);
            let single = matches!(what, OneSidedCall::FetchAndOp(_));
            let (place, times) = match single {
                true => {
                    let (mut place, _) = self.some(target, element, m, base);
                    place = Piece::new(element.datatype(), 1, place.at);
                    let within = place.at >= base
                        && (place.at - base) % element.datatype().extent() == 0
                        && place.at + element.datatype().extent()
                            <= base + m * element.datatype().extent();
                    if !within {
                        place.at = base;
                    }
                    (place, 1)
                }
                false => self.some(target, element, m, base),
            };
            action.place = Some(place);
            let one = || Piece::new(element.datatype(), 1, 0);
            if what.op() != Some(AccumulateOp::Nothing) || single || self.rng.bool() {
                let own = if single { one() } else { self.own(element, times) };
                action.from = Some(own);
            }
            if !matches!(what, OneSidedCall::Accumulate(_)) {
                let own = if single { one() } else { self.own(element, times) };
                action.to = Some(own);
            }
            (action.element, action.suits) = (Some(element), Some(op));
            action.fetched = if alone.is_some() { Fetched::Known } else { Fetched::Open };
            chain.push(action);
        }
        match alone {
            Some(_) => self.chains.push(chain),
            None => self.chains.extend(chain.into_iter().map(|action| vec![action])),
        }
        Some(())
    }

    /// Returns an integer in a region of its own.
    fn integer(&mut self, target: usize) -> Option<IntegerRegion> {
        let fit: Vec<ElementType> =
            all().filter(|b| matches!(b.class(), Class::Signed | Class::Unsigned)).collect();
        let basic = fit[self.rng.usize(..fit.len())];
        let element = Element::Basic(basic);
        let size = basic.size() as i64;
        let at = self.fit(target, 0..size, size)?;
        self.take(target, at + size);
        Some(IntegerRegion { element, place: Piece::new(element.datatype(), 1, at) })
    }

    fn single(
        &mut self,
        origin: usize,
        target: usize,
        what: OneSidedCall,
        region: &IntegerRegion,
    ) -> Action {
        let IntegerRegion { element, place } = region;
        let mut action = self.action(origin, target, what);
        let own = || Some(Piece::new(element.datatype(), 1, 0));
        (action.from, action.to) = (own(), own());
        (action.element, action.place) = (Some(*element), Some(place.clone()));
        action
    }

    fn swap(&mut self, target: usize, origins: &[usize]) -> Option<()> {
        let spot = self.integer(target)?;
        let origin = self.one(origins);
        let mut chain = Vec::new();
        for _ in 0..self.rng.usize(1..=4) {
            let hit = self.rng.u32(..3) > 0;
            chain.push(self.single(origin, target, OneSidedCall::CompareAndSwap { hit }, &spot));
        }
        self.chains.push(chain);
        Some(())
    }

    fn race(&mut self, target: usize, origins: &[usize]) -> Option<()> {
        let spot = self.integer(target)?;
        let group = self.groups;
        self.groups += 1;
        for origin in origins {
            let what = OneSidedCall::CompareAndSwap { hit: true };
            let mut action = self.single(*origin, target, what, &spot);
            action.fetched = Fetched::Race(group);
            self.chains.push(vec![action]);
        }
        Some(())
    }

    fn ticket(&mut self, target: usize, origins: &[usize]) -> Option<()> {
        let spot = self.integer(target)?;
        let group = self.groups;
        self.groups += 1;
        let exclusive: Vec<usize> = match self.sync {
            Sync::Lock(LockSync { targets, .. }) => {
                origins.iter().copied().filter(|o| targets[*o].contains(&(target, true))).collect()
            }
            _ => Vec::new(),
        };
        let locked = !exclusive.is_empty() && self.rng.u32(..3) > 0;
        for _ in 0..self.rng.usize(1..=2 * origins.len()) {
            let sum = AccumulateOp::Reduce(StandardOp::Sum);
            let (origin, what) = if locked {
                (self.one(&exclusive), OneSidedCall::Increment)
            } else if self.rng.bool() {
                (self.one(origins), OneSidedCall::FetchAndOp(sum))
            } else {
                (self.one(origins), OneSidedCall::GetAccumulate(sum))
            };
            let mut action = self.single(origin, target, what, &spot);
            action.fetched = Fetched::Ticket(group);
            self.chains.push(vec![action]);
        }
        Some(())
    }

    /// Adds a put or get to MPI_PROC_NULL, which does nothing.
    fn nowhere(&mut self, n: usize) {
        let origin = self.rng.usize(..n);
        let reads = self.rng.bool();
        let mut action =
            self.action(origin, 0, if reads { OneSidedCall::Get } else { OneSidedCall::Put });
        action.target = None;
        let unit = signature(self.rng);
        let times = self.rng.usize(0..20);
        action.place = Some(piece(self.rng, &unit, times, Use::Receive));
        let own = Some(piece(self.rng, &unit, times, Use::Receive));
        *if reads { &mut action.to } else { &mut action.from } = own;
        self.chains.push(vec![action]);
    }
}
