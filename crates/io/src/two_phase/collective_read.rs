//! Collective reads: aggregators read windows and send each rank its pieces.

use super::aggregator_messages::{PendingMessage, PieceResult};
use super::{AccessResult, Contribution, TwoPhaseAccess, hull};
use crate::access_direction::AccessDirection;
use crate::access_memory::AccessMemory;
use crate::access_policy::AccessPolicy;
use crate::byte_range::ByteRange;
use crate::data_sieving;
use crate::storage::{Storage, read_full};
use crate::strided_copy::gather;
use crate::strided_runs::StridedRuns;
use crate::thread_pool::FileJob;
use std::sync::Arc;
use weft_fabric::{Fabric, Sge, Staging};
use weft_process::Error;

/// One rank's pieces in a window, and memory for their data.
struct ReadPieces {
    runs: StridedRuns,
    data: AccessMemory,
}

/// A job that reads a window.
struct WindowRead {
    storage: Arc<dyn Storage>,
    pieces: Vec<ReadPieces>,
    first: u64,
    /// Buffer for the whole window; empty if the pieces are read separately.
    buffer: AccessMemory,
    policy: AccessPolicy,
}

impl WindowRead {
    /// Reads the window. Returns the results in the order of the pieces.
    fn run(self) -> Vec<PieceResult> {
        match self.buffer.len() {
            0 => self.pieces.iter().map(|pieces| self.read_separately(pieces)).collect(),
            _ => self.read_window(),
        }
    }

    fn read_separately(&self, ReadPieces { runs, data }: &ReadPieces) -> PieceResult {
        match data_sieving::read(&*self.storage, runs, *data, &self.policy) {
            Ok(bytes) => PieceResult { bytes, failure: None },
            Err(failure) => PieceResult { bytes: 0, failure: Some(failure) },
        }
    }

    fn read_window(&self) -> Vec<PieceResult> {
        let first = self.first;
        let read = self.buffer.write(|buffer| read_full(&*self.storage, first, buffer));
        let (had, failure) = match read {
            Ok(had) => (had, None),
            Err(failure) => ((failure.offset - first) as usize, Some(failure)),
        };
        let each = |ReadPieces { runs, data }: &ReadPieces| {
            let bytes = self
                .buffer
                .part(0, had)
                .read(|window| data.write(|data| gather(runs.list(), first, window, data)));
            PieceResult { bytes, failure: failure.filter(|_| bytes < runs.bytes()) }
        };
        self.pieces.iter().map(each).collect()
    }
}

/// A window that a thread reads.
struct ActiveRead {
    job: FileJob<Vec<PieceResult>>,
    /// Ranks of the pieces, in the order of the pieces.
    ranks: Vec<usize>,
    /// Memory for the data of other ranks; `None` for this rank's own data.
    places: Vec<Option<Staging>>,
    _buffer: Staging,
}

/// Requests of this rank to aggregators in one round.
#[derive(Default)]
struct PendingRequests {
    heads: Vec<PendingMessage>,
    /// Result and data from each aggregator.
    answers: Vec<(PendingMessage, PendingMessage)>,
}

/// Replies that this aggregator is sending, and the staging memory that holds the data of these replies.
#[derive(Default)]
struct PendingReplies {
    messages: Vec<PendingMessage>,
    _places: Vec<Option<Staging>>,
}

/// Runs this rank's side of a read. A thread reads a window while the next window is requested and the previous window is sent.
pub async fn run<F: Fabric>(side: &TwoPhaseAccess<'_, F>) -> Result<AccessResult, Error> {
    let mut active = None;
    let done = all_rounds(side, &mut active).await;
    // Even after an error, this rank waits for the thread. Otherwise the thread might write to memory that the program uses again.
    if let Some(left) = active {
        side.open.pool.end(left.job).await?;
    }
    done
}

async fn all_rounds<F: Fabric>(
    side: &TwoPhaseAccess<'_, F>,
    active: &mut Option<ActiveRead>,
) -> Result<AccessResult, Error> {
    let mut outcome = PieceResult::default();
    let (mut requests, mut replies) = (PendingRequests::default(), PendingReplies::default());
    for round in 0..side.domains.rounds() {
        let (mine, next) = send_requests(side, round);
        let begun = match mine {
            Some(window) => begin(side, window).await?,
            None => None,
        };
        if let Some(before) = std::mem::replace(active, begun) {
            let last = send_replies(side, before, &mut outcome).await?;
            // The receivers of the previous window have already posted their receives, so this wait does not delay the ranks.
            side.messages.end_all(std::mem::replace(&mut replies, last).messages).await?;
        }
        let before = std::mem::replace(&mut requests, next);
        receive_answers(side, before, &mut outcome).await?;
    }
    if let Some(last) = active.take() {
        let last = send_replies(side, last, &mut outcome).await?;
        side.messages.end_all(std::mem::replace(&mut replies, last).messages).await?;
    }
    receive_answers(side, requests, &mut outcome).await?;
    side.messages.end_all(replies.messages).await?;
    Ok(outcome.failure.map_or(Ok(outcome.bytes), Err))
}

/// Sends this rank's requests of a round to aggregators, and posts receives for the data. Returns the window that this rank itself
/// aggregates.
fn send_requests<F: Fabric>(
    side: &TwoPhaseAccess<'_, F>,
    round: u64,
) -> (Option<ByteRange>, PendingRequests) {
    let (messages, mut mine, mut requests) = (&side.messages, None, PendingRequests::default());
    for (aggregator, window) in side.domains.windows(round) {
        if aggregator == messages.rank() {
            mine = Some(window);
            continue;
        }
        let Some(part) = side.part(window) else { continue };
        messages.send_head(aggregator, &part.runs, &mut requests.heads);
        if part.runs.bytes() > 0 {
            let result = messages.receive_result(aggregator);
            requests.answers.push((result, messages.receive_read(aggregator, part.data)));
        }
    }
    (mine, requests)
}

/// Receives the data that this rank requested.
async fn receive_answers<F: Fabric>(
    side: &TwoPhaseAccess<'_, F>,
    requests: PendingRequests,
    outcome: &mut PieceResult,
) -> Result<(), Error> {
    for (result, data) in requests.answers {
        let result = side.messages.end_result(result).await?;
        side.messages.end(data).await?;
        outcome.add(result);
    }
    side.messages.end_all(requests.heads).await
}

/// Receives the requests of all ranks for a window, and begins to read the window.
async fn begin<F: Fabric>(
    side: &TwoPhaseAccess<'_, F>,
    window: ByteRange,
) -> Result<Option<ActiveRead>, Error> {
    let TwoPhaseAccess { open, messages, .. } = side;
    let direction = AccessDirection::Read;
    let all = side.contributions(window).await?;
    let Some(range) = hull(all.iter().map(|contribution| &contribution.runs)) else {
        return Ok(None);
    };
    let policy = open.access_policy(direction);
    let sum =
        |f: fn(&StridedRuns) -> u64| all.iter().map(|contribution| f(&contribution.runs)).sum();
    let separate =
        policy.costs.separate_cost(direction, sum(StridedRuns::pieces), sum(StridedRuns::bytes));
    let sieved = policy.costs.sieved_cost(direction, range.len());
    let buffer = messages.stage(if sieved < separate { range.len() as usize } else { 0 });
    let (mut ranks, mut places, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
    for Contribution { rank, runs, own } in all {
        // This rank's own data go directly to their place.
        let place = own.is_none().then(|| messages.stage(runs.bytes() as usize));
        let data = own.or(place.as_ref().map(Staging::sge)).unwrap_or(Sge::EMPTY).into();
        ranks.push(rank);
        places.push(place);
        pieces.push(ReadPieces { runs, data });
    }
    let storage = open.storage.clone();
    let first = range.first;
    let read = WindowRead { storage, pieces, first, buffer: buffer.sge().into(), policy };
    let run_on = open.run_on(sieved.min(separate), side.window_synchronism());
    let stale_cache = open.has_host_caches().then(|| open.kind());
    let job = open.pool.start(run_on, move || {
        // Before ranks on other hosts sent their requests, they published their own writes. So it is enough to revalidate this
        // host's cache.
        if let Some(kind) = stale_cache {
            kind.revalidate(&*read.storage);
        }
        read.run()
    });
    Ok(Some(ActiveRead { job, ranks, places, _buffer: buffer }))
}

/// Waits until a window is read, and sends each rank its pieces.
async fn send_replies<F: Fabric>(
    side: &TwoPhaseAccess<'_, F>,
    active: ActiveRead,
    outcome: &mut PieceResult,
) -> Result<PendingReplies, Error> {
    let ActiveRead { job, ranks, places, .. } = active;
    let mut messages = Vec::new();
    let results = side.open.pool.end(job).await?;
    for ((&rank, place), result) in ranks.iter().zip(&places).zip(results) {
        match place {
            None => outcome.add(result),
            Some(place) => {
                let data = place.sge().part(0, result.bytes as usize);
                messages.push(side.messages.send_result(rank, result));
                messages.push(side.messages.send_read(rank, data));
            }
        }
    }
    Ok(PendingReplies { messages, _places: places })
}
