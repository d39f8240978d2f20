//! What the steps of an algorithm cost among ranks of one machine, by the model of copies: times in nanoseconds.
//!
//! ```text
//!   barrier       a counter's line goes from rank to rank, and a flag's to each; of two a flag to the other
//!   copy in, out  into a staging buffer that others have read before, and out of another rank's
//!   read          another's own memory by a system call for each block, if all ranks may
//!   message       eager: a line and two copies; longer: the lines of a handshake, and both copy at once
//!   work          of ranks that take turns on a processor, that of each comes on top of the others'
//! ```
//! A time is one of many operations back to back, on the rank that takes longest. It is to compare algorithms by: what all
//! have in common (the call, its checks) is in none of them.

use crate::selection_key::SelectionKey;
use weft_fabric::arithmetic::in_usual_arithmetic;
use weft_fabric::copies::LINE;
use weft_fabric::{CacheDistance, CopyModel};
use weft_p2p::ProtocolLimits;

/// A pure function of a call and a machine: what an algorithm takes, in nanoseconds. Infinite where it is not to be chosen
/// without being asked for.
pub type CostFunction = fn(&SelectionKey, &CopyModel) -> f64;

/// Bytes of another rank's memory that are read by one call: it takes longer to copy them than to ask for them, and they stay
/// in a processor's own caches until they are combined. An eighth of such a cache, whose rest has what they are combined with.
pub fn block(model: &CopyModel) -> usize {
    power_below(model.private / 8).clamp(16 << 10, 64 << 10)
}

/// Bytes of a part of what two ranks bring each other in turns: its transfer takes sixteen times a barrier, which is thus little
/// beside it, and parts are short enough that both work at once.
pub fn part(model: &CopyModel, distance: CacheDistance) -> usize {
    // Computed so that all ranks get the same length.
    in_usual_arithmetic(|| {
        let rate = model.fetch.at(distance).max(f64::MIN_POSITIVE);
        power_below((16.0 * model.line.at(distance) / rate) as usize).clamp(8 << 10, 64 << 10)
    })
}

fn power_below(n: usize) -> usize {
    1 << n.max(1).ilog2()
}

/// The machine as a call's ranks find it.
pub struct CallCosts<'m> {
    model: &'m CopyModel,
    ranks: f64,
    /// Ranks that take turns on a processor.
    each: f64,
    distance: CacheDistance,
    direct: bool,
}

impl<'m> CallCosts<'m> {
    /// For the ranks of `case` on the machine of `model`. Until they have told each other, each counts
    /// as alone on its processor, and as one that may not read the others' own memory.
    pub fn of(case: &SelectionKey, model: &'m CopyModel) -> CallCosts<'m> {
        let near = case.site.near;
        CallCosts {
            model,
            ranks: case.ranks as f64,
            each: near.each.max(1).into(),
            distance: near.distance,
            direct: near.direct == Some(true),
        }
    }

    /// Nanoseconds until a rank sees what another has just written: what a flag takes.
    pub fn line(&self) -> f64 {
        self.model.line.at(self.distance)
    }

    /// All others.
    pub fn others(&self) -> f64 {
        self.ranks - 1.0
    }

    /// Rounds of a tree or of doubling.
    pub fn rounds(&self) -> f64 {
        self.ranks.log2().ceil()
    }

    /// Who waits gives the processor to the others that share it, until it is its turn again.
    pub fn turns(&self) -> f64 {
        if self.each > 1.0 { self.each * self.model.switch } else { 0.0 }
    }

    /// Everybody comes, then everybody goes on.
    pub fn barrier(&self) -> f64 {
        let lines = if self.ranks > 2.0 { self.ranks + 1.0 } else { 1.0 };
        lines * self.line() + self.turns()
    }

    /// A barrier in which all say where their memory is: the words travel by further lines.
    pub fn exposing(&self) -> f64 {
        self.barrier() + self.line()
    }

    /// What every rank does, of which each takes so long.
    pub fn work(&self, each: f64) -> f64 {
        self.each * each
    }

    /// For one reader, which may give the lines back.
    pub fn copy_in(&self, len: f64) -> f64 {
        let lines = (len / LINE as f64).ceil();
        let returned =
            self.model.copy(len as usize) + self.model.rewrite_returned.at(self.distance) * lines;
        returned.min(self.copy_in_for_all(len))
    }

    /// Nanoseconds to copy `len` bytes into a staging buffer that all others read.
    pub fn copy_in_for_all(&self, len: f64) -> f64 {
        self.model.rewrite(len as usize, self.distance)
    }

    /// Nanoseconds to copy `len` bytes out of a buffer that another rank has just written.
    pub fn copy_out(&self, len: f64) -> f64 {
        self.model.fetch(len as usize, self.distance)
    }

    /// Nanoseconds to copy `len` bytes within a rank's own memory.
    pub fn copy(&self, len: f64) -> f64 {
        self.model.copy(len as usize)
    }

    /// Nanoseconds to combine `len` bytes with as many, both in the caches.
    pub fn reduce(&self, len: f64) -> f64 {
        self.model.reduce * len
    }

    /// Of whole payloads, one after the other: what a processor's own caches do not hold comes from the cache behind them, both
    /// operands and where the sum goes.
    pub fn reduce_whole(&self, len: f64) -> f64 {
        let fits = 3.0 * len <= self.model.private as f64;
        let fetched =
            if fits { 0.0 } else { 3.0 * self.model.fetch(len as usize, CacheDistance::Shared) };
        self.reduce(len).max(fetched)
    }

    /// Reads or writes in one call.
    pub fn read(&self, len: f64) -> f64 {
        if self.direct { self.model.cma(len as usize, self.distance) } else { f64::INFINITY }
    }

    /// The same block by block.
    pub fn read_blocks(&self, len: f64) -> f64 {
        let blocks = (len / block(self.model) as f64).ceil().max(1.0);
        self.read(len) + (blocks - 1.0) * self.model.cma_call
    }

    /// A message's way, both ends at once.
    pub fn message(&self, len: f64) -> f64 {
        if self.is_eager(len) {
            return self.line() + self.copy_in(len) + self.copy_out(len);
        }
        HANDSHAKE * self.line() + self.copy_in(len).max(self.copy_out(len)).min(self.read(len))
    }

    /// Messages along a binomial tree, and what each receiver does `then`. In a round all pairs are at work, and ranks that take
    /// turns on a processor have both ends' work one after the other.
    pub fn binomial(&self, len: f64, then: f64) -> f64 {
        let ends = (self.copy_in(len) + self.copy_out(len)).min(self.read(len));
        let processors = self.ranks / self.each;
        let round = |k: i32| {
            let pairs = 2f64.powi(k).min(self.ranks / 2.0);
            (self.message(len) + then).max(pairs * (ends + then) / processors)
        };
        // Who passes on has to come to its turn first.
        let turns = (self.rounds() - 1.0).max(0.0) * self.turns();
        (0..self.rounds() as i32).map(round).sum::<f64>() + turns
    }

    /// One of many messages that one rank sends or receives at once: `own` is its part of the copies, of which the others make
    /// the rest at the same time. Long ones are copied by the others alone, all at once.
    pub fn one_of_many(&self, len: f64, own: f64) -> f64 {
        if self.is_eager(len) {
            return self.line() + own;
        }
        let theirs = self.work(self.read(len)) / self.others();
        HANDSHAKE * self.line() + own.min(theirs)
    }

    /// A message that its sender does not wait with.
    pub fn is_eager(&self, len: f64) -> bool {
        len <= ProtocolLimits::USUAL.eager as f64
    }
}

/// Lines of a longer message beside its bytes: the offer, what it is accepted by, its progress, its end.
const HANDSHAKE: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Carrier;
    use crate::catalog::ALGORITHMS;
    use crate::selection_key::{Near, RankPlacement};

    fn case(ranks: usize, bytes: usize, near: Near) -> SelectionKey {
        let site = RankPlacement {
            same_node: true,
            nodes: 1,
            ranks_per_node: ranks,
            by_kernel: false,
            multicast: 0,
            same_arithmetic: true,
            atomics: true,
            near,
        };
        SelectionKey { ranks, bytes, element: 8, commutes: true, equal: true, site }
    }

    /// More bytes never cost less, nor do far caches or shared processors; and what needs to read other ranks' memory is not
    /// chosen where they cannot.
    #[test]
    fn times_grow_with_what_there_is_to_do() {
        let model = CopyModel::GENERIC;
        let near = Near { direct: Some(true), distance: CacheDistance::Shared, each: 1 };
        for algorithm in ALGORITHMS {
            let Some(time) = algorithm.time else { continue };
            let what = format!("{} {}", algorithm.operation, algorithm.name);
            for ranks in [2, 3, 8, 64] {
                let mut last = 0.0;
                for bytes in (0..26).map(|bit| 1 << bit) {
                    let at = |near| time(&case(ranks, bytes, near), &model);
                    let now = at(near);
                    // Where messages are sent in another way, a longer one may take less.
                    let other_way = algorithm.carrier == Carrier::Messages;
                    assert!(
                        now > 0.0 && (other_way || now + 1e-6 >= last),
                        "{what}, {ranks} ranks, {bytes} bytes"
                    );
                    last = now;
                    let far = at(Near { distance: CacheDistance::Apart, ..near });
                    let crowded = at(Near { each: 4, ..near });
                    let more = far >= now && (other_way || crowded >= now);
                    assert!(more, "{what}, {ranks} ranks, {bytes} bytes");
                    let apart = at(Near { direct: Some(false), ..near });
                    assert!(apart >= now, "{what}, {ranks} ranks, {bytes} bytes");
                    let reads = algorithm.needs.contains(&crate::algorithm::Requirement::Direct);
                    assert_eq!(apart.is_infinite(), reads, "{what}, {ranks} ranks, {bytes} bytes");
                }
            }
        }
    }

    #[test]
    fn parts_and_blocks_follow_the_caches() {
        let model = CopyModel::GENERIC;
        assert_eq!((block(&model), part(&model, CacheDistance::Shared)), (64 << 10, 8 << 10));
        let small = CopyModel { private: 256 << 10, ..model.clone() };
        assert_eq!(block(&small), 32 << 10);
        let slow =
            CopyModel { line: weft_fabric::ByDistance { shared: 600.0, apart: 600.0 }, ..model };
        assert_eq!(part(&slow, CacheDistance::Apart), 32 << 10);
    }
}
