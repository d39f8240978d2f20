//! Collective reads: aggregators read windows, and hand each rank what it asked for.

use super::message::Post;
use super::{Moved, Side};
use crate::bytes::Memory;
use crate::core::Direction;
use crate::failure::Failure;
use crate::pool::Started;
use crate::storage::{Storage, read_whole};
use crate::strided_copy::gather;
use crate::strided_runs::StridedRuns;
use crate::transfer::{self, Manner};
use std::sync::Arc;
use weft_fabric::{Fabric, Sge, Staging};
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

/// A window that is read for others, and for this rank.
struct Reading {
    job: Started<Vec<Fate>>,
    /// Whose pieces they are, in their order.
    ranks: Vec<usize>,
    /// Where they come, of others.
    places: Vec<Option<Staging>>,
    _buffer: Staging,
}

/// What was asked for in a round.
#[derive(Default)]
struct Asked {
    heads: Vec<Post>,
    answers: Vec<(Post, Post)>,
}

/// What others are sent, until they have it.
#[derive(Default)]
struct Sent {
    posts: Vec<Post>,
    _places: Vec<Option<Staging>>,
}

/// A window is read by a thread while the next one is asked for, and the one before is handed out.
pub async fn run<F: Fabric>(side: &Side<'_, F>) -> Result<Moved, Error> {
    let mut reading = None;
    let done = all_rounds(side, &mut reading).await;
    // Whatever went wrong: its thread writes to memory that is the program's again after this.
    if let Some(left) = reading {
        side.core.pool.end(left.job).await?;
    }
    done
}

async fn all_rounds<F: Fabric>(
    side: &Side<'_, F>,
    reading: &mut Option<Reading>,
) -> Result<Moved, Error> {
    let (mut outcome, mut asked) = (Ok(0), Asked::default());
    let mut sent = Sent::default();
    for round in 0..side.domains.rounds() {
        let (mine, next) = ask(side, round);
        let begun = match mine {
            Some(window) => begin(side, window).await?,
            None => None,
        };
        if let Some(before) = std::mem::replace(reading, begun) {
            let last = hand_out(side, before, &mut outcome).await?;
            // Whoever gets the window before has asked for it long since.
            side.line.end_all(std::mem::replace(&mut sent, last).posts).await?;
        }
        let before = std::mem::replace(&mut asked, next);
        take(side, before, &mut outcome).await?;
    }
    if let Some(last) = reading.take() {
        let last = hand_out(side, last, &mut outcome).await?;
        side.line.end_all(std::mem::replace(&mut sent, last).posts).await?;
    }
    take(side, asked, &mut outcome).await?;
    side.line.end_all(sent.posts).await?;
    Ok(outcome)
}

fn add(outcome: &mut Moved, (come, failure): Fate) {
    match (&mut *outcome, failure) {
        (Ok(sum), None) => *sum += come,
        (Ok(_), Some(failure)) => *outcome = Err(failure),
        (Err(_), _) => {}
    }
}

/// Tells the others' aggregators what this rank wants of a round, and makes room for it; this rank's own window.
fn ask<F: Fabric>(side: &Side<'_, F>, round: u64) -> (Option<(u64, u64)>, Asked) {
    let (line, mut mine, mut asked) = (&side.line, None, Asked::default());
    for (aggregator, window) in side.domains.windows(round) {
        if aggregator == line.rank() {
            mine = Some(window);
            continue;
        }
        let Some(part) = side.part(window) else { continue };
        line.send_head(aggregator, &part.runs, &mut asked.heads);
        if part.runs.bytes() > 0 {
            let fate = line.receive_fate(aggregator);
            asked.answers.push((fate, line.receive_read(aggregator, part.data)));
        }
    }
    (mine, asked)
}

/// Takes what was asked for.
async fn take<F: Fabric>(
    side: &Side<'_, F>,
    asked: Asked,
    outcome: &mut Moved,
) -> Result<(), Error> {
    for (fate, data) in asked.answers {
        let (failure, come) = side.line.end_fate(fate).await?;
        side.line.end(data).await?;
        add(outcome, (come, failure));
    }
    side.line.end_all(asked.heads).await
}

/// Learns what all want of a window, and begins to read it.
async fn begin<F: Fabric>(
    side: &Side<'_, F>,
    window: (u64, u64),
) -> Result<Option<Reading>, Error> {
    let Side { core, line, .. } = side;
    let all = side.wanted(window).await?;
    let hulls = || all.iter().filter_map(|(_, runs, _)| runs.bounds());
    let (Some(first), Some(end)) = (hulls().map(|h| h.0).min(), hulls().map(|h| h.1).max()) else {
        return Ok(None);
    };
    let manner = core.manner(Direction::Read);
    let sum = |f: fn(&StridedRuns) -> u64| all.iter().map(|(_, runs, _)| f(runs)).sum();
    let apart = manner.costs.reads(sum(StridedRuns::pieces), sum(StridedRuns::bytes));
    let whole = manner.costs.read_sieved(end - first) < apart;
    let buffer = line.stage(if whole { (end - first) as usize } else { 0 });
    let (mut ranks, mut places, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
    for (rank, runs, own) in all {
        // What this rank wants goes straight to its place.
        let place = own.is_none().then(|| line.stage(runs.bytes() as usize));
        let to = own.or(place.as_ref().map(Staging::sge)).unwrap_or(Sge::EMPTY);
        ranks.push(rank);
        places.push(place);
        pieces.push((runs, to.into()));
    }
    let (storage, bounds) = (core.storage.clone(), (first, end));
    let read = Read { storage, pieces, bounds, buffer: buffer.sge().into(), manner };
    let cost = if whole { manner.costs.read_sieved(end - first) } else { apart };
    let quick = core.is_quick(cost, side.beside || side.domains.rounds() > 1);
    let apart = core.is_kept_apart().then(|| core.kind());
    let job = core.pool.start(quick, move || {
        // What ranks of other hosts wrote alone, they have handed over before they asked.
        if let Some(kind) = apart {
            kind.look_anew(&*read.storage);
        }
        read.run()
    });
    Ok(Some(Reading { job, ranks, places, _buffer: buffer }))
}

/// Waits for a window, and sends each rank its pieces.
async fn hand_out<F: Fabric>(
    side: &Side<'_, F>,
    reading: Reading,
    outcome: &mut Moved,
) -> Result<Sent, Error> {
    let Reading { job, ranks, places, .. } = reading;
    let mut posts = Vec::new();
    for ((&rank, place), fate) in ranks.iter().zip(&places).zip(side.core.pool.end(job).await?) {
        let (come, failure) = fate;
        match place {
            None => add(outcome, fate),
            Some(place) => {
                posts.push(side.line.send_fate(rank, failure, come));
                posts.push(side.line.send_read(rank, place.sge().part(0, come as usize), None));
            }
        }
    }
    Ok(Sent { posts, _places: places })
}
