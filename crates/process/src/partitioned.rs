//! Partitioned communication (MPI 5.0, chapter 4): one message in parts that become ready one by one.
//!
//! ```text
//!   MPI_Psend_init ── greeting: 3 partitions, 12 bytes, context C ──▶ MPI_Precv_init
//!
//!   sender, 3 partitions of 4 bytes             receiver, 2 partitions of 6 bytes
//!     ┌────┐ MPI_Pready(0)
//!     │ 0  │ ─────────── tag 0 in context C ─────▶ bytes 0..4  ┐ partition 0 has arrived when
//!     ├────┤                                                   │ messages 0 and 1 have
//!     │ 1  │ ─────────── tag 1 ──────────────────▶ bytes 4..8  ┤
//!     ├────┤                                                   │ partition 1: messages 1 and 2
//!     │ 2  │ ─────────── tag 2 ──────────────────▶ bytes 8..12 ┘
//!     └────┘
//! ```
//! Each partition of the sender is a message, which leaves when it is marked ready. `MPI_Start` of the
//! receiver posts a receive for each of them at its place in the buffer: so they land there directly,
//! eager or by rendezvous, in whatever order they come and however the receiver divides the buffer. If
//! its datatype has gaps, they land beside it and are unpacked one by one.
//!
//! The two sides find each other by the greeting alone. It travels in a matching space of the
//! communicator's own for that, so that it meets greetings only, and those of one sender and tag in
//! the order in which the requests were made. It names the context of the messages, which is this
//! pair's alone: `MPI_ANY_TAG` elsewhere takes none of them, and a partition's number is its tag.
//!
//! Cost: one small message a pair when it is made, then one message and one posted receive a
//! partition and round. A partition is looked up by its number in the order of posting: many thousand
//! of them, marked in reverse, are searched for long.

use crate::buffer::Piece;
use crate::messages::NOBODY;
use crate::{Active, Buffer, By, Comm, Destination, Error, External, Outcome, Task, class};
use std::cell::RefCell;
use std::rc::Rc;
use weft_fabric::{Counter, Fabric, Sge, Staging};
use weft_p2p::{Context, Endpoint, Mode, RequestId, Status, Want};

/// In contexts of greetings and of partitions. Ranks, in the bits below, do not reach it.
pub(crate) const PARTITIONED: u64 = 1 << 63;

/// What the sender says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Greeting {
    partitions: usize,
    /// Of all partitions together.
    bytes: usize,
    /// Of the messages.
    context: Context,
}

impl Greeting {
    const LEN: usize = 24;

    fn encode(self) -> [u8; Greeting::LEN] {
        let mut bytes = [0; Greeting::LEN];
        let words = [self.partitions as u64, self.bytes as u64, self.context.0];
        for (at, word) in bytes.chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// `None` if it makes no sense.
    fn decode(bytes: &[u8; Greeting::LEN]) -> Option<Greeting> {
        let word = |i: usize| u64::from_ne_bytes(bytes[8 * i..][..8].try_into().expect("8 bytes"));
        let (partitions, bytes, context) = (word(0), word(1), word(2));
        let sound = (1..=i32::MAX as u64).contains(&partitions)
            && bytes.is_multiple_of(partitions)
            && bytes <= isize::MAX as u64
            && context & PARTITIONED != 0;
        sound.then_some(Greeting {
            partitions: partitions as usize,
            bytes: bytes as usize,
            context: Context(context),
        })
    }
}

impl<F: Fabric> Comm<F> {
    /// Where greetings meet.
    fn greetings(&self) -> Context {
        Context(self.context().0 | PARTITIONED)
    }
}

/// A partition that there is.
fn within(partition: i32, partitions: usize, argument: &str) -> Result<usize, Error> {
    let found = usize::try_from(partition).ok().filter(|&p| p < partitions);
    found.ok_or_else(|| {
        let last = partitions - 1;
        let text = format!("argument {argument} = {partition}: partitions are 0 to {last}");
        Error::new(class::ARG, text)
    })
}

fn not_cancelled() -> Error {
    let text = "partitioned communication cannot be cancelled (MPI 5.0, section 4.2.1)";
    Error::new(class::REQUEST, text)
}

// ---- sender -----------------------------------------------------------------------------------

/// The sender's request (MPI_Psend_init).
pub struct PartitionedSend<F: Fabric> {
    comm: Rc<Comm<F>>,
    /// All partitions.
    buffer: Buffer,
    partitions: usize,
    to: Destination,
    context: Context,
    /// `None` while it is not active.
    round: RefCell<Option<Sending>>,
}

/// From a start to the end that a wait finds.
struct Sending {
    ready: Vec<bool>,
    /// Partitions that are not ready.
    missing: usize,
    /// Messages that have not left.
    under_way: Vec<Active>,
}

impl<F: Fabric> PartitionedSend<F> {
    /// Local, but it sends the greeting. `buffer` holds all partitions, a multiple of `partitions`
    /// elements.
    pub fn new(
        comm: &Rc<Comm<F>>,
        buffer: Buffer,
        partitions: usize,
        to: Destination,
        tag: i32,
    ) -> Rc<PartitionedSend<F>> {
        assert!(partitions > 0 && buffer.count().is_multiple_of(partitions));
        let context = Context(PARTITIONED | comm.engine().new_context() << 1 | 1);
        if let Destination::Rank(to) = to {
            greet(comm, Greeting { partitions, bytes: buffer.len(), context }, to, tag);
        }
        let (comm, round) = (comm.clone(), RefCell::new(None));
        Rc::new(PartitionedSend { comm, buffer, partitions, to, context, round })
    }

    /// Begins a round: no partition is ready (MPI_Start).
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
        let mut seen = round.ready.clone();
        for (i, &partition) in list.iter().enumerate() {
            let name = format!("array_of_partitions[{i}]");
            let partition = within(partition, self.partitions, &name)?;
            if std::mem::replace(&mut seen[partition], true) {
                return Err(marked(partition, &name));
            }
            partitions.push(partition);
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
            let active = self.comm.isend_to(target, &part, Mode::Standard);
            if !matches!(active, Active::Done(_)) {
                round.under_way.push(active);
            }
        }
        if round.missing == 0 && round.under_way.is_empty() {
            // A thread that waits for it sleeps perhaps.
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
    fn poll(&self) -> Option<Outcome> {
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
        Some(Outcome { status: Status::default(), error })
    }

    fn is_over(&self) -> bool {
        let endpoint = self.comm.engine().endpoint();
        let round = self.round.borrow();
        let sent = |round: &Sending| {
            round.missing == 0 && round.under_way.iter().all(|active| active.is_over(endpoint))
        };
        round.as_ref().is_none_or(sent) || endpoint.fault().is_some()
    }

    fn peek(&self) -> Option<Status> {
        self.is_over().then(Status::default)
    }

    fn cancel(&self) -> Result<(), Error> {
        Err(not_cancelled())
    }

    fn release(&self) {}
}

/// Sends a greeting and forgets it.
fn greet<F: Fabric>(comm: &Rc<Comm<F>>, greeting: Greeting, to: usize, tag: i32) {
    let engine = comm.engine();
    let memory = engine.endpoint().staging().take(Greeting::LEN);
    memory.sge().fill(&greeting.encode());
    let target = comm.target_in(comm.greetings(), to, tag);
    if let Some(id) = engine.endpoint().isend(target, memory.sge(), Mode::Standard) {
        let endpoint = engine.endpoint().clone();
        engine.spawn_by(By::Anybody, async move {
            let _kept_until_sent = memory;
            endpoint.wait(id).await?;
            Ok(())
        });
    }
}

// ---- receiver ---------------------------------------------------------------------------------

/// The receiver's request (MPI_Precv_init).
pub struct PartitionedReceive<F: Fabric> {
    comm: Rc<Comm<F>>,
    /// All partitions.
    buffer: Buffer,
    partitions: usize,
    /// `None` receives from nobody.
    sender: Option<Rc<Sender<F>>>,
    /// `None` while it is not active.
    round: RefCell<Option<Receiving<F>>>,
}

struct Receiving<F: Fabric> {
    task: Task,
    parts: Rc<Parts<F>>,
}

impl<F: Fabric> PartitionedReceive<F> {
    /// Local; the greeting may come at any time. `buffer` holds all partitions, a multiple of
    /// `partitions` elements. Nobody (`None`) sends nothing.
    pub fn new(
        comm: &Rc<Comm<F>>,
        buffer: Buffer,
        partitions: usize,
        from: Option<usize>,
        tag: i32,
    ) -> Rc<PartitionedReceive<F>> {
        assert!(partitions > 0 && buffer.count().is_multiple_of(partitions));
        let sender = from.map(|from| Sender::expect(comm, from, tag));
        let (comm, round) = (comm.clone(), RefCell::new(None));
        Rc::new(PartitionedReceive { comm, buffer, partitions, sender, round })
    }

    /// Begins a round (MPI_Start).
    pub fn start(self: &Rc<Self>) -> Active {
        let Some(sender) = &self.sender else { return Active::Done(NOBODY) };
        let engine = self.comm.engine();
        let parts = Rc::new(Parts {
            sender: sender.clone(),
            buffer: self.buffer.clone(),
            piece: self.buffer.writable(engine.endpoint().staging()),
            messages: RefCell::default(),
            failed: RefCell::default(),
        });
        let task = engine.spawn_by(By::Anybody, receive(parts.clone()));
        *self.round.borrow_mut() = Some(Receiving { task, parts });
        Active::External(self.clone())
    }

    /// Whether all bytes of a partition are there (MPI_Parrived): always, of a request that is not
    /// active. It looks at what has arrived, and moves nothing on.
    pub fn arrived(&self, partition: i32) -> Result<bool, Error> {
        let partition = within(partition, self.partitions, "partition")?;
        match &*self.round.borrow() {
            Some(round) => round.parts.have(partition, self.partitions),
            None => Ok(true),
        }
    }
}

impl<F: Fabric> External for PartitionedReceive<F> {
    fn poll(&self) -> Option<Outcome> {
        let mut slot = self.round.borrow_mut();
        let round = slot.take_if(|round| round.task.is_over())?;
        let error = round.task.result().and_then(Result::err);
        Some(Outcome { status: round.parts.status(), error })
    }

    fn is_over(&self) -> bool {
        self.round.borrow().as_ref().is_none_or(|round| round.task.is_over())
    }

    fn peek(&self) -> Option<Status> {
        let round = self.round.borrow();
        round.as_ref().filter(|round| round.task.is_over()).map(|round| round.parts.status())
    }

    fn cancel(&self) -> Result<(), Error> {
        Err(not_cancelled())
    }

    fn release(&self) {}
}

/// What is known of the other side.
struct Sender<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    /// The receive of the greeting, and when it may be over.
    request: RequestId,
    wait: (Counter, u64),
    memory: Staging,
    greeting: RefCell<Option<Result<Greeting, Error>>>,
    /// Its messages, but for their context and tag.
    want: Want,
    rank: usize,
    tag: i32,
}

impl<F: Fabric> Sender<F> {
    /// Posts the receive of the greeting. Somebody has to take it even if the request is freed first:
    /// it would meet the next one.
    fn expect(comm: &Rc<Comm<F>>, rank: usize, tag: i32) -> Rc<Sender<F>> {
        let endpoint = comm.engine().endpoint();
        let memory = endpoint.staging().take(Greeting::LEN);
        let want = comm.want_in(comm.greetings(), rank, tag);
        let request = endpoint.irecv(&want, memory.sge());
        let sender = Rc::new(Sender {
            endpoint: endpoint.clone(),
            request,
            wait: endpoint.wait_of(request),
            memory,
            greeting: RefCell::default(),
            want,
            rank,
            tag,
        });
        let expecting = sender.clone();
        comm.engine().spawn_by(By::Anybody, async move { expecting.greeted().await.map(|_| ()) });
        sender
    }

    async fn greeted(&self) -> Result<Greeting, Error> {
        loop {
            if let Some(greeting) = &*self.greeting.borrow() {
                return greeting.clone();
            }
            if let Some(status) = self.endpoint.finish(self.request) {
                let mut bytes = [0; Greeting::LEN];
                self.memory.sge().read(&mut bytes);
                let whole = status.bytes == Greeting::LEN as u64 && status.lost == 0;
                let greeting = Greeting::decode(&bytes).filter(|_| whole);
                let (peer, tag) = (self.rank, self.tag);
                let text = || format!("rank {peer} sent a senseless greeting with tag {tag}");
                let greeting = greeting.ok_or_else(|| Error::new(class::INTERN, text()));
                *self.greeting.borrow_mut() = Some(greeting);
                continue;
            }
            self.endpoint.until(self.wait.0, self.wait.1).await?;
        }
    }
}

/// The messages of one round.
struct Parts<F: Fabric> {
    sender: Rc<Sender<F>>,
    buffer: Buffer,
    /// The buffer itself, or memory beside it if it has gaps.
    piece: Piece,
    /// Once the greeting has come, the receives by number; `None`: over, its bytes in their place.
    messages: RefCell<Vec<Option<RequestId>>>,
    failed: RefCell<Option<Error>>,
}

async fn receive<F: Fabric>(parts: Rc<Parts<F>>) -> Result<(), Error> {
    let result = parts.receive().await;
    *parts.failed.borrow_mut() = result.clone().err();
    result
}

impl<F: Fabric> Parts<F> {
    async fn receive(&self) -> Result<(), Error> {
        let endpoint = &self.sender.endpoint;
        let greeting = self.sender.greeted().await?;
        self.check(greeting)?;
        let each = greeting.bytes / greeting.partitions;
        let post = |i: usize| {
            let tag = Some(i as i32);
            let want = Want { context: greeting.context, tag, ..self.sender.want };
            Some(endpoint.irecv(&want, self.place(i, each)))
        };
        *self.messages.borrow_mut() = (0..greeting.partitions).map(post).collect();
        for i in 0..greeting.partitions {
            while !self.look(i)? {
                let id = self.messages.borrow()[i];
                let (counter, target) = endpoint.wait_of(id.expect("a look found it open"));
                endpoint.until(counter, target).await?;
            }
        }
        Ok(())
    }

    /// The sender must send what is awaited.
    fn check(&self, greeting: Greeting) -> Result<(), Error> {
        let (room, Sender { rank, tag, .. }) = (self.buffer.len(), &*self.sender);
        let Greeting { bytes, partitions, .. } = greeting;
        if bytes == room {
            return Ok(());
        }
        let class = if bytes > room { class::TRUNCATE } else { class::COUNT };
        let text = format!(
            "rank {rank} sends {bytes} bytes with tag {tag}, in {partitions} partitions, but the \
             partitions to receive have {room} together: both sides of a partitioned message have \
             the same number of bytes"
        );
        Err(Error::new(class, text))
    }

    /// Where message `i` of `each` bytes is received.
    fn place(&self, i: usize, each: usize) -> Sge {
        self.piece.sge.part(i * each, each)
    }

    /// Whether message `i` is in its place; brings it there if it has arrived.
    fn look(&self, i: usize) -> Result<bool, Error> {
        let mut messages = self.messages.borrow_mut();
        let Some(id) = messages[i] else { return Ok(true) };
        let Some(status) = self.sender.endpoint.finish(id) else { return Ok(false) };
        let each = self.buffer.len() / messages.len();
        messages[i] = None;
        if status.bytes != each as u64 || status.lost > 0 {
            let (rank, got) = (self.sender.rank, status.bytes + status.lost);
            let text = format!("partition {i} of rank {rank} has {got} bytes, not {each}");
            return Err(Error::new(class::INTERN, text));
        }
        if self.piece.staging.is_some() {
            self.buffer.unpack_at(i * each, self.place(i, each));
        }
        Ok(true)
    }

    /// Whether all of the messages are there that part `part` of `parts` lies in.
    fn have(&self, part: usize, parts: usize) -> Result<bool, Error> {
        if let Some(error) = &*self.failed.borrow() {
            return Err(error.clone());
        }
        let messages = self.messages.borrow().len();
        if messages == 0 {
            return Ok(false);
        }
        for i in overlapping(part, parts, messages) {
            if !self.look(i)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn status(&self) -> Status {
        let bytes = self.buffer.len() as u64;
        let Sender { rank, tag, .. } = *self.sender;
        Status { source: rank as i32, tag, bytes, ..Status::default() }
    }
}

/// The messages, of `messages` equal ones, in which part `part` of `parts` equal ones lies.
fn overlapping(part: usize, parts: usize, messages: usize) -> std::ops::Range<usize> {
    part * messages / parts..((part + 1) * messages).div_ceil(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_lies_in_the_messages_that_share_bytes_with_it() {
        for parts in 1..=12 {
            for messages in 1..=12 {
                // In units of which both have a whole number.
                let (part_len, message_len) = (messages, parts);
                for part in 0..parts {
                    let mine = part * part_len..(part + 1) * part_len;
                    let shares = |&m: &usize| {
                        m * message_len < mine.end && (m + 1) * message_len > mine.start
                    };
                    let found: Vec<usize> = (0..messages).filter(shares).collect();
                    let said: Vec<usize> = overlapping(part, parts, messages).collect();
                    assert_eq!(said, found, "part {part} of {parts} in {messages}");
                }
            }
        }
    }

    #[test]
    fn a_greeting_is_read_as_it_was_written_and_nonsense_refused() {
        let context = Context(PARTITIONED | 77);
        let greeting = Greeting { partitions: 3, bytes: 12, context };
        assert_eq!(Greeting::decode(&greeting.encode()), Some(greeting));
        let empty = Greeting { bytes: 0, ..greeting };
        assert_eq!(Greeting::decode(&empty.encode()), Some(empty));
        let foreign = Greeting { context: Context(77), ..greeting };
        for wrong in [
            Greeting { partitions: 0, ..greeting },
            Greeting { partitions: 1 << 40, bytes: 0, ..greeting },
            Greeting { bytes: 13, ..greeting },
            foreign,
        ] {
            assert_eq!(Greeting::decode(&wrong.encode()), None, "{wrong:?}");
        }
    }
}
