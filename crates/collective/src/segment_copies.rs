//! Copies of a payload's segments on a rank of a tree: from the parent, and on to the children.
//!
//! ```text
//!   by messages:  parent ── segment k + 4 ... k + 1 ──> receives posted ahead       segment k ... k - 3 ──> each child
//!   in place:     parent ── "segment k is here" ──> child,  which reads segment k from the parent's memory
//!                 parent <── "all read" ── child            once, at the end
//! ```
//! Cost of a segment for each child:
//!
//! ```text
//!   message up to the eager limit      a copy by the parent, a message, a copy by the child
//!   longer message (rendezvous)        an RTS, a copy by the child, a message at its end
//!   in place                           an empty message, a copy by the child
//! ```
//! So a parent with 23 children makes 23 copies of an eager segment, and no copy of a segment that is read in place.
//!
//! A parent that cannot expose its memory says so in its first message, and sends its segments by messages.

use crate::level_tree::LevelNode;
use crate::outstanding::Outstanding;
use crate::segments::piece;
use crate::{CommView, words};
use std::collections::VecDeque;
use std::rc::Rc;
use weft_fabric::{Fabric, Fault, Region, RemoteAddr, RemoteRead, Sge, Staging};
use weft_p2p::RequestId;

/// Number of segments that are under way to each child, and for which receives are posted ahead.
const AHEAD: usize = 4;

/// Carrier of segments from a parent to its children, the same on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentCarrier {
    /// Each segment goes by a message.
    Messages,
    /// Children read their parent's memory. All ranks can read each other's memory. A payload of a single segment goes by a message, which
    /// needs no address.
    InPlace,
}

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
    reads: Option<SegmentReads<'l, F>>,
}

/// Number of words of a parent's first message: the address of its memory, and a word that is 1 if children can read there.
const WORDS: usize = RemoteAddr::WORDS + 1;

/// Memory of a parent that its children read, and the reads of a child.
struct SegmentReads<'l, F: Fabric> {
    link: &'l CommView<F>,
    /// This rank's data, if children read them.
    exposed: Option<Region>,
    /// First message to the children, if there are any.
    to_children: Option<Staging>,
    /// First message of the parent, if there is one.
    from_parent: Option<Staging>,
    /// Address of the parent's data, if this rank reads there.
    parent: Option<RemoteAddr>,
    posted: Outstanding<F>,
}

impl<F: Fabric> Drop for SegmentReads<'_, F> {
    fn drop(&mut self) {
        if let Some(region) = self.exposed.take() {
            self.link.endpoint.fabric().withdraw(region);
        }
    }
}

impl<'l, F: Fabric> SegmentReads<'l, F> {
    fn new(link: &'l CommView<F>, node: &LevelNode, data: Sge) -> SegmentReads<'l, F> {
        let has_children = !node.children.is_empty();
        let exposed = has_children.then(|| link.endpoint.fabric().expose(data).ok()).flatten();
        let to_children = has_children.then(|| link.stage(8 * WORDS));
        if let Some(message) = &to_children {
            let at = exposed.as_ref().map_or(RemoteAddr::default(), |region| region.remote);
            let words = at.words().into_iter().chain([u64::from(exposed.is_some())]);
            words::write(words, message.sge());
        }
        let from_parent = node.parent.map(|_| link.stage(8 * WORDS));
        let posted = Outstanding::new(link.endpoint.clone());
        SegmentReads { link, exposed, to_children, from_parent, parent: None, posted }
    }

    /// Learns where the parent's data are.
    fn learn(&mut self) {
        let Some(message) = self.from_parent.as_ref().map(Staging::sge) else { return };
        self.parent = (words::read(message, WORDS - 1) == 1).then(|| words::read_addr(message));
    }
}

impl<'l, F: Fabric> SegmentCopies<'l, F> {
    /// Divides `data` into segments of `segment` bytes, and posts the receives of the first segments. The last segment may be shorter.
    pub fn begin(
        link: &'l CommView<F>,
        node: Rc<LevelNode>,
        data: Sge,
        segment: usize,
        carrier: SegmentCarrier,
    ) -> SegmentCopies<'l, F> {
        let count = data.len().div_ceil(segment);
        let in_place = carrier == SegmentCarrier::InPlace && count > 1;
        let reads = in_place.then(|| SegmentReads::new(link, &node, data));
        let (asked, under_way) = (VecDeque::with_capacity(AHEAD), VecDeque::with_capacity(AHEAD));
        let mut copies = SegmentCopies {
            link,
            node,
            data,
            segment,
            count,
            posted: 0,
            asked,
            passed: 0,
            under_way,
            reads,
        };
        copies.ask_first();
        copies
    }

    /// Posts the receive of the parent's first message, or receives of segments.
    fn ask_first(&mut self) {
        let first = self.reads.as_ref().and_then(|reads| reads.from_parent.as_ref());
        match first.map(Staging::sge).zip(self.node.parent) {
            Some((message, parent)) => {
                self.asked.push_back(self.link.irecv(parent, message));
                self.posted = 1;
            }
            None => self.ask(),
        }
    }

    /// Posts receives of the next segments, or of messages that announce them, up to [`AHEAD`].
    fn ask(&mut self) {
        let Some(parent) = self.node.parent else { return };
        let announced = self.reads.as_ref().is_some_and(|reads| reads.parent.is_some());
        while self.asked.len() < AHEAD && self.posted < self.count {
            let into = piece(self.data, self.segment, self.posted);
            self.asked.push_back(match announced {
                true => self.link.irecv(parent, Sge::EMPTY),
                false => self.link.irecv_as_each(parent, into),
            });
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
        let received = self.receive().await;
        self.ask();
        let gone = match self.under_way.len() {
            AHEAD => self.link.wait_all(self.under_way.pop_front().unwrap_or_default()).await,
            _ => Ok(()),
        };
        let sends = self.send();
        self.under_way.push_back(sends);
        self.passed += 1;
        received.and(gone)
    }

    /// Receives the next segment from the parent, if there is one.
    async fn receive(&mut self) -> Result<(), Fault> {
        let Some(parent) = self.node.parent else { return Ok(()) };
        let mut received = self.link.wait_all(self.asked.pop_front()).await;
        let part = piece(self.data, self.segment, self.passed);
        let Some(reads) = &mut self.reads else { return received };
        if self.passed == 0 && received.is_ok() {
            reads.learn();
            if reads.parent.is_none() {
                // The parent sends its segments in messages after its first message.
                self.posted = 0;
                self.ask();
                received = self.link.wait_all(self.asked.pop_front()).await;
            }
        }
        let Some(SegmentReads { parent: Some(from), posted, .. }) = &self.reads else {
            return received;
        };
        received?;
        let peer = self.link.members[parent] as usize;
        let from = from.offset((self.passed * self.segment) as u64);
        posted.finish(|fabric, done| fabric.read(peer, &RemoteRead::new(part, from, done))).await
    }

    /// Starts to send the next segment to the children, or to announce it. Returns the sends that are under way.
    fn send(&self) -> Vec<RequestId> {
        let link = self.link;
        let part = piece(self.data, self.segment, self.passed);
        let mut sends = Vec::new();
        for &child in self.node.children.iter().rev() {
            match &self.reads {
                Some(SegmentReads { to_children: Some(first), .. }) if self.passed == 0 => {
                    sends.extend(link.isend(child, first.sge()));
                }
                Some(SegmentReads { exposed: Some(_), .. }) => {
                    sends.extend(link.isend(child, Sge::EMPTY));
                }
                _ => {}
            }
            if self.reads.as_ref().is_none_or(|reads| reads.exposed.is_none()) {
                sends.extend(link.isend_to_each(child, part));
            }
        }
        sends
    }

    /// Waits for the sends that are under way, and until no child reads this rank's data any more.
    pub async fn end(self) -> Result<(), Fault> {
        let sent = self.link.wait_all(self.under_way.into_iter().flatten()).await;
        let Some(reads) = &self.reads else { return sent };
        let mut last = Vec::new();
        if let (Some(parent), Some(_)) = (self.node.parent, reads.parent) {
            last.extend(self.link.isend(parent, Sge::EMPTY));
        }
        if reads.exposed.is_some() {
            let receive = |&child: &usize| self.link.irecv(child, Sge::EMPTY);
            last.extend(self.node.children.iter().map(receive));
        }
        sent.and(self.link.wait_all(last).await)
    }
}
