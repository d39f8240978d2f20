//! Copies of a payload's segments on a rank of a tree: from the parent, and on to the children.
//!
//! ```text
//!   parent ── segment k + 4 ... k + 1 ──> receives posted ahead       segment k ... k - 3 ──> each child
//! ```

use crate::CommView;
use crate::level_tree::LevelNode;
use crate::segments::piece;
use std::collections::VecDeque;
use std::rc::Rc;
use weft_fabric::{Fabric, Fault, Sge};
use weft_p2p::RequestId;

/// Number of segments that are under way to each child, and for which receives are posted ahead.
const AHEAD: usize = 4;

/// The receives and sends of a rank.
pub(crate) struct SegmentCopies<'l, F: Fabric> {
    link: &'l CommView<F>,
    node: Rc<LevelNode>,
    data: Sge,
    segment: usize,
    count: usize,
    /// Number of segments for which receives are posted.
    posted: usize,
    asked: VecDeque<RequestId>,
    /// Number of segments that are sent to the children.
    passed: usize,
    /// By segment, the sends that are under way.
    under_way: VecDeque<Vec<RequestId>>,
}

impl<'l, F: Fabric> SegmentCopies<'l, F> {
    /// Starts to receive the first segments of `data`: `count` segments of `segment` bytes.
    pub fn begin(
        link: &'l CommView<F>,
        node: Rc<LevelNode>,
        data: Sge,
        segment: usize,
        count: usize,
    ) -> SegmentCopies<'l, F> {
        let (asked, under_way) = (VecDeque::with_capacity(AHEAD), VecDeque::with_capacity(AHEAD));
        let (posted, passed) = (0, 0);
        let mut copies =
            SegmentCopies { link, node, data, segment, count, posted, asked, passed, under_way };
        copies.ask();
        copies
    }

    /// Posts receives of the next segments, up to [`AHEAD`].
    fn ask(&mut self) {
        let Some(parent) = self.node.parent else { return };
        while self.asked.len() < AHEAD && self.posted < self.count {
            let into = piece(self.data, self.segment, self.posted);
            self.asked.push_back(self.link.irecv_as_each(parent, into));
            self.posted += 1;
        }
    }

    /// Returns true if all segments are sent to the children.
    pub fn is_over(&self) -> bool {
        self.passed == self.count
    }

    /// Returns the requests for which the next segment waits. `ready` is the number of segments that the root has. Returns `None` on
    /// the root if the next segment is not ready.
    pub fn awaited(&self, ready: usize) -> Option<Vec<RequestId>> {
        if self.node.parent.is_none() && self.passed >= ready {
            return None;
        }
        let oldest = self.under_way.front().filter(|_| self.under_way.len() == AHEAD);
        Some(self.asked.front().into_iter().chain(oldest.into_iter().flatten()).copied().collect())
    }

    /// Waits for the next segment, and starts to send it to the children. The farthest child is served first, because its segment has
    /// the longest way.
    pub async fn pass(&mut self) -> Result<(), Fault> {
        let received = match self.asked.pop_front() {
            Some(receive) => self.link.wait(receive).await,
            None => Ok(()),
        };
        self.ask();
        let gone = match self.under_way.len() {
            AHEAD => self.link.wait_all(self.under_way.pop_front().unwrap_or_default()).await,
            _ => Ok(()),
        };
        let part = piece(self.data, self.segment, self.passed);
        let send = |&child: &usize| self.link.isend_to_each(child, part);
        self.under_way.push_back(self.node.children.iter().rev().filter_map(send).collect());
        self.passed += 1;
        received.and(gone)
    }

    /// Waits for the sends that are under way.
    pub async fn end(self) -> Result<(), Fault> {
        self.link.wait_all(self.under_way.into_iter().flatten()).await
    }
}
