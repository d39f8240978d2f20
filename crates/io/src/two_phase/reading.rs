//! Collective reads: aggregators read windows, and hand each rank what it asked for.

use super::{Moved, Side};
use crate::bytes::Memory;
use crate::core::Direction;
use crate::failure::Failure;
use crate::storage::{Storage, read_whole};
use crate::strided_copy::gather;
use crate::strided_runs::StridedRuns;
use crate::transfer::{self, Manner};
use std::sync::Arc;
use weft_fabric::{Fabric, Staging};
use weft_process::Error;

/// Bytes of a rank's that were found, and the failure that kept others away.
type Fate = (u64, Option<Failure>);

/// A window that is read, with the places that its pieces go to.
struct Read {
    storage: Arc<dyn Storage>,
    pieces: Vec<(StridedRuns, Memory)>,
    bounds: (u64, u64),
    /// Of a read of the whole window; empty if the pieces are read apart.
    buffer: Memory,
    manner: Manner,
}

impl Read {
    fn run(self) -> Vec<Fate> {
        let storage = &*self.storage;
        if self.buffer.len() == 0 {
            let each = |(runs, data): &(StridedRuns, Memory)| match transfer::read(
                storage,
                runs,
                *data,
                &self.manner,
            ) {
                Ok(come) => (come, None),
                Err(failure) => (0, Some(failure)),
            };
            return self.pieces.iter().map(each).collect();
        }
        let first = self.bounds.0;
        let (had, failure) = match self.buffer.write(|buffer| read_whole(storage, first, buffer)) {
            Ok(had) => (had, None),
            Err(failure) => ((failure.offset - first) as usize, Some(failure)),
        };
        let each = |(runs, data): &(StridedRuns, Memory)| {
            let come = self
                .buffer
                .part(0, had)
                .read(|whole| data.write(|data| gather(runs.list(), first, whole, data)));
            (come, failure.filter(|_| come < runs.bytes()))
        };
        self.pieces.iter().map(each).collect()
    }
}

pub async fn run<F: Fabric>(side: &Side<'_, F>) -> Result<Moved, Error> {
    let line = &side.line;
    let (mut sends, mut kept, mut outcome) = (Vec::new(), Vec::new(), Ok(0));
    for round in 0..side.domains.rounds() {
        let (mut mine, mut awaited) = (None, Vec::new());
        for (aggregator, window) in side.domains.windows(round) {
            if aggregator == line.rank() {
                mine = Some(window);
            }
            let Some(part) = side.part(window) else { continue };
            line.send_head(aggregator, &part.runs, &mut sends);
            if part.runs.bytes() > 0 {
                let fate = line.receive_fate(aggregator);
                awaited.push((fate, line.receive_read(aggregator, part.data), part.data.len()));
            }
        }
        if let Some(window) = mine {
            kept.push(serve(side, window, &mut sends).await?);
        }
        for (fate, data, _) in awaited {
            let (failure, come) = line.end_fate(fate).await?;
            line.end(data).await?;
            outcome = match (outcome, failure) {
                (Ok(sum), None) => Ok(sum + come),
                (Ok(_), Some(failure)) => Err(failure),
                (Err(first), _) => Err(first),
            };
        }
        line.end_all(sends.drain(..)).await?;
        kept.clear();
    }
    Ok(outcome)
}

/// Reads a window and sends each rank its pieces; what they are sent from, until they are sent.
async fn serve<F: Fabric>(
    side: &Side<'_, F>,
    window: (u64, u64),
    sends: &mut Vec<super::message::Post>,
) -> Result<Vec<Staging>, Error> {
    let Side { core, line, .. } = side;
    let from = side.contributors(window);
    let heads = line.receive_heads(&from).await?;
    let (ranks, runs): (Vec<usize>, Vec<StridedRuns>) =
        from.into_iter().zip(heads).filter(|(_, runs)| runs.bytes() > 0).unzip();
    let hulls = || runs.iter().filter_map(StridedRuns::bounds);
    let (Some(first), Some(end)) = (hulls().map(|h| h.0).min(), hulls().map(|h| h.1).max()) else {
        return Ok(Vec::new());
    };
    let manner = core.manner(Direction::Read);
    let all = |f: fn(&StridedRuns) -> u64| runs.iter().map(f).sum();
    let apart = manner.costs.reads(all(StridedRuns::pieces), all(StridedRuns::bytes));
    let whole = manner.costs.read_sieved(end - first) < apart;
    let buffer = line.stage(if whole { (end - first) as usize } else { 0 });
    let places: Vec<Staging> = runs.iter().map(|t| line.stage(t.bytes() as usize)).collect();
    let pieces = runs.into_iter().zip(&places).map(|(t, place)| (t, place.sge().into())).collect();
    let (storage, bounds) = (core.storage.clone(), (first, end));
    let read = Read { storage, pieces, bounds, buffer: buffer.sge().into(), manner };
    let cost = if whole { manner.costs.read_sieved(end - first) } else { apart };
    let fates = core.pool.run(core.is_quick(cost, side.beside), move || read.run()).await?;
    for ((&rank, place), (come, failure)) in ranks.iter().zip(&places).zip(fates) {
        sends.push(line.send_fate(rank, failure, come));
        sends.push(line.send_read(rank, place.sge().part(0, come as usize), None));
    }
    Ok(places)
}
