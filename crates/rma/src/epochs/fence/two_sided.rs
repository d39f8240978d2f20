//! Fence-2S: operations are queued, and the fence that ends their epoch sends them as messages.
//!
//! ```text
//!   put, get, accumulate: queued
//!   fence: targets of each rank ── summed up ── number of origins that will send to this rank
//!          requests to each target, the last one marked; requests of origins carried out, until each origin's last
//! ```
//! The first fence does nothing. Cost: an allreduce of 4 n bytes (beyond 512 ranks a reduce-scatter), one request per operation.
//! There are no flags and no barrier, but no data move while the program computes. Source: Santhanaraman et al. 2009, "Fence-2S".
//! Chosen only by name.
//!
//! Fence-2S-APART is the same without the source's optimization: the last request is not marked, and an empty request follows it.

use super::WindowFences;
use crate::access::deferred::DeferredOp;
use crate::control::messages::{Answers, RequestedPart, SentRequest, Taker};
use crate::control::request::ControlRequest;
use crate::core::epoch_state::FenceWork;
use crate::options::FenceDesign;
use weft_fabric::{Fabric, Sge};
use weft_process::Error;

/// Packed data of a deferred operation, kept until the fence ends.
type Pieces = [Option<weft_process::BufferPiece>; 2];

/// A request under way: its operation, the range of the operation's packed bytes, and the sent request.
type SentOperation<'q> = (&'q DeferredOp, (usize, usize), SentRequest);

impl<F: Fabric> WindowFences<F> {
    pub(super) async fn fence_two_sided(&self, work: FenceWork) -> Result<(), Error> {
        if work == FenceWork::Begin {
            return Ok(());
        }
        let waiting: Vec<Vec<DeferredOp>> = self.access.take_deferred().collect();
        let mut counts = vec![0; self.core.size()];
        waiting.iter().for_each(|of_rank| counts[of_rank[0].location().rank] = 1);
        let mut origins = self.expected(counts).await?;
        let pool = self.core.endpoint().staging();
        let packed = |of_rank: &Vec<DeferredOp>| of_rank.iter().map(|op| op.pieces(pool)).collect();
        let pieces: Vec<Vec<Pieces>> = waiting.iter().map(packed).collect();
        let (mut sent, mut ends) = (Vec::new(), Vec::new());
        for (of_rank, pieces) in waiting.iter().zip(&pieces) {
            self.send_all(of_rank, pieces, &mut sent);
            if self.core.options.fence == FenceDesign::TwoSidedApart {
                ends.push(self.control.end_epoch(of_rank[0].location().rank));
            }
        }
        let fulfil = async |request: &ControlRequest, more: Sge, answer: Sge| {
            self.access.fulfil(request, more, answer).await
        };
        let mut answers = Answers::default();
        while origins > 0 {
            let request = self.control.take_one(Taker::Fence, &mut answers, fulfil).await?;
            origins -= u32::from(request.is_some_and(|request| request.last));
        }
        for (deferred, (skip, take), sent) in sent {
            let answer = self.control.answered(deferred.location().rank, sent).await?;
            if let (Some(result), Some(answer)) = (deferred.result(), answer) {
                result.unpack_at(skip, answer.sge().part(8, take));
            }
        }
        for (of_rank, end) in waiting.iter().zip(ends) {
            self.control.answered(of_rank[0].location().rank, end).await?;
        }
        self.control.all_answered(answers).await
    }

    /// Sends one rank's requests. Marks the last request, unless a separate message marks the end.
    fn send_all<'q>(
        &self,
        of_rank: &'q [DeferredOp],
        pieces: &[Pieces],
        sent: &mut Vec<SentOperation<'q>>,
    ) {
        let joined = self.core.options.fence != FenceDesign::TwoSidedApart;
        for (i, (deferred, pieces)) in of_rank.iter().zip(pieces).enumerate() {
            let (location, operation) = (deferred.location(), deferred.request(pieces));
            let (own, answered) = (deferred.place.own, deferred.result().is_some());
            let mut parts = operation.parts(location.len()).peekable();
            while let Some(part) = parts.next() {
                let last = joined && i + 1 == of_rank.len() && parts.peek().is_none();
                let location = &location;
                let asked = RequestedPart { location, own, operation, part, last, answered };
                sent.push((deferred, part, self.control.ask(Taker::Fence, asked)));
            }
        }
    }
}
