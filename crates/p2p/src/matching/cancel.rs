//! Cancelled sends (MPI_Cancel; MPI 5.0, section 3.8.4).
//!
//! ```text
//!   on one node     sender's word of the request:   OPEN ──┬── CLAIMED      the receiver, when it matches the envelope
//!                   (memory that the peer sees)            └── CANCELLED    the sender: complete, whatever the receiver does
//!                                                                └── DROPPED   the receiver met the cancelled envelope
//!   between nodes   sender ── Cancel ──> receiver ── Cancelled(0 or 1) ──> sender
//! ```
//! Sender and receiver change the word by compare-and-swap, so only one of the two succeeds. On one node MPI_Cancel and MPI_Wait
//! are local: the receiver need not be inside MPI, nor have a helper. Between nodes the receiver answers when it makes progress.
//! Its helper makes progress only while there is work for a helper. A receiver that stays outside of MPI never answers, and the
//! send waits for its match as if MPI_Cancel had not been called. An eager standard send is complete at once, and cannot be taken
//! back.
//!
//! Cost: one compare-and-swap per nonblocking send of the program if the send is synchronous or offered. Other sends cost nothing.
//! The number of a cancelled request also identifies its cancel word. So the number is not used again before the receiver has
//! dropped the envelope.

use crate::envelope::{Envelope, MessageKind, PeerMessage, ShortWords};
use crate::message::MessageOutcome;
use crate::transport::Transport;
use std::collections::{BTreeMap, VecDeque};
use weft_fabric::{Fabric, FabricExt, Fault, Region, RemoteAddr};

/// States of a cancel word.
const OPEN: u64 = 0;
const CLAIMED: u64 = 1;
const CANCELLED: u64 = 2;
const DROPPED: u64 = 3;

/// Number of words in a chunk. A word has the same number as its request.
const CHUNK: u32 = 1024;
/// Maximum number of chunks. Requests whose number is beyond the last chunk are cancelled by messages.
const CHUNKS: usize = 64;
/// Distance between words, in bytes: one cache line each.
const STRIDE: usize = 64;

fn place(request: u32) -> (usize, usize) {
    ((request / CHUNK) as usize, (request % CHUNK) as usize * STRIDE)
}

/// Cancel words of a process, and its cancelled requests whose envelopes may still be at their receivers.
///
/// Invariants: a word belongs to a request from [`CancelWords::open`] until the send has ended. If the request is cancelled, the
/// word belongs to the request until the receiver has dropped the envelope. Only then is the number of the request used again.
#[derive(Default)]
pub struct CancelWords {
    chunks: Vec<Region>,
    cancelled: VecDeque<u32>,
    /// Peers to which sends with cancel words go, or from which such sends come. There are few of these peers.
    known: BTreeMap<usize, Known>,
}

/// Addresses of a peer's words, and a bit for each chunk of own words whose address the peer knows.
#[derive(Debug, Clone, Default)]
struct Known {
    theirs: Vec<RemoteAddr>,
    told: u64,
}

impl CancelWords {
    // ---- sender's side ------------------------------------------------------------------------

    /// Opens the word of a request for `peer`, which sees this process's memory. Returns false if the request has no word.
    pub fn open<F: Fabric>(&mut self, transport: &Transport<F>, peer: usize, request: u32) -> bool {
        let (chunk, offset) = place(request);
        while self.chunks.len() <= chunk.min(CHUNKS - 1) {
            let Ok(region) = transport.fabric.allocate_on_node(CHUNK as usize * STRIDE) else {
                return false;
            };
            self.chunks.push(region);
        }
        let Some(region) = self.chunks.get(chunk) else { return false };
        region.local.part(offset, 8).fill(&OPEN.to_ne_bytes());
        let at = region.remote;
        let known = self.known.entry(peer).or_default();
        if known.told & 1 << chunk == 0 {
            known.told |= 1 << chunk;
            let mut words = ShortWords::new(&at.words());
            let head = Envelope::reply(MessageKind::CancelWords, chunk as u32, 0);
            transport.fabric.send(peer, head, words.payload(), None);
        }
        true
    }

    /// Cancels a request of this process. Returns false if the receiver has already claimed the message.
    pub fn cancel<F: Fabric>(&self, transport: &Transport<F>, request: u32) -> Result<bool, Fault> {
        let (chunk, offset) = place(request);
        let at = self.chunks[chunk].at(offset);
        let before = transport.swap(transport.fabric.rank(), at, OPEN, CANCELLED)?;
        Ok(before == OPEN)
    }

    /// Keeps the number of a cancelled request from being used again, because its envelope may still be at the receiver.
    pub fn retire(&mut self, request: u32) {
        self.cancelled.push_back(request);
    }

    /// Frees the numbers of cancelled requests whose envelopes were dropped. A call examines only a few of the kept numbers, so
    /// that its cost is bounded. The next call examines the following numbers.
    pub fn free_void<F: Fabric>(&mut self, transport: &Transport<F>, mut give: impl FnMut(u32)) {
        const LOOKS: usize = 8;
        for _ in 0..LOOKS.min(self.cancelled.len()) {
            let Some(request) = self.cancelled.pop_front() else { return };
            let (chunk, offset) = place(request);
            let at = self.chunks[chunk].at(offset);
            match transport.swap(transport.fabric.rank(), at, DROPPED, OPEN) {
                Ok(DROPPED) => give(request),
                _ => self.cancelled.push_back(request),
            }
        }
    }

    // ---- receiver's side ----------------------------------------------------------------------

    /// Notes the address of a chunk of words of a peer whose memory this process sees.
    pub fn on_words(&mut self, message: &PeerMessage) -> MessageOutcome {
        const WHAT: &str = "place of words";
        let &PeerMessage { peer, envelope: e, payload } = message;
        let at = RemoteAddr::from_words(ShortWords::read::<4>(payload).ok_or(WHAT)?);
        let theirs = &mut self.known.entry(peer).or_default().theirs;
        // Addresses of chunks may come in any order, but the address of a chunk comes before the first message that uses this
        // chunk.
        let chunk = e.request as usize;
        if chunk >= CHUNKS {
            return Err(WHAT);
        }
        if theirs.len() <= chunk {
            theirs.resize(chunk + 1, RemoteAddr::default());
        }
        theirs[chunk] = at;
        Ok(())
    }

    /// Forgets a process of another job, and its words.
    pub fn forget(&mut self, peer: usize) {
        self.known.remove(&peer);
    }

    /// Claims the envelope of a peer's request that is about to be matched, in the cancel word of the request. Returns false if the
    /// sender has cancelled the request. Stores an error in `fault` if the word cannot be changed or has an impossible value.
    pub fn claim<F: Fabric>(
        &self,
        transport: &Transport<F>,
        peer: usize,
        request: u32,
        fault: &mut Option<Fault>,
    ) -> bool {
        let claimed = self.turn(transport, peer, request, OPEN, CLAIMED);
        let void = claimed == Ok(CANCELLED);
        let outcome = match void {
            true => self.turn(transport, peer, request, CANCELLED, DROPPED),
            false => claimed,
        };
        if let Err(what) = outcome {
            *fault = Some(what);
        }
        !void
    }

    /// Returns true if a peer's request was cancelled, and marks its envelope as dropped.
    pub fn drops<F: Fabric>(&self, transport: &Transport<F>, peer: usize, request: u32) -> bool {
        self.turn(transport, peer, request, CANCELLED, DROPPED) == Ok(CANCELLED)
    }

    fn turn<F: Fabric>(
        &self,
        transport: &Transport<F>,
        peer: usize,
        request: u32,
        from: u64,
        to: u64,
    ) -> Result<u64, Fault> {
        let (chunk, offset) = place(request);
        let known = self.known.get(&peer);
        match known.and_then(|known| known.theirs.get(chunk)) {
            Some(at) if *at != RemoteAddr::default() => {
                transport.swap(peer, at.offset(offset as u64), from, to)
            }
            _ => Err(Fault::corrupt(peer, "number of a request")),
        }
    }
}
