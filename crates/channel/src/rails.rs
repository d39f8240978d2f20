//! Several rails as one channel: which operation, or which part of it, takes which rail.
//!
//! ```text
//!   virtual channel to a peer ─┬─ subchannel 0    one adapter, one port, or one path: the fabric numbers them
//!                              └─ subchannel 1    (Capabilities::rails)
//!
//!   below the threshold   whole, by turns of those that are fast enough       round robin
//!   from it on            in fragments, so that all rails are done at once    load balanced
//!                         share = (load of all + length) x weight - own load
//! ```
//! Writes and reads use opposite directions of a link: each has loads of its own. Weights are the rates at which rails were
//! seen to drain, so that unequal rails add up; until a rail was seen, it counts as the others. A rail that does
//! not work towards the peer gets nothing.
//!
//! Order: none between fragments, nor between operations. What synchronizes waits for the end of what was issued.
//! Source: Vishnu et al. 2005, sections 3.1 and 3.2.

use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Instant;
use weft_fabric::{Counter, Counters, Fabric, FabricExt, Fault, RemoteAddr, Sge};

/// Which way data go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From this process to the peer.
    Write = 0,
    /// From the peer to this process.
    Read = 1,
}

/// A part of an operation: its rail, where it begins, its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// The path to take, below [`weft_fabric::Capabilities::rails`].
    pub rail: usize,
    /// Bytes of the operation that come before this part.
    pub offset: usize,
    /// Bytes of this part.
    pub len: usize,
}

/// Fragments of one operation.
pub type Fragments = SmallVec<[Fragment; 4]>;

/// Lengths from which operations are fragmented, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// One-sided writes.
    pub write: usize,
    /// One-sided reads.
    pub read: usize,
    /// The payload of a message, which its receiver reads.
    pub rendezvous: usize,
}

impl Default for Thresholds {
    /// One-sided operations have no rendezvous, so they are worth fragmenting early: the document's 8 KiB.
    fn default() -> Thresholds {
        Thresholds { write: 8 << 10, read: 8 << 10, rendezvous: 16 << 10 }
    }
}

/// What fragments count their ends with: each a counter of its own, and the value that says it is over.
pub type Waits = SmallVec<[(Counter, u64); 2]>;

/// Usual length of the part that a rail is given at once: rails that share a bus take turns on it.
const CHUNK: usize = 64 << 10;
/// The most parts of a fragment: those of a longer one are longer.
const CHUNKS: usize = 64;

/// Fragments begin at multiples of so many bytes, and have as many at least; those of shorter operations, where the
/// threshold lets them be fragmented, at multiples of a part of them.
const GRAIN: usize = 4 << 10;
const LEAST_GRAIN: usize = 64;

/// A rate is known from so many bytes in one busy period.
const SEEN: u64 = 64 << 10;

/// Rails whose rates are within this of the best count as equal.
const SAME: f64 = 0.9;

/// Where an operation of `len` bytes may be cut for so many rails.
fn grain(len: usize, rails: usize) -> usize {
    if len >= 2 * GRAIN { GRAIN } else { (len / rails / LEAST_GRAIN).max(1) * LEAST_GRAIN }
}

/// One direction of one rail.
#[derive(Default)]
struct Load {
    /// Fragments under way: what counts their end, and their bytes.
    under_way: VecDeque<(Counter, u64, u64)>,
    /// Bytes of them together.
    load: u64,
    /// Since when there has been something under way, and bytes that have ended since.
    busy: Option<(Instant, u64)>,
    /// Bytes a second; 0: not known.
    rate: f64,
}

impl Load {
    fn observe(&mut self, counters: &Counters, now: Instant) {
        let Some((since, mut ended)) = self.busy else { return };
        self.under_way.retain(|&(counter, value, bytes)| {
            let over = counters.value(counter) >= value;
            if over {
                ended += bytes;
                self.load -= bytes;
            }
            !over
        });
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        if ended >= SEEN && seconds > 0.0 && self.under_way.is_empty() {
            let rate = ended as f64 / seconds;
            self.rate = if self.rate > 0.0 { 0.5 * (self.rate + rate) } else { rate };
        }
        self.busy = (!self.under_way.is_empty()).then_some((since, ended));
    }
}

/// The rails of a process, and what is under way on them.
#[derive(Default)]
pub struct Rails {
    loads: RefCell<Vec<[Load; 2]>>,
    turn: Cell<usize>,
    thresholds: Cell<Thresholds>,
}

impl Rails {
    /// The lengths in force, a copy.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds.get()
    }

    /// Changes the lengths for operations that begin from now on.
    pub fn set_thresholds(&self, thresholds: Thresholds) {
        self.thresholds.set(thresholds);
    }

    /// Whether an operation of `len` bytes is fragmented.
    pub fn fragments(&self, way: Way, len: usize) -> bool {
        let Thresholds { write, read, .. } = self.thresholds.get();
        len >= if way == Way::Write { write } else { read }
    }

    /// The rail of the next operation that is not fragmented, of `rails` of which `works` says which do. Rails
    /// that were seen to be less than half as fast as another do not take turns.
    pub fn next(&self, way: Way, rails: usize, works: impl Fn(usize) -> bool) -> usize {
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        let loads = self.loads.borrow();
        let rate = |rail: usize| loads.get(rail).map_or(0.0, |loads| loads[way as usize].rate);
        let best = (0..rails).filter(|&rail| works(rail)).map(rate).fold(0.0, f64::max);
        let slow = |rail: usize| rate(rail) > 0.0 && rate(rail) < 0.5 * best;
        let mut turns = (0..rails).map(|step| (turn + step) % rails);
        turns.find(|&rail| works(rail) && !slow(rail)).unwrap_or(0)
    }

    /// How an operation of `len` bytes is spread.
    pub fn spread(
        &self,
        way: Way,
        len: usize,
        rails: usize,
        works: impl Fn(usize) -> bool,
    ) -> Fragments {
        let mut loads = self.loads.borrow_mut();
        if loads.len() < rails {
            loads.resize_with(rails, Default::default);
        }
        let usable: SmallVec<[usize; 4]> = (0..rails).filter(|&rail| works(rail)).collect();
        if usable.is_empty() {
            return SmallVec::from_slice(&[Fragment { rail: 0, offset: 0, len }]);
        }
        let load_of = |rail: usize| &loads[rail][way as usize];
        // Rails whose rate nobody knows count as the average of the others.
        let known: SmallVec<[f64; 4]> =
            usable.iter().map(|&rail| load_of(rail).rate).filter(|&rate| rate > 0.0).collect();
        let usual = match known.len() {
            0 => 1.0,
            n => known.iter().sum::<f64>() / n as f64,
        };
        // Equal rails are never seen to be quite equal, and unequal shares would keep that up.
        let best = known.iter().copied().fold(0.0, f64::max);
        let equal = known.iter().all(|&rate| rate > SAME * best);
        let seen = |rail: usize| load_of(rail).rate > 0.0 && !equal;
        let weight = |rail: usize| if seen(rail) { load_of(rail).rate } else { usual };
        let load = |rail: usize| load_of(rail).load as f64;
        let (all, weights) = usable
            .iter()
            .fold((len as f64, 0.0), |(l, w), &rail| (l + load(rail), w + weight(rail)));
        // Rails that have more than their share already get nothing; the others share the rest.
        let shares: SmallVec<[f64; 4]> = usable
            .iter()
            .map(|&rail| (all * weight(rail) / weights - load(rail)).max(0.0))
            .collect();
        let total: f64 = shares.iter().sum();
        let grain = grain(len, usable.len());
        let mut fragments = Fragments::new();
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

    /// Posts `here` in fragments over the first `rails` rails to `peer`: a write of it to `there`, or a read of
    /// that into it. Each fragment appends to `waits` what says that it is over; who waits for it frees the
    /// counters afterwards. Memory belongs to the fabric until then. After an error that appends nothing,
    /// nothing is under way.
    pub fn stripe<F: Fabric>(
        &self,
        fabric: &F,
        way: Way,
        (peer, rails): (usize, usize),
        (here, there): (Sge, RemoteAddr),
        waits: &mut Waits,
    ) -> Result<(), Fault> {
        // One registration for all parts.
        let region = fabric.prepare(here, way == Way::Read)?;
        let outcome = self.post_parts(fabric, way, (peer, rails), (here, there), waits);
        if let Some(region) = region {
            fabric.withdraw(region);
        }
        outcome
    }

    fn post_parts<F: Fabric>(
        &self,
        fabric: &F,
        way: Way,
        (peer, rails): (usize, usize),
        (here, there): (Sge, RemoteAddr),
        waits: &mut Waits,
    ) -> Result<(), Fault> {
        let counters = fabric.counters();
        // An adapter carries the first parts while the last ones are still being posted.
        let began = fabric.now();
        self.observe(counters, began);
        let fragments = self.spread(way, here.len(), rails, |rail| fabric.rail_works(rail, peer));
        let first = waits.len();
        for _ in &fragments {
            let counter = counters.allocate();
            waits.push((counter, counters.value(counter)));
        }
        let longest = fragments.iter().map(|fragment| fragment.len).max().unwrap_or(0);
        let chunk = CHUNK.max(longest.div_ceil(CHUNKS).next_multiple_of(GRAIN));
        // By turns, so that all rails begin at once.
        for at in (0..longest).step_by(chunk) {
            for (i, fragment) in fragments.iter().enumerate().filter(|(_, f)| f.len > at) {
                let (offset, len) = (fragment.offset + at, chunk.min(fragment.len - at));
                let (part, to) = (here.part(offset, len), there.offset(offset as u64));
                let done = Some(waits[first + i].0);
                let posted = match way {
                    Way::Write => fabric.write_over(fragment.rail, peer, part, to, done),
                    Way::Read => fabric.read_over(fragment.rail, peer, part, to, done),
                };
                if posted.is_err() && (at, i) == (0, 0) {
                    waits.drain(first..).for_each(|(counter, _)| counters.free(counter));
                }
                posted?;
                waits[first + i].1 += 1;
            }
        }
        for (&fragment, &wait) in fragments.iter().zip(&waits[first..]) {
            self.posted(way, fragment, wait, began);
        }
        Ok(())
    }

    /// A fragment is on its way since `now`; it is over when `counter >= value`.
    pub fn posted(
        &self,
        way: Way,
        fragment: Fragment,
        (counter, value): (Counter, u64),
        now: Instant,
    ) {
        let load_of = &mut self.loads.borrow_mut()[fragment.rail][way as usize];
        let bytes = fragment.len as u64;
        load_of.under_way.push_back((counter, value, bytes));
        load_of.load += bytes;
        load_of.busy.get_or_insert((now, 0));
    }

    /// Looks which fragments are over by `now`.
    pub fn observe(&self, counters: &Counters, now: Instant) {
        for load_of in self.loads.borrow_mut().iter_mut().flatten() {
            load_of.observe(counters, now);
        }
    }

    /// What the rails wait for with their last fragments: who looks at each of these times sees how fast they
    /// are.
    pub fn ends(&self) -> SmallVec<[(Counter, u64); 4]> {
        let loads = self.loads.borrow();
        let last = loads.iter().flatten().filter_map(|load_of| load_of.under_way.back());
        last.map(|&(counter, value, _)| (counter, value)).collect()
    }

    /// Bytes a second that each rail was seen to carry; 0 where that is not known.
    pub fn rates(&self, way: Way) -> Vec<f64> {
        self.loads.borrow().iter().map(|loads| loads[way as usize].rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn lens(fragments: &Fragments) -> Vec<(usize, usize)> {
        let mut end = 0;
        for fragment in fragments {
            assert_eq!(fragment.offset, end, "fragments follow each other");
            end += fragment.len;
        }
        fragments.iter().map(|f| (f.rail, f.len)).collect()
    }

    #[test]
    fn turns_leave_out_what_does_not_work() {
        let rails = Rails::default();
        let turns: Vec<_> = (0..6).map(|_| rails.next(Way::Write, 3, |rail| rail != 1)).collect();
        assert!(turns.contains(&0) && turns.contains(&2) && !turns.contains(&1), "{turns:?}");
        assert_eq!(rails.next(Way::Write, 2, |_| false), 0);
    }

    #[test]
    fn equal_rails_share_evenly() {
        let rails = Rails::default();
        let spread = rails.spread(Way::Write, 1 << 20, 2, |_| true);
        assert_eq!(lens(&spread), [(0, 1 << 19), (1, 1 << 19)]);
        assert_eq!(lens(&rails.spread(Way::Write, 5, 2, |_| true)), [(1, 5)]);
        // Below two pages, too, where the threshold is low.
        for (len, first) in [(2048, 1024), (8191, 4032), (8192, 4096), (200, 64), (127, 0)] {
            let spread = lens(&rails.spread(Way::Write, len, 2, |_| true));
            let last = (1, len - first);
            assert_eq!(spread, if first > 0 { vec![(0, first), last] } else { vec![last] });
        }
        assert_eq!(lens(&rails.spread(Way::Write, 1 << 20, 3, |r| r == 1)), [(1, 1 << 20)]);
        assert_eq!(lens(&rails.spread(Way::Write, 100, 2, |_| false)), [(0, 100)]);
    }

    #[test]
    fn what_is_under_way_counts_and_rates_are_learnt() {
        let (rails, counters) = (Rails::default(), Counters::new());
        let (start, counter) = (Instant::now(), counters.allocate());
        let after = |ms| start + Duration::from_millis(ms);
        let spread = rails.spread(Way::Write, 3 << 20, 2, |_| true);
        // Rail 0 gets all of it in this story, and rail 1 then all of the next one.
        let first = Fragment { rail: 0, offset: 0, len: 3 << 20 };
        rails.posted(Way::Write, first, (counter, 1), start);
        assert_eq!(spread.len(), 2);
        assert_eq!(lens(&rails.spread(Way::Write, 1 << 20, 2, |_| true)), [(1, 1 << 20)]);
        let reads = rails.spread(Way::Read, 1 << 20, 2, |_| true);
        assert_eq!(lens(&reads), [(0, 1 << 19), (1, 1 << 19)], "reads do not mind writes");
        // Rail 0 carries 3 MiB in 1 ms, rail 1 carries 1 MiB in as much.
        let second = Fragment { rail: 1, offset: 0, len: 1 << 20 };
        let other = counters.allocate();
        rails.posted(Way::Write, second, (other, counters.value(other) + 1), start);
        counters.add(counter, 1);
        counters.add(other, 1);
        rails.observe(&counters, after(1));
        let [fast, slow] = rails.rates(Way::Write)[..] else { panic!("two rails") };
        assert!((fast / slow - 3.0).abs() < 0.01, "{fast} {slow}");
        let spread = rails.spread(Way::Write, 4 << 20, 2, |_| true);
        assert_eq!(lens(&spread), [(0, 3 << 20), (1, 1 << 20)]);
        let turns: Vec<_> = (0..4).map(|_| rails.next(Way::Write, 2, |_| true)).collect();
        assert_eq!(turns, [0; 4], "short ones do not take a slow rail");
        assert_eq!(rails.next(Way::Write, 2, |rail| rail == 1), 1, "unless it is the only one");
        assert_ne!(rails.next(Way::Read, 2, |_| true), rails.next(Way::Read, 2, |_| true));
    }
}
