//! Operations on memory that no fabric reaches from the origin: the target's own process carries them out,
//! by its helper where its program computes. Requests are synchronous messages of the window's own
//! communicator, since those wake a helper ([`crate::request`]).

use crate::accumulate::Packed;
use crate::atomics::Run;
use crate::place::{Reach, TargetAddress, TargetLocation};
use crate::request::{DONE, HEAD, REFUSED, Request, RequestKind, RmaRequest, Way, tags, words};
use crate::scattered::Part;
use crate::{Flavor, Window, atomics};
use std::rc::Rc;
use weft_datatype::Basic;
use weft_fabric::{Fabric, Fault, Sge, Staging};
use weft_p2p::{Mode, RequestId, Source, Want};
use weft_process::Error;

impl<F: Fabric> Window<F> {
    /// Has the target do it; what it returns goes to `result`.
    pub(crate) async fn ask_for(
        &self,
        place: &TargetAddress,
        location: &TargetLocation<'_>,
        wish: RmaRequest,
        result: Option<Sge>,
    ) -> Result<(), Error> {
        for (skip, take) in wish.parts(location.len()) {
            let asked = self.ask(Way::Service, place, location, wish, (skip, take), true);
            let answer = self.answered(location.rank, asked).await?;
            if let (Some(result), Some(answer)) = (result, answer) {
                result.part(skip, take).copy_from(answer.sge().part(8, take));
            }
        }
        Ok(())
    }

    /// Carries requests out until [`Window::stop_serving`].
    pub(crate) async fn serve(self: Rc<Self>) -> Result<(), Error> {
        let head = self.endpoint().staging().take(HEAD);
        let mut answers = Vec::new();
        loop {
            let (rank, request) = self.next_request(tags::REQUEST, head.sge()).await?;
            if request.kind == RequestKind::Stop {
                return Ok(());
            }
            self.carry_out(rank, &request, tags::MORE, &mut answers).await?;
        }
    }

    /// The next request of a kind, and whose it is.
    pub(crate) async fn next_request(
        &self,
        tag: i32,
        head: Sge,
    ) -> Result<(usize, Request), Error> {
        let context = self.comm().context();
        let want = Want { context, source: Source::Any, tag: Some(tag) };
        let status = self.endpoint().recv(want, head).await?;
        let rank = status.source as usize;
        let request = Request::decode(head).filter(|_| status.bytes == HEAD as u64);
        match request {
            Some(request) => Ok((rank, request)),
            None => {
                let what = "one-sided request";
                Err(Fault::corrupt(self.peer(rank), what).into())
            }
        }
    }

    /// Carries a request out, the rest of which comes as `more`. Its answer is added to those on their way.
    pub(crate) async fn carry_out(
        &self,
        rank: usize,
        request: &Request,
        more: i32,
        answers: &mut Vec<(RequestId, Staging)>,
    ) -> Result<(), Error> {
        let endpoint = self.endpoint();
        answers.retain(|(id, _)| endpoint.finish(*id).is_none());
        let pool = endpoint.staging();
        let rest = pool.take(16 * request.runs as usize + request.brings());
        endpoint.recv(self.want_of(rank, more), rest.sge()).await?;
        let answer = pool.take(8 + request.returns());
        let verdict = match self.fulfil(request, rest.sge(), answer.sge()).await? {
            true => DONE,
            false => REFUSED,
        };
        if request.answer != 0 {
            answer.sge().fill(&verdict.to_ne_bytes());
            let to = self.target_of(rank, request.answer);
            let sent = endpoint.isend(to, answer.sge(), Mode::Standard);
            answers.extend(sent.map(|id| (id, answer)));
        }
        Ok(())
    }

    /// Ends this rank's own service: nobody asks any more.
    pub(crate) async fn stop_serving(&self) -> Result<(), Error> {
        let head = self.endpoint().staging().take(HEAD);
        head.sge().fill(&Request::STOP.encode());
        let to = self.target_of(self.rank(), tags::REQUEST);
        let sent = self.endpoint().isend(to, head.sge(), Mode::Standard);
        if let Some(sent) = sent {
            self.endpoint().wait(sent).await?;
        }
        Ok(())
    }

    /// Does what a request asks for; the data it returns begin 8 bytes in. False: it asks for what cannot be.
    async fn fulfil(&self, request: &Request, more: Sge, answer: Sge) -> Result<bool, Error> {
        let count = request.runs as usize;
        let mut parts = Vec::with_capacity(count);
        let mut runs = Vec::with_capacity(count);
        let (mut total, bytes) = (0, request.bytes as usize);
        for i in 0..count {
            let [at, len] = words(more.part(16 * i, 16));
            let fits = len <= (bytes - total) as u64;
            if !fits || !self.own_memory(at, len, total, &mut parts) {
                return Ok(false);
            }
            runs.push(Run { offset: at as i64, skip: total, len: len as usize });
            total += len as usize;
        }
        if total != bytes {
            return Ok(false);
        }
        let data = more.part(16 * count, request.brings());
        let result = answer.part(8, request.returns());
        let packed = match request.kind {
            RequestKind::Put => {
                scatter(&parts, data);
                return Ok(true);
            }
            RequestKind::Get => {
                gather(&parts, result);
                return Ok(true);
            }
            RequestKind::Reduce => match request.op() {
                Some(op) => Packed::Reduce { op, origin: data },
                None => return Ok(false),
            },
            RequestKind::Swap => {
                Packed::Swap { compare: data.part(0, bytes), new: data.part(bytes, bytes) }
            }
            RequestKind::Stop => return Ok(false),
        };
        let basic = request.basic().filter(|&basic| packed.is_for(basic, bytes));
        let Some(basic) = basic else { return Ok(false) };
        if self.shown[self.rank()].adapters && atomics::is_for(basic) {
            return self.fulfil_by_adapters(basic, packed, runs, result).await;
        }
        self.change_parts(self.rank(), &parts, bytes, basic, packed, Some(result)).await?;
        Ok(true)
    }

    /// The same for elements of this rank that adapters update, whoever asks; offsets of `runs` are those of
    /// [`Window::own_memory`].
    async fn fulfil_by_adapters(
        &self,
        basic: Basic,
        packed: Packed,
        runs: Vec<Run>,
        result: Sge,
    ) -> Result<bool, Error> {
        if runs.iter().any(|run| !run.len.is_multiple_of(basic.size())) {
            return Ok(false);
        }
        let (peer, base) = (self.peer(self.rank()), self.shown[self.rank()].memory);
        let (words, others) = atomics::aligned(base, runs.into_iter());
        let former = (!result.is_empty()).then_some(result);
        let change = atomics::Change { peer, base, basic, packed, former };
        change.run(self.endpoint(), &words).await?;
        if others.is_empty() {
            return Ok(true);
        }
        let change = async {
            for Run { offset, skip, len } in others {
                let elements = self.memory().part(offset as usize, len);
                let former = former.map(|former| former.part(skip, len));
                packed.part(skip, len).apply(basic, elements, former)?;
            }
            Ok(true)
        };
        self.guarded(self.rank(), change).await
    }

    /// Adds `len` bytes of this rank's memory, at an offset in its part of the window, or at an address of a dynamic
    /// window, as a peer names it, to the parts of packed bytes; they begin at `skip` there. False: it has no such.
    fn own_memory(&self, at: u64, len: u64, mut skip: usize, parts: &mut Vec<Part>) -> bool {
        let peer = self.peer(self.rank());
        if self.flavor() == Flavor::Dynamic {
            return self.own_attached(at, len, |memory, piece| {
                parts.push(Part::own(peer, memory, skip, self.by_processors(piece.within)));
                skip += memory.len();
            });
        }
        let (memory, shown) = (self.memory(), &self.shown[self.rank()]);
        let inside = (memory.len() as u64).checked_sub(at).is_some_and(|room| len <= room);
        if inside {
            let words = self.by_processors(shown.within);
            parts.push(Part::own(peer, memory.part(at as usize, len as usize), skip, words));
        }
        inside
    }
}

/// The memory of a part of this rank.
fn seen(part: &Part) -> Sge {
    match part.place.reach {
        Reach::Seen(memory) => memory,
        _ => unreachable!("this rank's own"),
    }
}

/// Copies packed data to their places.
fn scatter(parts: &[Part], data: Sge) {
    parts.iter().for_each(|part| seen(part).copy_from(data.part(part.skip, part.len)));
}

/// Packs data from their places.
fn gather(parts: &[Part], into: Sge) {
    parts.iter().for_each(|part| into.part(part.skip, part.len).copy_from(seen(part)));
}
