//! Sums of a payload's segments on a rank of a tree: the rank's own segment, combined with the sums of its children.
//!
//! ```text
//!   children ── segment k ──> rooms of slot k % 3 ── combined with the rank's segment k ──> the sum of segment k, in a room
//! ```
//! The receives of a later segment begin when the sum in its slot has gone.

use crate::segments::piece;
use crate::{CommView, ElementReduction, local_ops};
use weft_fabric::{Fabric, Fault, Sge, Staging};
use weft_p2p::RequestId;

/// Number of segments of each child for which there is memory.
const SLOTS: usize = 3;

/// Returns the number of bytes of a segment of at most `segment` bytes and whole elements, but at least one element.
pub(crate) fn whole_elements(segment: usize, element: usize) -> usize {
    let element = element.max(1);
    (segment / element).max(1) * element
}

/// The receives of a rank's children, by segment.
pub(crate) struct SegmentSums<'l, F: Fabric> {
    link: &'l CommView<F>,
    data: Sge,
    segment: usize,
    children: &'l [usize],
    /// By child, memory for [`SLOTS`] segments.
    rooms: Vec<Staging>,
    /// By slot, the receives of all children.
    asked: [Vec<RequestId>; SLOTS],
    /// The first fault. After a fault the operation goes on, because receives are under way.
    pub outcome: Result<(), Fault>,
}

impl<'l, F: Fabric> SegmentSums<'l, F> {
    /// Starts to receive the first segments. `data` is this rank's operand, in segments of `segment` bytes.
    pub fn begin(
        link: &'l CommView<F>,
        data: Sge,
        segment: usize,
        children: &'l [usize],
    ) -> SegmentSums<'l, F> {
        let segment = segment.min(data.len().max(1));
        let room = |_: &usize| local_ops::stage(link, data, SLOTS * segment);
        let rooms = children.iter().map(room).collect();
        let asked = Default::default();
        let mut sums = SegmentSums { link, data, segment, children, rooms, asked, outcome: Ok(()) };
        (0..SLOTS).for_each(|k| sums.ask(k));
        sums
    }

    /// Returns the number of segments.
    pub fn count(&self) -> usize {
        self.data.len().div_ceil(self.segment)
    }

    /// Returns the number of bytes of a segment.
    pub fn segment(&self) -> usize {
        self.segment
    }

    /// Returns the memory for segment `k` of a child.
    fn room(&self, child: usize, k: usize) -> Sge {
        let len = piece(self.data, self.segment, k).len();
        self.rooms[child].sge().part(k % SLOTS * self.segment, len)
    }

    /// Starts to receive segment `k` of all children. Does nothing behind the last segment.
    fn ask(&mut self, k: usize) {
        if piece(self.data, self.segment, k).is_empty() {
            return;
        }
        let receive = |(at, &child): (usize, &usize)| self.link.irecv(child, self.room(at, k));
        let receives: Vec<RequestId> = self.children.iter().enumerate().map(receive).collect();
        self.asked[k % SLOTS] = receives;
    }

    /// Returns the receives for which the sum of segment `k` waits.
    pub fn awaited(&self, k: usize) -> &[RequestId] {
        &self.asked[k % SLOTS]
    }

    /// Waits for segment `k` of all children, and combines them with this rank's own segment. Returns the memory of the sum.
    pub async fn sum(&mut self, k: usize, op: &dyn ElementReduction) -> Sge {
        let mut value = piece(self.data, self.segment, k);
        for (child, receive) in std::mem::take(&mut self.asked[k % SLOTS]).into_iter().enumerate() {
            let received = self.link.wait(receive).await;
            self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(received);
            let room = self.room(child, k);
            local_ops::combine(self.link, op, value, room);
            value = room;
        }
        value
    }

    /// Declares that the sum of segment `k` is no longer needed, and starts to receive the next segment of its slot.
    pub fn free(&mut self, k: usize) {
        self.ask(k + SLOTS);
    }
}
