//! The sender: each partition is a message.

use super::{Handshake, not_cancelled, within};
use crate::comm::PARTITIONED;
use crate::{
    Active, Buffer, Comm, Destination, Error, Executor, External, OperationOutcome, class,
};
use std::cell::RefCell;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_p2p::{MatchingContext, SendMode, Status};

/// The sender's request (MPI_Psend_init).
pub struct PartitionedSend<F: Fabric> {
    comm: Rc<Comm<F>>,
    /// All partitions.
    buffer: Buffer,
    partitions: usize,
    to: Destination,
    context: MatchingContext,
    /// The round under way. `None` while the request is not active.
    round: RefCell<Option<Sending>>,
}

/// A round, from its start until a call of the program finds that the round is complete.
struct Sending {
    ready: Vec<bool>,
    /// Number of partitions that are not ready.
    missing: usize,
    /// Messages that have not left.
    under_way: Vec<Active>,
}

impl<F: Fabric> PartitionedSend<F> {
    /// Makes the request, and sends the handshake. Local. `buffer` holds all partitions, so its number of elements is a multiple of
    /// `partitions`.
    pub fn new(
        comm: &Rc<Comm<F>>,
        buffer: Buffer,
        partitions: usize,
        to: Destination,
        tag: i32,
    ) -> Rc<PartitionedSend<F>> {
        assert!(partitions > 0 && buffer.count().is_multiple_of(partitions));
        let context = MatchingContext(PARTITIONED | comm.engine().new_context() << 1 | 1);
        if let Destination::Rank(to) = to {
            greet(comm, Handshake { partitions, bytes: buffer.len(), context }, to, tag);
        }
        let (comm, round) = (comm.clone(), RefCell::new(None));
        Rc::new(PartitionedSend { comm, buffer, partitions, to, context, round })
    }

    /// Begins a round, in which no partition is ready (MPI_Start).
    pub fn start(self: &Rc<Self>) -> Active {
        *self.round.borrow_mut() = Some(Sending {
            ready: vec![false; self.partitions],
            missing: self.partitions,
            under_way: Vec::new(),
        });
        Active::External(self.clone())
    }

    /// Sends a partition (MPI_Pready).
    pub fn ready(&self, partition: i32) -> Result<(), Error> {
        let partition = within(partition, self.partitions, "partition")?;
        let mut round = self.round.borrow_mut();
        let round = round.as_mut().ok_or_else(inactive)?;
        if round.ready[partition] {
            return Err(marked(partition, "partition"));
        }
        self.mark(round, partition);
        Ok(())
    }

    /// Sends the partitions from `low` to `high`, both included (MPI_Pready_range).
    pub fn ready_range(&self, low: i32, high: i32) -> Result<(), Error> {
        let first = within(low, self.partitions, "partition_low")?;
        let last = within(high, self.partitions, "partition_high")?;
        if first > last {
            let text = format!(
                "argument partition_low = {low} is above partition_high = {high}: the range has at \
                 least one partition"
            );
            return Err(Error::new(class::ARG, text));
        }
        let mut round = self.round.borrow_mut();
        let round = round.as_mut().ok_or_else(inactive)?;
        if let Some(again) = (first..=last).find(|&p| round.ready[p]) {
            return Err(marked(again, "the range: partition"));
        }
        (first..=last).for_each(|p| self.mark(round, p));
        Ok(())
    }

    /// Sends the partitions of a list (MPI_Pready_list).
    pub fn ready_list(&self, list: &[i32]) -> Result<(), Error> {
        let mut round = self.round.borrow_mut();
        let round = round.as_mut().ok_or_else(inactive)?;
        let mut partitions = Vec::with_capacity(list.len());
        // Each partition is marked right after its check, so that a partition that is listed twice is found. After an error, no
        // partition of the list stays marked.
        let failed = list.iter().enumerate().find_map(|(i, &partition)| {
            let name = format!("array_of_partitions[{i}]");
            let partition = match within(partition, self.partitions, &name) {
                Ok(partition) => partition,
                Err(error) => return Some(error),
            };
            if std::mem::replace(&mut round.ready[partition], true) {
                return Some(marked(partition, &name));
            }
            partitions.push(partition);
            None
        });
        if let Some(error) = failed {
            partitions.into_iter().for_each(|p| round.ready[p] = false);
            return Err(error);
        }
        partitions.into_iter().for_each(|p| self.mark(round, p));
        Ok(())
    }

    fn mark(&self, round: &mut Sending, partition: usize) {
        round.ready[partition] = true;
        round.missing -= 1;
        let each = self.buffer.count() / self.partitions;
        let part = self.buffer.block((each * partition) as i64, each);
        if let Destination::Rank(to) = self.to {
            let target = self.comm.target_in(self.context, to, partition as i32);
            let active = self.comm.isend_to(target, &part, SendMode::Standard);
            if !matches!(active, Active::Done(_)) {
                round.under_way.push(active);
            }
        }
        if round.missing == 0 && round.under_way.is_empty() {
            // A thread that waits for the end of the round may be asleep.
            self.comm.engine().endpoint().fabric().sleeper().ring();
        }
    }
}

#[cold]
fn inactive() -> Error {
    let text = "the request is not active: MPI_Start comes before MPI_Pready";
    Error::new(class::REQUEST, text)
}

#[cold]
fn marked(partition: usize, argument: &str) -> Error {
    let text = format!(
        "argument {argument} = {partition} has been marked ready since MPI_Start: once a round"
    );
    Error::new(class::ARG, text)
}

impl<F: Fabric> External for PartitionedSend<F> {
    fn poll(&self) -> Option<OperationOutcome> {
        let mut slot = self.round.borrow_mut();
        let round = slot.as_mut()?;
        let endpoint = self.comm.engine().endpoint();
        let mut error = None;
        while let Some(last) = round.under_way.last_mut() {
            error = last.poll(endpoint)?.error;
            if error.is_some() {
                break;
            }
            round.under_way.pop();
        }
        let fault = || endpoint.fault().map(Error::from);
        let error = if round.missing > 0 { Some(error.or_else(fault)?) } else { error };
        *slot = None;
        Some(OperationOutcome { status: Status::default(), error })
    }

    fn is_over(&self) -> bool {
        let endpoint = self.comm.engine().endpoint();
        let round = self.round.borrow();
        let sent = |round: &Sending| {
            round.missing == 0
                && round.under_way.iter().all(|active| active.looks_over(endpoint, false))
        };
        round.as_ref().is_none_or(sent) || endpoint.fault().is_some()
    }

    fn peek(&self) -> Option<OperationOutcome> {
        self.is_over().then(OperationOutcome::done)
    }

    fn cancel(&self) -> Result<(), Error> {
        Err(not_cancelled())
    }
}

/// Sends a handshake. Does not wait until the handshake has left.
fn greet<F: Fabric>(comm: &Rc<Comm<F>>, handshake: Handshake, to: usize, tag: i32) {
    let engine = comm.engine();
    let memory = engine.endpoint().staging().take(Handshake::LEN);
    memory.sge().fill(&handshake.encode());
    let target = comm.target_in(comm.handshakes(), to, tag);
    if let Some(id) = engine.endpoint().isend(target, memory.sge(), SendMode::Standard) {
        let endpoint = engine.endpoint().clone();
        engine.spawn_by(Executor::Anybody, async move {
            let _kept_until_sent = memory;
            endpoint.wait(id).await?;
            Ok(())
        });
    }
}
