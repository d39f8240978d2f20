//! Requests between ranks: sending, answering, receiving, carrying out.
//!
//! Requests have two sources. Operations on memory that no fabric reaches send requests to the target's service. While the target's
//! program computes, the target's helper runs the service. Fence-2S sends requests to the target's fence. All requests are messages
//! of the window's own communicator. Requests to a service are synchronous, because synchronous messages wake a helper.

use super::WindowControl;
use super::request::{
    ANSWERS, ControlRequest, ControlRequestKind, DONE, HEAD, REFUSED, RmaRequest,
};
use crate::core::target_location::TargetLocation;
use weft_collective::words;
use weft_fabric::{Fabric, Fault, Sge, Staging};
use weft_p2p::{MessageTarget, ReceiveSource, RequestId, SendMode, Want};
use weft_process::{Error, class};

/// Receiver of a request at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taker {
    /// The service. The request wakes the target's helper.
    Service,
    /// The fence that ends the epoch.
    Fence,
}

impl Taker {
    /// Returns the tag of heads.
    fn head(self) -> i32 {
        match self {
            Taker::Service => 1,
            Taker::Fence => 2,
        }
    }

    /// Returns the tag of the message after a head.
    fn more(self) -> i32 {
        match self {
            Taker::Service => 3,
            Taker::Fence => 4,
        }
    }

    fn mode(self) -> SendMode {
        match self {
            Taker::Service => SendMode::Synchronous,
            Taker::Fence => SendMode::Standard,
        }
    }
}

/// A part of an operation, in a request to the target.
#[derive(Clone, Copy)]
pub struct RequestedPart<'a> {
    pub location: &'a TargetLocation<'a>,
    /// Place of the first element: an offset in the target's part of the window, or an address of a dynamic window.
    pub own: i64,
    pub operation: RmaRequest,
    /// Range of the packed bytes: offset and length.
    pub part: (usize, usize),
    /// True if the request is the last of an epoch.
    pub last: bool,
    /// True if the caller wants to know the outcome, or needs the returned data.
    pub answered: bool,
}

/// One request under way.
pub struct SentRequest {
    sent: [Option<RequestId>; 2],
    /// The receive of the answer, and the memory for the answer.
    answer: Option<(RequestId, Staging)>,
    /// Memory of the messages, kept until the messages are sent.
    _all: Staging,
}

/// Answers that are being sent to the ranks that asked.
#[derive(Default)]
pub struct Answers(Vec<(RequestId, Staging)>);

impl<F: Fabric> WindowControl<F> {
    /// Sends a request.
    pub fn ask(&self, taker: Taker, asked: RequestedPart<'_>) -> SentRequest {
        let RequestedPart { location, own, operation, part: (skip, take), last, answered } = asked;
        let mut runs = Vec::new();
        location.ty.runs(location.count, skip, take, |offset, len| {
            runs.extend([own.wrapping_add(offset) as u64, len as u64]);
        });
        let [op, basic] = operation.names();
        let request = ControlRequest {
            kind: operation.kind(),
            op,
            basic,
            runs: runs.len() as u64 / 2,
            bytes: take as u64,
            answer: if answered { self.next_answer() } else { 0 },
            last,
        };
        let (endpoint, pool) = (self.core.endpoint(), self.core.endpoint().staging());
        let answer = answered.then(|| {
            let into = pool.take(8 + request.returns());
            (endpoint.irecv(&self.want_of(location.rank, request.answer), into.sge()), into)
        });
        let mut at = 8 * runs.len();
        let all = pool.take(HEAD + at + request.brings());
        words::write(request.encode(), all.sge());
        let more = all.sge().part(HEAD, all.len() - HEAD);
        words::write(runs, more);
        for data in operation.data(skip, take) {
            more.part(at, data.len()).copy_from(data);
            at += data.len();
        }
        let messages = [(taker.head(), all.sge().part(0, HEAD)), (taker.more(), more)];
        let sent = messages.map(|(tag, sge)| {
            endpoint.isend(self.target_of(location.rank, tag), sge, taker.mode())
        });
        SentRequest { sent, answer, _all: all }
    }

    /// Waits until a request has been sent. If the request has an answer, also waits for the answer, and returns the memory of the
    /// answer. The data of the answer begin at byte 8. Error: RMA_RANGE if the target refused the request.
    pub async fn answered(
        &self,
        rank: usize,
        asked: SentRequest,
    ) -> Result<Option<Staging>, Error> {
        let endpoint = self.core.endpoint();
        let answer = match asked.answer {
            Some((id, into)) => {
                endpoint.wait(id).await?;
                Some(into)
            }
            None => None,
        };
        for request in asked.sent.into_iter().flatten() {
            endpoint.wait(request).await?;
        }
        match &answer {
            Some(into) if words::read(into.sge(), 0) != DONE => {
                let text = format!("rank {rank} refused an operation: its memory is not there");
                Err(Error::new(class::RMA_RANGE, text))
            }
            _ => Ok(answer),
        }
    }

    /// Asks a target's service to carry out a whole operation. The returned data go to `result`. `own` has the same meaning as in
    /// [`RequestedPart`].
    pub async fn ask_for(
        &self,
        own: i64,
        location: &TargetLocation<'_>,
        operation: RmaRequest,
        result: Option<Sge>,
    ) -> Result<(), Error> {
        for (skip, take) in operation.parts(location.len()) {
            let part = (skip, take);
            let asked =
                RequestedPart { location, own, operation, part, last: false, answered: true };
            let asked = self.ask(Taker::Service, asked);
            let answer = self.answered(location.rank, asked).await?;
            if let (Some(result), Some(answer)) = (result, answer) {
                result.part(skip, take).copy_from(answer.sge().part(8, take));
            }
        }
        Ok(())
    }

    /// Carries out the requests to this rank's service until [`WindowControl::stop_serving`]. `perform` carries out each request
    /// ([`WindowControl::take_one`]).
    pub async fn serve(
        &self,
        perform: impl AsyncFn(&ControlRequest, Sge, Sge) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut answers = Answers::default();
        while self.take_one(Taker::Service, &mut answers, &perform).await?.is_some() {}
        Ok(())
    }

    /// Receives the next request and carries it out. `perform` gets the request, the runs and data of the request, and memory for
    /// the answer. The data of the answer begin at byte 8. `perform` returns false if the request is impossible. The answer is sent
    /// and added to `answers`. Returns `None` if the service must end.
    pub async fn take_one(
        &self,
        taker: Taker,
        answers: &mut Answers,
        perform: impl AsyncFn(&ControlRequest, Sge, Sge) -> Result<bool, Error>,
    ) -> Result<Option<ControlRequest>, Error> {
        let endpoint = self.core.endpoint();
        let (rank, request) = self.next_request(taker).await?;
        if request.kind == ControlRequestKind::Stop {
            // With this request, the sender reports to a fence that it will send no more requests.
            return Ok((taker == Taker::Fence).then_some(request));
        }
        answers.0.retain(|(id, _)| endpoint.finish(*id).is_none());
        let pool = endpoint.staging();
        let rest = pool.take(16 * request.runs as usize + request.brings());
        endpoint.recv(self.want_of(rank, taker.more()), rest.sge()).await?;
        let answer = pool.take(8 + request.returns());
        let verdict = match perform(&request, rest.sge(), answer.sge()).await? {
            true => DONE,
            false => REFUSED,
        };
        if request.answer != 0 {
            words::write([verdict], answer.sge());
            let to = self.target_of(rank, request.answer);
            let sent = endpoint.isend(to, answer.sge(), SendMode::Standard);
            answers.0.extend(sent.map(|id| (id, answer)));
        }
        Ok(Some(request))
    }

    /// Returns the next request, and the rank that sent it.
    async fn next_request(&self, taker: Taker) -> Result<(usize, ControlRequest), Error> {
        let head = self.core.endpoint().staging().take(HEAD);
        let context = self.core.comm().context();
        let want = Want { context, source: ReceiveSource::Any, tag: Some(taker.head()) };
        let status = self.core.endpoint().recv(want, head.sge()).await?;
        let rank = status.source as usize;
        let request = ControlRequest::decode(head.sge()).filter(|_| status.bytes == HEAD as u64);
        match request {
            Some(request) => Ok((rank, request)),
            None => Err(Fault::corrupt(self.core.peer(rank), "one-sided request").into()),
        }
    }

    /// Waits until answers have been sent.
    pub async fn all_answered(&self, answers: Answers) -> Result<(), Error> {
        for (answer, _memory) in answers.0 {
            self.core.endpoint().wait(answer).await?;
        }
        Ok(())
    }

    /// Ends this rank's own service. No rank may send requests to it any more.
    pub async fn stop_serving(&self) -> Result<(), Error> {
        let me = self.core.rank();
        self.answered(me, self.send_head(me, Taker::Service, ControlRequest::STOP))
            .await
            .map(|_| ())
    }

    /// Reports to the fence of a rank that this rank will send no more requests.
    pub fn end_epoch(&self, rank: usize) -> SentRequest {
        self.send_head(rank, Taker::Fence, ControlRequest { last: true, ..ControlRequest::STOP })
    }

    /// Sends a request that is only a head and wants no answer.
    fn send_head(&self, rank: usize, taker: Taker, request: ControlRequest) -> SentRequest {
        let endpoint = self.core.endpoint();
        let head = endpoint.staging().take(HEAD);
        words::write(request.encode(), head.sge());
        let to = self.target_of(rank, taker.head());
        let sent = endpoint.isend(to, head.sge(), SendMode::Standard);
        SentRequest { sent: [sent, None], answer: None, _all: head }
    }

    fn next_answer(&self) -> i32 {
        let number = self.answers.get();
        self.answers.set((number + 1) % (1 << 28));
        ANSWERS + number
    }

    fn want_of(&self, rank: usize, tag: i32) -> Want {
        let source = ReceiveSource::Rank { rank: rank as u32, peer: self.core.peer(rank) };
        Want { context: self.core.comm().context(), source, tag: Some(tag) }
    }

    fn target_of(&self, rank: usize, tag: i32) -> MessageTarget {
        let context = self.core.comm().context();
        MessageTarget { context, peer: self.core.peer(rank), rank: self.core.rank() as u32, tag }
    }
}
