//! Fence-2S: operations are queued, and sent as messages by the fence that ends their epoch.
//!
//! ```text
//!   put, get, accumulate: queued
//!   fence: ranks that it has operations for ── added up ── so many will send to me
//!          requests to each of them, the last one says so; others' requests carried out, until so many last ones
//! ```
//! The first fence does nothing. Cost: an allreduce of 4 n bytes (beyond 512 ranks a reduce-scatter), one request an operation; no flags and no
//! barrier, but nothing moves while the program computes. Source: Santhanaraman et al. 2009, "Fence-2S". Chosen by name only.

use crate::Window;
use crate::queue::Queued;
use crate::request::{HEAD, InFlight, Way, tags};
use weft_fabric::Fabric;
use weft_process::Error;

/// A queued operation's data on their way: packed until the end.
type Pieces = [Option<weft_process::Piece>; 2];

impl<F: Fabric> Window<F> {
    pub(super) async fn fence_two_sided(&self, opens: bool) -> Result<(), Error> {
        if opens {
            return Ok(());
        }
        let touched = std::mem::take(&mut *self.epochs.touched.borrow_mut());
        let mut counts = vec![0; self.size()];
        let mut queues = Vec::with_capacity(touched.len());
        for rank in touched {
            self.targets[rank].touched.set(false);
            let queue = std::mem::take(&mut *self.targets[rank].queue.borrow_mut());
            if !queue.is_empty() {
                counts[rank] = 1;
                queues.push(queue);
            }
        }
        let mut origins = self.summed_up(counts).await?;
        let pool = self.endpoint().staging();
        let packed = |queue: &Vec<Queued>| queue.iter().map(|q| q.pieces(pool)).collect();
        let pieces: Vec<Vec<Pieces>> = queues.iter().map(packed).collect();
        let mut asked = Vec::new();
        for (queue, pieces) in queues.iter().zip(&pieces) {
            self.send_all(queue, pieces, &mut asked);
        }
        let head = pool.take(HEAD);
        let mut answers = Vec::new();
        while origins > 0 {
            let (rank, request) = self.next_request(tags::FENCE, head.sge()).await?;
            self.carry_out(rank, &request, tags::FENCE_MORE, &mut answers).await?;
            origins -= u32::from(request.last);
        }
        for (queued, skip, take, asked) in asked {
            let answer = self.answered(queued.location().rank, asked).await?;
            if let (Some(result), Some(answer)) = (queued.result(), answer) {
                result.unpack_at(skip, answer.sge().part(8, take));
            }
        }
        for (answer, _memory) in answers {
            self.endpoint().wait(answer).await?;
        }
        Ok(())
    }

    /// Sends one rank's requests.
    fn send_all<'q>(
        &self,
        queue: &'q [Queued],
        pieces: &[Pieces],
        asked: &mut Vec<(&'q Queued, usize, usize, InFlight)>,
    ) {
        for (i, (queued, pieces)) in queue.iter().zip(pieces).enumerate() {
            let (location, wish) = (queued.location(), queued.wish(pieces));
            let answer = queued.result().is_some();
            let mut parts = wish.parts(location.len()).peekable();
            while let Some((skip, take)) = parts.next() {
                let last = i + 1 == queue.len() && parts.peek().is_none();
                let way = Way::Fence { last };
                let sent = self.ask(way, &queued.place, &location, wish, (skip, take), answer);
                asked.push((queued, skip, take, sent));
            }
        }
    }
}
