//! Costs of the steps of an algorithm among ranks of one machine, by the model of copies: times in nanoseconds.
//!
//! ```text
//!   barrier       a counter's line goes from rank to rank, a flag's line to each rank; with two ranks, a flag to the other
//!   copy in, out  into a staging buffer that other ranks have read before, and out of another rank's staging buffer
//!   read          another rank's own memory, by a system call for each block, if all ranks may
//!   message       eager: a line and two copies; longer: the lines of a handshake, and both copy at once
//!   work          if ranks take turns on a processor, their work adds up
//! ```
//! A time is the time per operation on the slowest rank, if many operations follow each other. Times are only used to compare
//! algorithms, so they exclude the costs that all algorithms have in common (the call and its checks).

mod messages;
pub mod pipelines;
mod trees;

use crate::carrier::Carrier;
use crate::level_steps::LevelSteps;
use crate::selection_key::SelectionKey;
use weft_fabric::arithmetic::in_usual_arithmetic;
use weft_fabric::copies::{LINE, TopologyLevel};
use weft_fabric::{CacheDistance, CopyModel};

/// Pure function that returns the time of an algorithm in nanoseconds, from the costs of a call and its number of bytes. The time
/// is infinite if the algorithm must be chosen only when a user asks for it.
pub type CostFunction = fn(&CallCosts, f64) -> f64;

/// Returns the number of bytes of another rank's memory to read by one call. Copying this many bytes takes longer than the call
/// itself. The bytes stay in the processor's private caches until they are combined: they fill an eighth of the largest such cache,
/// and the rest holds the other operand.
pub fn block(model: &CopyModel) -> usize {
    power_below(model.private / 8).clamp(16 << 10, 64 << 10)
}

/// Returns the size in bytes of a part of a payload that two ranks exchange in alternating parts. The transfer of a part takes 16
/// times as long as a barrier, so that barriers cost little. Parts are still short enough that both ranks work at the same time.
pub fn part(model: &CopyModel, distance: CacheDistance) -> usize {
    // This arithmetic gives the same length on all ranks.
    in_usual_arithmetic(|| {
        let rate = model.fetch.at(distance).max(f64::MIN_POSITIVE);
        power_below((16.0 * model.line.at(distance) / rate) as usize).clamp(8 << 10, 64 << 10)
    })
}

fn power_below(n: usize) -> usize {
    1 << n.max(1).ilog2()
}

/// Costs on a machine, as the ranks of one call see them.
pub struct CallCosts<'m> {
    model: &'m CopyModel,
    /// Number of ranks.
    pub ranks: f64,
    /// Number of ranks that share a processor.
    pub each: f64,
    /// Size of an element in bytes.
    pub element: usize,
    /// Distance of the ranks, for costs that have no levels.
    distance: CacheDistance,
    /// Nanoseconds until a rank sees a line that another rank has just written.
    line: f64,
    /// Nanoseconds to copy a byte out of another rank's caches.
    fetch: f64,
    levels: LevelSteps,
    direct: bool,
    carrier: Carrier,
}

/// Number of times that a transfer waits for the other transfers of a link.
#[derive(Debug, Clone, Copy)]
struct LinkWaits {
    cache: f64,
    socket: f64,
}

impl LinkWaits {
    /// A rank sends or receives all transfers, so that only the link of its own cache is busy.
    const OWN: LinkWaits = LinkWaits { cache: 1.0, socket: 1.0 };
    /// All caches send and receive at the same time, so that a transfer waits for the link out of a cache and for the link into another.
    const BOTH: LinkWaits = LinkWaits { cache: 2.0, socket: 1.0 };
    /// The same, with several messages of each rank at once.
    const BATCH: LinkWaits = LinkWaits { cache: 4.0, socket: 2.0 };
}

/// Stage of a pipeline over the levels of a node: the groups of a level.
pub struct PipelineStage<'m> {
    /// Maximum number of members of a group.
    pub members: f64,
    /// Costs between the members of a group.
    pub costs: CallCosts<'m>,
}

impl<'m> CallCosts<'m> {
    /// Makes the costs for the ranks of `case` on the machine of `model`. As long as the ranks have not exchanged facts about each
    /// other, it is assumed that each rank has its own processor, and that ranks cannot read each other's private memory.
    ///
    /// If the processors of ranks in several caches are known, a cost is the mean over all pairs of ranks, because an algorithm of
    /// one level knows nothing of caches. Otherwise the observed distance decides.
    pub fn of(case: &SelectionKey, model: &'m CopyModel) -> CallCosts<'m> {
        let (near, levels, ranks) = (case.site.near, &case.site.levels, case.ranks as f64);
        let line = levels.mean(ranks, |level| model.line_at(level));
        let fetch = levels.mean(ranks, |level| model.fetch_at(level));
        let distance = if line.is_some() { CacheDistance::Apart } else { near.distance };
        CallCosts {
            model,
            ranks,
            each: near.each.max(1).into(),
            element: case.element,
            distance,
            line: line.unwrap_or(model.line.at(distance)),
            fetch: fetch.unwrap_or(model.fetch.at(distance)),
            levels: *levels,
            direct: case.site.direct() == Some(true),
            carrier: Carrier::Messages,
        }
    }

    /// Returns the costs of an algorithm whose data `carrier` carries.
    pub fn over(self, carrier: Carrier) -> CallCosts<'m> {
        CallCosts { carrier, ..self }
    }

    /// Returns the nanoseconds until a rank sees a line that another rank has just written. This is the cost of a flag.
    pub fn line(&self) -> f64 {
        self.line
    }

    /// Returns the nanoseconds to write a single line again that another rank has read.
    fn flag(&self) -> f64 {
        self.model.rewrite.at(self.distance)
    }

    /// Returns the size in bytes of a part of a payload that two ranks exchange in alternating parts.
    pub fn part(&self) -> f64 {
        part(self.model, self.distance) as f64
    }

    /// Returns the number of other ranks.
    pub fn others(&self) -> f64 {
        self.ranks - 1.0
    }

    /// Returns the number of rounds of a tree, or of doubling.
    pub fn rounds(&self) -> f64 {
        self.ranks.log2().ceil()
    }

    /// Returns the nanoseconds that a waiting rank loses when it yields a shared processor until its next turn.
    pub fn turns(&self) -> f64 {
        if self.each > 1.0 { self.each * self.model.switch } else { 0.0 }
    }

    /// Returns the nanoseconds of a barrier.
    pub fn barrier(&self) -> f64 {
        let lines = if self.ranks > 2.0 { self.ranks + 1.0 } else { 1.0 };
        lines * self.line() + self.turns()
    }

    /// Returns the nanoseconds to combine `len` bytes of all ranks by the lines of rank 0, and to release the ranks.
    pub fn leader_lines(&self, len: f64) -> f64 {
        let rewrite = self.flag();
        let lines = self.others() * (rewrite + self.reduce(len) + self.handling() / 2.0);
        2.0 * (self.line() + rewrite) + lines + self.turns()
    }

    /// Returns the nanoseconds of a barrier in which all ranks publish addresses. The addresses travel in additional cache lines.
    pub fn exposing(&self) -> f64 {
        self.barrier() + self.line()
    }

    /// Returns the nanoseconds of work that takes `each` nanoseconds on every rank. The times of ranks that share a processor add
    /// up.
    pub fn work(&self, each: f64) -> f64 {
        self.each * each
    }

    /// Returns the nanoseconds to copy `len` bytes into a staging buffer with one reader, which may give the lines back.
    pub fn copy_in(&self, len: f64) -> f64 {
        let lines = (len / LINE as f64).ceil();
        let returned =
            self.model.copy(len as usize) + self.model.rewrite_returned.at(self.distance) * lines;
        returned.min(self.copy_in_for_all(len))
    }

    /// Returns the nanoseconds to copy `len` bytes into a staging buffer that all other ranks read.
    pub fn copy_in_for_all(&self, len: f64) -> f64 {
        self.model.rewrite(len as usize, self.distance)
    }

    /// Returns the nanoseconds to copy `len` bytes out of a buffer that another rank has just written.
    pub fn copy_out(&self, len: f64) -> f64 {
        let len = len as usize;
        let rate = if len <= self.model.last { self.fetch } else { self.model.memory };
        rate * len as f64
    }

    /// Returns the nanoseconds to copy `len` bytes within a rank's own memory.
    pub fn copy(&self, len: f64) -> f64 {
        self.model.copy(len as usize)
    }

    /// Returns the nanoseconds to copy `count` blocks of `len` bytes within a rank's own memory. A copy takes at least as long as a line
    /// that is written again.
    pub fn copy_blocks(&self, count: f64, len: f64) -> f64 {
        self.copy(count * len) + count * self.model.rewrite.shared
    }

    /// Returns the nanoseconds to combine two operands of `len` bytes, both in the caches.
    pub fn reduce(&self, len: f64) -> f64 {
        self.model.reduce * len
    }

    /// Returns the nanoseconds to combine whole payloads, one after the other. If the payloads exceed a processor's private caches,
    /// both operands and the result are in the next cache.
    pub fn reduce_whole(&self, len: f64) -> f64 {
        let fits = 3.0 * len <= self.model.private as f64;
        let fetched =
            if fits { 0.0 } else { 3.0 * self.model.fetch(len as usize, CacheDistance::Shared) };
        self.reduce(len).max(fetched)
    }

    /// Returns the nanoseconds to read `len` bytes of another rank's private memory in one call, and the additional nanoseconds of
    /// its owner's next writes there, which take the lines back. A program writes its data between two calls.
    pub fn read(&self, len: f64) -> f64 {
        if !self.direct {
            return f64::INFINITY;
        }
        let lines = (len / LINE as f64).ceil();
        self.model.cma(len as usize, self.distance) + self.model.rewrite_best(self.distance) * lines
    }

    /// Returns the nanoseconds to read `len` bytes of another rank's private memory block by block.
    pub fn read_blocks(&self, len: f64) -> f64 {
        let blocks = (len / block(self.model) as f64).ceil().max(1.0);
        self.read(len) + (blocks - 1.0) * self.model.cma_call
    }

    /// Returns the costs between ranks whose numbers differ by `difference`. Returns `None` unless the ranks are at known places in
    /// several caches. Algorithms of messages in rounds have a time there only: fewer ranks, or ranks that share a cache, have
    /// algorithms with shared memory.
    pub fn at_difference(&self, difference: f64) -> Option<CallCosts<'m>> {
        Some(self.at_level(self.levels.at_difference(difference)?))
    }

    /// Returns the nanoseconds in which transfers of `len` bytes cross the links of a cache and of a socket. `crossing` gets the number
    /// of ranks in the cache or in the socket, and returns the number of their transfers with other ranks.
    fn links(&self, len: f64, waits: LinkWaits, crossing: impl Fn(f64) -> f64) -> f64 {
        let model = self.model;
        let cache = (TopologyLevel::Cache, waits.cache * model.cache_link);
        let link = |(level, rate): (TopologyLevel, f64)| {
            self.levels.within(level).map_or(0.0, |within| crossing(within) * len * rate)
        };
        link(cache).max(link((TopologyLevel::Socket, waits.socket * model.socket_link)))
    }

    /// Returns the nanoseconds in which each rank transfers `len` bytes to each other rank over the links of caches and sockets. The
    /// time is zero unless the places of the ranks are known.
    pub fn all_links(&self, len: f64) -> f64 {
        self.links(len, LinkWaits::BOTH, |within| within * (self.ranks - within))
    }

    /// Returns the nanoseconds in which slices of `len` bytes go over links: each rank works on a slice of all ranks, and all ranks get
    /// its results. A quarter of both transfers passes while the ranks combine.
    pub fn slice_links(&self, len: f64) -> f64 {
        0.75 * 2.0 * self.all_links(len / self.ranks)
    }

    /// Returns the costs between ranks that meet at `level`.
    fn at_level(&self, level: TopologyLevel) -> CallCosts<'m> {
        let is_near = level <= TopologyLevel::Cache;
        CallCosts {
            line: self.model.line_at(level),
            fetch: self.model.fetch_at(level),
            distance: if is_near { CacheDistance::Shared } else { CacheDistance::Apart },
            ..*self
        }
    }

    /// Returns the stages of a pipeline over the levels of a node, from near to far. There are none unless the ranks are at known places
    /// in several caches.
    pub fn stages(&self) -> impl Iterator<Item = PipelineStage<'m>> + '_ {
        let stages = self.levels.stages(self.ranks);
        stages.map(|(level, members)| PipelineStage { members, costs: self.at_level(level) })
    }

    /// Returns the nanoseconds of messages from each rank to the next rank, one after the other, each followed by `then` nanoseconds
    /// of work. Returns `None` if one call does not matter because calls of ranks that share a cache follow each other, or if the
    /// places of the ranks are not known.
    pub fn along_neighbors(&self, len: f64, then: f64) -> Option<f64> {
        self.levels.along_neighbors(self.ranks, |level| self.at_level(level).in_round(len) + then)
    }

    /// Returns the nanoseconds of `rounds` rounds in which a rank exchanges messages with ranks at differences of powers of two.
    /// `len` returns the bytes of a message of a round; each is followed by `then` nanoseconds of work. The time is infinite where
    /// such algorithms have none.
    pub fn doubling(
        &self,
        rounds: f64,
        len: impl Fn(i32) -> f64,
        then: impl Fn(f64) -> f64,
    ) -> f64 {
        let round = |k: i32| self.exchange(2f64.powi(k), len(k)) + then(len(k));
        (0..rounds as i32).map(round).sum()
    }

    /// Returns the nanoseconds of a round in which ranks at `difference` exchange `len` bytes. The time is infinite unless the ranks
    /// are at known places in several caches.
    pub fn exchange(&self, difference: f64, len: f64) -> f64 {
        let links = self.links(len, LinkWaits::BOTH, |within| difference.min(within));
        self.at_difference(difference).map_or(f64::INFINITY, |costs| costs.in_round(len).max(links))
    }

    /// Returns the nanoseconds of `rounds` rounds in which each rank sends `len` bytes to the next rank, or to a rank at the same
    /// difference, followed by `then` nanoseconds of work. A rank waits for its neighbour only, so that a round takes the mean of the
    /// messages between neighbours, but not less than the work of the farthest neighbours. The time is infinite unless the ranks are
    /// at known places in several caches.
    pub fn around(&self, rounds: f64, len: f64, then: f64) -> f64 {
        let Some(far) = self.at_difference(self.ranks) else { return f64::INFINITY };
        let busy = match self.is_eager(len) {
            true => far.send_busy(len) + far.receive_busy(len),
            false => far.in_round(len),
        };
        let mean = self.along_neighbors(len, then).map_or(0.0, |sum| sum / self.others().max(1.0));
        rounds * mean.max(busy + then)
    }

    /// Returns the nanoseconds in which each rank exchanges `len` bytes with each other rank, `batch` messages each way at once. Only
    /// a batch waits for lines. The time is infinite unless the ranks are at known places in several caches.
    pub fn all_pairs(&self, batch: f64, len: f64) -> f64 {
        let Some(farthest) = self.at_difference(self.ranks) else { return f64::INFINITY };
        let lines = self.flag() + self.copy_out(LINE as f64);
        let work = lines + self.message(len) - self.line() + self.turns();
        // Messages of a batch come from several caches, and wait for each other in any order.
        let waits = if batch > 1.0 { LinkWaits::BATCH } else { LinkWaits::BOTH };
        let links = self.links(len, waits, |within| within * (self.ranks - within));
        self.others() * work.max(links / self.others())
            + (self.others() / batch).ceil() * farthest.line
    }

    /// Returns the additional nanoseconds of a line between two neighbours on both sides of the outermost boundary. A round of messages
    /// to the next ranks, round all ranks, takes as long as this line.
    pub fn far_neighbors(&self) -> f64 {
        let line = |difference| self.at_difference(difference).map_or(0.0, |costs| costs.line);
        line(self.ranks) - line(1.0)
    }

    /// Returns the nanoseconds in which `ranks` ranks beyond a power of two, if any, send their operands to ranks at `difference`
    /// before other rounds, and get the result after them.
    pub fn folded(&self, ranks: f64, difference: f64, len: f64) -> f64 {
        let costs = self.at_difference(difference).filter(|_| ranks > 0.0);
        costs.map_or(0.0, |costs| 2.0 * costs.message(len) + costs.reduce_whole(len))
    }

    /// Returns the nanoseconds of messages along a binomial tree, each followed by `then` nanoseconds of work at its receiver. In a
    /// round all pairs are at work, and ranks that share a processor do the work of both ends one after the other.
    pub fn binomial(&self, len: f64, then: f64) -> f64 {
        let ends = (self.copy_in(len) + self.copy_out(len)).min(self.read(len));
        let processors = self.ranks / self.each;
        let round = |k: i32| {
            let pairs = 2f64.powi(k).min(self.ranks / 2.0);
            (self.message(len) + then).max(pairs * (ends + then) / processors)
        };
        // Before a rank passes the message on, it waits for its turn on the processor.
        let turns = (self.rounds() - 1.0).max(0.0) * self.turns();
        (0..self.rounds() as i32).map(round).sum::<f64>() + turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Carrier;
    use crate::catalog::ALGORITHMS;
    use crate::selection_key::{Near, RankPlacement};

    fn case(ranks: usize, bytes: usize, near: Near) -> SelectionKey {
        let site = RankPlacement { near, ..RankPlacement::together(ranks) };
        SelectionKey { ranks, bytes, element: 8, commutes: true, equal: true, site }
    }

    /// More bytes, far caches or shared processors never cost less. An algorithm that reads other ranks' memory is not chosen if
    /// the ranks cannot read this memory.
    #[test]
    fn times_grow_with_what_there_is_to_do() {
        let model = CopyModel::GENERIC;
        let near = Near { direct: Some(true), distance: CacheDistance::Shared, each: 1 };
        for algorithm in ALGORITHMS {
            let Some(time) = algorithm.time else { continue };
            let what = format!("{} {}", algorithm.operation, algorithm.name);
            let close = SelectionKey { element: 8, ..case(8, 64, near) };
            let needs_levels = algorithm.predicted(&close, &model).is_none();
            for ranks in [2, 3, 8, 64].into_iter().filter(|_| !needs_levels) {
                let mut last = 0.0;
                for bytes in (0..26).map(|bit| 1 << bit) {
                    let at = |near| {
                        let costs = CallCosts::of(&case(ranks, bytes, near), &model);
                        time(&costs, bytes as f64)
                    };
                    let now = at(near);
                    // A longer message may cost less if it uses another protocol.
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
