//! Several rails as one channel: assigns operations, or parts of them, to rails.
//!
//! ```text
//!   virtual channel to a peer ─┬─ subchannel 0    one adapter, one port, or one path: the fabric numbers them
//!                              └─ subchannel 1    (Capabilities::rails)
//!
//!   below the threshold   whole, by turns of the rails that are fast enough     round robin
//!   from the threshold on in fragments, so that all rails end together           load balanced
//!                         share = (load of all rails + length) x weight - own load
//! ```
//! Writes and reads use opposite directions of a link, so each direction has loads of its own. Weights are the speeds of rails
//! observed in comparison with each other (`traffic.rs`), so that unequal rails add up. A rail that has not been compared yet
//! counts as average. A rail that does not work towards the peer gets nothing.
//!
//! Order: none between fragments, nor between operations. Synchronization waits for the end of all issued operations.
//! Source: Vishnu et al. 2005, sections 3.1 and 3.2.

mod traffic;

use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::time::Instant;
use traffic::{RailTraffic, Timeliness};
use weft_fabric::{
    CounterTarget, Counters, Fabric, FabricExt, Fault, RdmaDirection, RemoteAddr, RemoteRead,
    RemoteWrite, Sge,
};

/// A part of an operation: its rail, its offset, and its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Number of the rail, below [`weft_fabric::Capabilities::rails`].
    pub rail: usize,
    /// Offset of this part in the operation, in bytes.
    pub offset: usize,
    /// Length of this part, in bytes.
    pub len: usize,
}

/// Fragments of one operation.
pub type RailFragments = SmallVec<[Fragment; 4]>;

/// Lengths from which operations are fragmented, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// One-sided writes.
    pub write: usize,
    /// One-sided reads.
    pub read: usize,
    /// Payload of a rendezvous message, which its receiver reads.
    pub rendezvous: usize,
}

impl Default for Thresholds {
    /// Returns the default lengths. One-sided operations have no rendezvous, so fragmenting pays off at shorter lengths: from 8 KiB
    /// on, as in Vishnu et al. 2005.
    fn default() -> Thresholds {
        Thresholds { write: 8 << 10, read: 8 << 10, rendezvous: 16 << 10 }
    }
}

/// Ends of the fragments of one operation.
pub type FragmentEnds = SmallVec<[CounterTarget; 2]>;

/// An operation that goes over several rails.
#[derive(Debug, Clone, Copy)]
pub struct StripedOperation {
    /// Direction of the operation: a write of `here` to `there`, or a read of `there` into `here`.
    pub way: RdmaDirection,
    /// Peer's rank in the fabric.
    pub peer: usize,
    /// Number of rails to the peer.
    pub rails: usize,
    /// Memory of this process.
    pub here: Sge,
    /// Memory of the peer.
    pub there: RemoteAddr,
}

/// Usual length, in bytes, of the part that is posted on a rail before the next rail has its turn. Rails that share a bus take
/// turns on it.
const CHUNK: usize = 64 << 10;
/// Maximum number of parts per fragment. Longer fragments use larger parts.
const CHUNKS: usize = 64;

/// Alignment of fragments, in bytes: each fragment begins at a multiple of this value. If a low threshold lets operations shorter
/// than two grains be fragmented, their alignment is smaller: a multiple of `LEAST_GRAIN`.
const GRAIN: usize = 4 << 10;
const LEAST_GRAIN: usize = 64;

/// Returns the alignment at which an operation of `len` bytes may be cut for `rails` rails.
fn grain(len: usize, rails: usize) -> usize {
    if len >= 2 * GRAIN { GRAIN } else { (len / rails / LEAST_GRAIN).max(1) * LEAST_GRAIN }
}

/// The rails of a process, and the fragments under way on them.
#[derive(Default)]
pub struct RailSet {
    /// Traffic by [`RdmaDirection`]. Allocated by the first operation that is spread, because most processes of a simulation have
    /// one rail.
    traffic: RefCell<Option<Box<[RailTraffic; 2]>>>,
    turn: Cell<usize>,
    thresholds: Cell<Thresholds>,
    /// True if a fragment may be under way.
    busy: Cell<bool>,
    /// Time since which the process has done nothing but wait.
    waiting: Cell<Option<Instant>>,
}

impl RailSet {
    /// Returns the lengths from which operations are fragmented now.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds.get()
    }

    /// Changes the lengths for operations that begin from now on.
    pub fn set_thresholds(&self, thresholds: Thresholds) {
        self.thresholds.set(thresholds);
    }

    /// Returns true if an operation of `len` bytes is fragmented.
    pub fn fragments(&self, way: RdmaDirection, len: usize) -> bool {
        let Thresholds { write, read, .. } = self.thresholds.get();
        len >= if way == RdmaDirection::Write { write } else { read }
    }

    /// Returns the rail of the next operation that is not fragmented, out of `rails` rails; `works` reports whether a rail works. A
    /// rail that was seen to be less than half as fast as another rail gets no turn.
    pub fn next(&self, way: RdmaDirection, rails: usize, works: impl Fn(usize) -> bool) -> usize {
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        let working = (0..rails).filter(|&rail| works(rail));
        let best = working.map(|rail| self.weight(way, rail)).fold(0.0, f64::max);
        let slow = |rail: usize| self.weight(way, rail) < 0.5 * best;
        let mut turns = (0..rails).map(|step| (turn + step) % rails);
        turns.find(|&rail| works(rail) && !slow(rail)).unwrap_or(0)
    }

    /// Spreads an operation of `len` bytes over the working rails.
    pub fn spread(
        &self,
        way: RdmaDirection,
        len: usize,
        rails: usize,
        works: impl Fn(usize) -> bool,
    ) -> RailFragments {
        let mut both = self.traffic.borrow_mut();
        let traffic = &mut both.get_or_insert_default()[way as usize];
        traffic.reserve(rails);
        let usable: SmallVec<[usize; 4]> = (0..rails).filter(|&rail| works(rail)).collect();
        if usable.is_empty() {
            return SmallVec::from_slice(&[Fragment { rail: 0, offset: 0, len }]);
        }
        let weights = traffic.weights(&usable);
        let load = |rail: usize| traffic.load(rail) as f64;
        let all = usable.iter().fold(len as f64, |all, &rail| all + load(rail));
        let sum_of_weights: f64 = weights.iter().sum();
        // Rails that already have more than their share get no bytes. The other rails share the operation.
        let shares: SmallVec<[f64; 4]> = usable
            .iter()
            .zip(&weights)
            .map(|(&rail, weight)| (all * weight / sum_of_weights - load(rail)).max(0.0))
            .collect();
        let total: f64 = shares.iter().sum();
        let grain = grain(len, usable.len());
        let mut fragments = RailFragments::new();
        let (mut offset, mut sum) = (0, 0.0);
        for (&rail, share) in usable.iter().zip(shares) {
            sum += share;
            let end = (len as f64 * (sum / total)) as usize;
            let end =
                if rail == usable[usable.len() - 1] { len } else { (end / grain * grain).min(len) };
            if end > offset {
                fragments.push(Fragment { rail, offset, len: end - offset });
                offset = end;
            }
        }
        if let Some(last) = fragments.last_mut() {
            last.len += len - offset;
        }
        fragments
    }

    /// Posts an operation in fragments. Appends the end of each fragment to `ends`; the caller that waits for the ends frees
    /// the counters afterwards. The memory belongs to the fabric until then. After an error that appends nothing, nothing is
    /// under way.
    pub fn stripe<F: Fabric>(
        &self,
        fabric: &F,
        operation: &StripedOperation,
        ends: &mut FragmentEnds,
    ) -> Result<(), Fault> {
        // One registration serves all parts.
        let region = fabric.prepare(operation.here, operation.way)?;
        let outcome = self.post_parts(fabric, operation, ends);
        if let Some(region) = region {
            fabric.withdraw(region);
        }
        outcome
    }

    fn post_parts<F: Fabric>(
        &self,
        fabric: &F,
        &StripedOperation { way, peer, rails, here, there }: &StripedOperation,
        ends: &mut FragmentEnds,
    ) -> Result<(), Fault> {
        let counters = fabric.counters();
        // The adapter carries the first parts while the last parts are still being posted, so the fragments begin now.
        let began = fabric.now();
        self.observe(counters, began);
        let fragments = self.spread(way, here.len(), rails, |rail| fabric.rail_works(rail, peer));
        let first = ends.len();
        for _ in &fragments {
            ends.push(CounterTarget::new(counters, counters.allocate()));
        }
        for (number, (i, at, len)) in self.parts(way, &fragments).enumerate() {
            let Fragment { rail, offset, .. } = fragments[i];
            let (part, to) = (here.part(offset + at, len), there.offset((offset + at) as u64));
            let done = Some(ends[first + i].counter);
            let posted = match way {
                RdmaDirection::Write => {
                    fabric.write_over(rail, peer, &RemoteWrite::new(part, to, done))
                }
                RdmaDirection::Read => {
                    fabric.read_over(rail, peer, &RemoteRead::new(part, to, done))
                }
            };
            if posted.is_err() && number == 0 {
                ends.drain(first..).for_each(|end| counters.free(end.counter));
            }
            posted?;
            ends[first + i].value += 1;
        }
        for (&fragment, &end) in fragments.iter().zip(&ends[first..]) {
            self.posted(way, fragment, end, began);
        }
        Ok(())
    }

    /// Iterates over the parts of fragments in the order in which they are posted: by turns, so that all rails begin at once,
    /// and each rail comes first equally often. Yields the index of a fragment, the offset in it, and the
    /// length.
    fn parts<'f>(
        &self,
        way: RdmaDirection,
        fragments: &'f [Fragment],
    ) -> impl Iterator<Item = (usize, usize, usize)> + use<'f> {
        let count = fragments.len();
        let lead =
            self.traffic.borrow().as_deref().map_or(0, |both| both[way as usize].lead(count));
        let longest = fragments.iter().map(|fragment| fragment.len).max().unwrap_or(0);
        let chunk = CHUNK.max(longest.div_ceil(CHUNKS).next_multiple_of(GRAIN));
        let turns = (0..longest).step_by(chunk);
        turns.flat_map(move |at| {
            let order = (0..count).map(move |i| (lead + i) % count);
            let left = order.filter(move |&i| fragments[i].len > at);
            left.map(move |i| (i, at, chunk.min(fragments[i].len - at)))
        })
    }

    /// Notes a fragment that is under way since `now`.
    fn posted(&self, way: RdmaDirection, fragment: Fragment, end: CounterTarget, now: Instant) {
        let mut both = self.traffic.borrow_mut();
        let traffic = &mut both.get_or_insert_default()[way as usize];
        traffic.post(fragment.rail, fragment.len as u64, end, now);
        self.busy.set(true);
    }

    /// Notes the fragments that are complete by `now`. Call this function before the counters of fragments are freed, and as often
    /// as the process has time.
    pub fn observe(&self, counters: &Counters, now: Instant) {
        let waited = self.waiting.get().is_some_and(|since| now > since);
        let timeliness = if waited { Timeliness::Prompt } else { Timeliness::Late };
        let mut busy = false;
        for traffic in self.traffic.borrow_mut().iter_mut().flat_map(|both| both.iter_mut()) {
            busy |= traffic.look(counters, now, timeliness);
        }
        self.busy.set(busy);
    }

    /// Returns true if a fragment may be under way, so that [`RailSet::observe`] has something to look for.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.busy.get()
    }

    /// Notes that the process does nothing but wait from `now` on, so that it observes each end when the end comes.
    #[inline]
    pub fn wait_begins(&self, now: impl FnOnce() -> Instant) {
        if self.busy.get() && self.waiting.get().is_none() {
            self.waiting.set(Some(now()));
        }
    }

    /// Notes that the process stops waiting.
    #[inline]
    pub fn wait_ends(&self) {
        self.waiting.set(None);
    }

    /// Returns the observed speed of each rail, in units of their average; 1 for rails that were never compared.
    pub fn weights(&self, way: RdmaDirection, rails: usize) -> Vec<f64> {
        (0..rails).map(|rail| self.weight(way, rail)).collect()
    }

    /// Returns the observed speed of one rail, as [`RailSet::weights`] does.
    fn weight(&self, way: RdmaDirection, rail: usize) -> f64 {
        self.traffic.borrow().as_deref().map_or(1.0, |both| both[way as usize].weight(rail))
    }
}

#[cfg(test)]
mod tests;
