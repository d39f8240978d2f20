//! Collective writes: aggregators receive the data of windows, and write a window while the next window is exchanged.

use super::aggregator_messages::{PendingMessage, PieceResult};
use super::coverage::covers;
use super::{AccessResult, Contribution, TwoPhaseAccess, hull, publish};
use crate::access_direction::AccessDirection;
use crate::access_memory::AccessMemory;
use crate::access_policy::{AccessPolicy, Synchronism};
use crate::byte_range::ByteRange;
use crate::data_sieving::{self, write_contiguous, write_sieved};
use crate::failure::FileFailure;
use crate::hints::Sieving;
use crate::storage::disk::FileSystemKind;
use crate::storage::{Storage, WriteGuard};
use crate::strided_copy::spread;
use crate::strided_runs::StridedRuns;
use crate::thread_pool::{FileJob, RunOn};
use std::sync::Arc;
use weft_fabric::{Fabric, Staging};
use weft_process::Error;

/// One rank's pieces in a window.
struct WritePieces {
    runs: StridedRuns,
    /// Data of the pieces. `None`: the data were received directly into the window's buffer.
    data: Option<AccessMemory>,
}

/// A job that writes a window.
struct WindowWrite {
    storage: Arc<dyn Storage>,
    pieces: Vec<WritePieces>,
    first: u64,
    buffer: AccessMemory,
    method: WriteMethod,
    policy: AccessPolicy,
}

/// Method of writing a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteMethod {
    /// The window has no gaps, and is written by one call.
    Contiguous,
    /// The window is read, changed and written.
    Sieved,
    /// The pieces are written separately.
    Separate,
}

impl WriteMethod {
    fn of(all: &[Contribution], range: ByteRange, policy: &AccessPolicy) -> WriteMethod {
        let AccessPolicy { sieving, costs, guard, .. } = policy;
        let runs = || all.iter().map(|contribution| &contribution.runs);
        if covers(runs, range) {
            return WriteMethod::Contiguous;
        }
        let direction = AccessDirection::Write;
        let sum = |f: fn(&StridedRuns) -> u64| runs().map(f).sum();
        let separate =
            costs.separate_cost(direction, sum(StridedRuns::pieces), sum(StridedRuns::bytes));
        // With contiguous views there is no guard, because no rank reads and writes back gaps.
        let allowed = *guard != WriteGuard::None && *sieving != Sieving::Off;
        match allowed && costs.sieved_cost(direction, range.len()) < separate {
            true => WriteMethod::Sieved,
            false => WriteMethod::Separate,
        }
    }
}

impl WindowWrite {
    /// Writes the window. Returns each rank's failure in the order of the pieces.
    fn run(self) -> Vec<Option<FileFailure>> {
        let WindowWrite { storage, first, buffer, policy, .. } = &self;
        let fill = |buffer: &mut [u8]| self.fill(buffer);
        let done = match self.method {
            WriteMethod::Separate => Ok(false),
            WriteMethod::Contiguous => buffer
                .write(|buffer| write_contiguous(&**storage, policy.guard, *first, buffer, fill))
                .map(|()| true),
            WriteMethod::Sieved => {
                buffer.write(|buffer| write_sieved(&**storage, policy.guard, *first, buffer, fill))
            }
        };
        let failure = match done {
            Ok(true) => None,
            // The pieces were not received into the window's buffer, so they can be written separately from their own memory.
            Ok(false) => {
                return self.pieces.iter().map(|pieces| self.write_separately(pieces)).collect();
            }
            Err(failure) => Some(failure),
        };
        // The bytes before the place of the failure have been written.
        let end = |pieces: &WritePieces| pieces.runs.bounds().map_or(0, |range| range.end);
        let each = |pieces| failure.filter(|failure| end(pieces) > failure.offset);
        self.pieces.iter().map(each).collect()
    }

    /// Writes the window and publishes it to other hosts. A failure to publish is a failure of all ranks.
    fn run_and_publish(self, kind: FileSystemKind) -> Vec<Option<FileFailure>> {
        let storage = self.storage.clone();
        let each = self.run();
        let lost = publish(&*storage, kind).err();
        each.into_iter().map(|failure| failure.or(lost)).collect()
    }

    /// Copies the pieces into the window's buffer.
    fn fill(&self, buffer: &mut [u8]) {
        for WritePieces { runs, data } in &self.pieces {
            if let Some(data) = data {
                data.read(|data| spread(runs.list(), self.first, data, buffer));
            }
        }
    }

    fn write_separately(&self, WritePieces { runs, data }: &WritePieces) -> Option<FileFailure> {
        data_sieving::write(&*self.storage, runs, (*data)?, &self.policy).err()
    }
}

/// A window that a thread writes.
struct ActiveWrite {
    job: FileJob<Vec<Option<FileFailure>>>,
    ranks: Vec<usize>,
    /// Memory that the thread uses.
    _staging: (Staging, Vec<Staging>),
}

/// This rank's messages as a writer and as an aggregator, and the failure of this rank's own data.
#[derive(Default)]
struct WriteExchange {
    sends: Vec<PendingMessage>,
    results: Vec<PendingMessage>,
    own_failure: Option<FileFailure>,
}

/// Runs this rank's side of a write.
pub async fn run<F: Fabric>(side: &TwoPhaseAccess<'_, F>) -> Result<AccessResult, Error> {
    let mut active = None;
    let done = all_rounds(side, &mut active).await;
    // Even after an error, this rank waits for the thread. Otherwise the thread might read data that the program already changes.
    if let Some(left) = active {
        side.open.pool.end(left.job).await?;
    }
    done
}

async fn all_rounds<F: Fabric>(
    side: &TwoPhaseAccess<'_, F>,
    active: &mut Option<ActiveWrite>,
) -> Result<AccessResult, Error> {
    let messages = &side.messages;
    let mut exchange = WriteExchange::default();
    for round in 0..side.domains.rounds() {
        let mut mine = None;
        for (aggregator, window) in side.domains.windows(round) {
            if aggregator == messages.rank() {
                mine = Some(window);
                continue;
            }
            let Some(part) = side.part(window) else { continue };
            messages.send_head(aggregator, &part.runs, &mut exchange.sends);
            if part.runs.bytes() > 0 {
                exchange.sends.push(messages.send_data(aggregator, part.data));
                exchange.results.push(messages.receive_result(aggregator));
            }
        }
        if let Some(window) = mine {
            let next = collect(side, window).await?;
            if let Some(before) = std::mem::replace(active, next) {
                send_results(side, before, &mut exchange).await?;
            }
        }
    }
    if let Some(last) = active.take() {
        send_results(side, last, &mut exchange).await?;
    }
    messages.end_all(exchange.sends).await?;
    let mut outcome = exchange.own_failure.map_or(Ok(side.access.len), Err);
    for result in exchange.results {
        if let Some(failure) = messages.end_result(result).await?.failure {
            outcome = outcome.and(Err(failure));
        }
    }
    Ok(outcome)
}

/// Receives the pieces of a window, and begins to write the window.
async fn collect<F: Fabric>(
    side: &TwoPhaseAccess<'_, F>,
    window: ByteRange,
) -> Result<Option<ActiveWrite>, Error> {
    let TwoPhaseAccess { open, messages, .. } = side;
    let all = side.contributions(window).await?;
    let Some(range) = hull(all.iter().map(|contribution| &contribution.runs)) else {
        return Ok(None);
    };
    let policy = open.access_policy(AccessDirection::Write);
    let count: u64 = all.iter().map(|contribution| contribution.runs.pieces()).sum();
    let method = WriteMethod::of(&all, range, &policy);
    let len = if method == WriteMethod::Separate { 0 } else { range.len() };
    let buffer = messages.stage(len as usize);
    let (mut ranks, mut receives, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
    let mut direct: Vec<ByteRange> = Vec::new();
    for Contribution { rank, runs, own } in all {
        ranks.push(rank);
        if let Some(data) = own {
            // This rank's own data are written from where they lie, because the program does not change them until the access is
            // complete.
            pieces.push(WritePieces { runs, data: Some(data.into()) });
            continue;
        }
        // Pieces that overlap an earlier piece are received elsewhere: two receives must not write to the same memory at the same
        // time.
        let place = runs.bounds().filter(|place| {
            method == WriteMethod::Contiguous
                && runs.pieces() == 1
                && direct.iter().all(|other| !other.overlaps(*place))
        });
        if let Some(place) = place {
            let at = (place.first - range.first) as usize;
            let data = buffer.sge().part(at, place.len() as usize);
            receives.push(messages.receive_data(rank, data, None));
            direct.push(place);
            pieces.push(WritePieces { runs, data: None });
        } else {
            let staging = messages.stage(runs.bytes() as usize);
            pieces.push(WritePieces { runs, data: Some(staging.sge().into()) });
            receives.push(messages.receive_data(rank, staging.sge(), Some(staging)));
        }
    }
    let mut staging = Vec::new();
    for receive in receives {
        staging.extend(messages.end(receive).await?);
    }
    let (storage, first) = (open.storage.clone(), range.first);
    let write = WindowWrite { storage, pieces, first, buffer: buffer.sge().into(), method, policy };
    let run_on = side.write_on(method, count, range, &policy);
    let host_caches = open.has_host_caches().then(|| open.kind());
    let job = open.pool.start(run_on, move || match host_caches {
        None => write.run(),
        Some(kind) => write.run_and_publish(kind),
    });
    Ok(Some(ActiveWrite { job, ranks, _staging: (buffer, staging) }))
}

impl<F: Fabric> TwoPhaseAccess<'_, F> {
    /// Chooses the thread that writes a window of `count` pieces.
    fn write_on(
        &self,
        method: WriteMethod,
        count: u64,
        range: ByteRange,
        policy: &AccessPolicy,
    ) -> RunOn {
        let synchronism = self.window_synchronism();
        if method == WriteMethod::Sieved && synchronism == Synchronism::Nonblocking {
            // The write may have to wait for another writer in the gaps.
            return RunOn::Thread;
        }
        let calls = if method == WriteMethod::Separate { count } else { 1 };
        let write = policy.costs.separate_cost(AccessDirection::Write, calls, range.len());
        self.open.run_on(write + count as f64 * policy.costs.piece, synchronism)
    }
}

/// Waits until a window is written, and sends the ranks their results. Keeps the first failure of this rank's own data.
async fn send_results<F: Fabric>(
    side: &TwoPhaseAccess<'_, F>,
    active: ActiveWrite,
    exchange: &mut WriteExchange,
) -> Result<(), Error> {
    let ActiveWrite { job, ranks, _staging } = active;
    let failures = side.open.pool.end(job).await?;
    for (&rank, failure) in ranks.iter().zip(failures) {
        match rank == side.messages.rank() {
            true => exchange.own_failure = exchange.own_failure.or(failure),
            false => {
                let result = PieceResult { bytes: 0, failure };
                exchange.sends.push(side.messages.send_result(rank, result));
            }
        }
    }
    Ok(())
}
