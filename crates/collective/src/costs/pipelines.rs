//! Costs of pipelines: payloads in segments, along chains, binary trees and the levels of a node.

use super::CallCosts;

/// Default length of a segment in bytes.
pub const DEFAULT_SEGMENT: usize = 64 << 10;

/// A payload in segments of the default length.
pub struct SegmentCount {
    /// Number of bytes of the first segment.
    pub segment: f64,
    /// Number of further segments.
    pub later: f64,
}

impl SegmentCount {
    /// Cuts `len` bytes.
    pub fn of(len: f64) -> SegmentCount {
        let segment = len.min(DEFAULT_SEGMENT as f64);
        SegmentCount { segment, later: (len / DEFAULT_SEGMENT as f64).ceil().max(1.0) - 1.0 }
    }
}

/// Nanoseconds of a pipeline.
#[derive(Debug, Clone, Copy)]
pub struct PipelineTime {
    /// Time until the first segment is at the end of its way.
    pub first: f64,
    /// Time of each further segment: the work of the busiest rank.
    pub further: f64,
}

impl PipelineTime {
    /// Returns the nanoseconds of a pipeline of `segments`.
    pub fn of(self, segments: &SegmentCount) -> f64 {
        if self.first.is_finite() {
            self.first + segments.later * self.further
        } else {
            f64::INFINITY
        }
    }

    /// The times where the places of the ranks are not known.
    const NONE: PipelineTime = PipelineTime { first: f64::INFINITY, further: 0.0 };
}

impl CallCosts<'_> {
    /// Returns the times of segments from the leader of each group to all its members. A member reads its segment from its leader, so the
    /// members of a group copy at the same time. If ranks can read each other's memory, a leader only announces each of several segments,
    /// and hears from each member at the end. The times are infinite unless the ranks are at known places in several caches.
    pub fn down_levels(&self, segments: &SegmentCount) -> PipelineTime {
        let (segment, in_place) = (segments.segment, self.direct && segments.later > 0.0);
        let (mut first, mut slowest) = (0.0, 0.0f64);
        for stage in self.stages() {
            let (others, costs) = (stage.members - 1.0, &stage.costs);
            let time = match in_place {
                true => costs.announced(segment) + others * costs.announcing(),
                false => costs.in_round(segment) + others * costs.send_busy(segment),
            };
            first += time + if in_place { others * costs.handling() } else { 0.0 };
            slowest = slowest.max(time);
        }
        if first > 0.0 { PipelineTime { first, further: slowest } } else { PipelineTime::NONE }
    }

    /// Returns the times of segments of `segment` bytes along the chain of all ranks, with `then` nanoseconds of work at each rank. The
    /// times are infinite unless the ranks are at known places in several caches.
    pub fn down_chain(&self, segment: f64, then: f64) -> PipelineTime {
        let Some(far) = self.at_difference(self.ranks) else { return PipelineTime::NONE };
        let first = self.along_neighbors(segment, then).unwrap_or(f64::INFINITY);
        PipelineTime { first, further: far.in_round(segment) + then }
    }

    /// Returns the times of segments of `segment` bytes down a binary tree of `ranks` ranks, whose inner ranks send each segment twice.
    /// The times are infinite unless the ranks are at known places in several caches.
    pub fn down_binary(&self, ranks: f64, segment: f64) -> PipelineTime {
        let depth = ranks.log2().floor() as i32;
        let hop = |k: i32| {
            let Some(costs) = self.at_difference(2f64.powi(k)) else { return f64::INFINITY };
            costs.in_round(segment) + costs.send_busy(segment)
        };
        let first = (0..depth).map(hop).sum();
        let Some(far) = self.at_difference(self.ranks) else { return PipelineTime::NONE };
        PipelineTime { first, further: 2.0 * far.in_round(segment) }
    }

    /// Returns the times of segments of `segment` bytes over a circulant graph, in which a rank sends a segment and receives one in each
    /// round. The times are infinite unless the ranks are at known places in several caches.
    pub fn over_circulant(&self, segment: f64) -> PipelineTime {
        let first = self.doubling(self.rounds(), |_| segment, |_| 0.0);
        PipelineTime { first, further: first / self.rounds().max(1.0) }
    }

    /// Returns the times of segments of `segment` bytes along a chain in each group, combined at each rank, up to rank 0. The times are
    /// infinite unless the ranks are at known places in several caches.
    pub fn up_levels(&self, segment: f64) -> PipelineTime {
        let (mut first, mut further) = (0.0, 0.0);
        for stage in self.stages() {
            let time = stage.costs.in_round(segment) + self.reduce_whole(segment);
            first += (stage.members - 1.0) * time;
            further += time;
        }
        if first > 0.0 { PipelineTime { first, further } } else { PipelineTime::NONE }
    }
}
