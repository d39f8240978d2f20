//! Connection setup between two processes, when one of the two first has something to send.
//!
//! ```text
//!   A: makes its end ──── connect request (number of the end) ───>  B: makes its end, which can receive
//!   A's end can receive  <─── connect request, heard ─────────────
//!   A may send           ──── connect request, heard, settled ───>  B may send
//! ```
//! Connect requests are datagrams to the published addresses. A process that has not settled repeats its connect request,
//! with growing pauses. Both processes may begin at once: each has one end, and a connect request says all about that end.
//! Traffic on the connection itself also proves that the peer has heard.

use crate::connection::{Connection, ConnectionPhase};
use crate::datagrams::GRH;
use crate::ffi::*;
use crate::object::{self, BATCH};
use crate::path::Traffic;
use crate::rail::MULTICAST_TAG;
use crate::state::{VerbsCore, VerbsState};
use crate::wire::ConnectRequest;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};
use weft_bootstrap::keyed_hash;
use weft_fabric::{Fault, Sge};

/// Maximum pause between two connect requests of a first connection.
const PAUSE_MOST: Duration = Duration::from_millis(500);
/// Maximum pause between two connect requests of a secondary connection, for which no operation waits.
const PAUSE_SECONDARY: Duration = Duration::from_secs(4);

/// Returns a number that differs from process to process and from call to call.
pub fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// Returns the number by which connected jobs find each other, so that their common secret does not travel.
fn nonce_of(secret: u128) -> u64 {
    keyed_hash(secret, "nonce")
}

impl VerbsCore {
    /// Returns true if `request`, which came to `rail` from queue pair `source`, is from a peer and meant for this process.
    /// Otherwise it belongs to another job, or to no known process. Connected jobs use a hash of their common secret in place of
    /// the job's nonce.
    fn concerns(&self, rail: usize, source: u32, request: &ConnectRequest) -> bool {
        let (roster, peer) = (self.roster.borrow(), request.from as usize);
        let nonce = roster.foreign(peer).map_or(self.nonce, |foreign| nonce_of(foreign.secret));
        let Some(member) = roster.get(peer) else { return false };
        request.nonce == nonce
            && request.to as usize == self.rank
            && peer != self.rank
            && request.rail as usize == rail
            && member.address.rails.get(rail).is_some_and(|there| there.number == source)
    }
}

impl VerbsState {
    /// Begins to make connection `link`. Returns false if that failed; for a first connection this is also a fault.
    #[cold]
    pub fn begin(&mut self, core: &VerbsCore, link: usize) -> bool {
        match self.make_end(core, link) {
            Ok(()) => true,
            Err((_, why)) if core.is_secondary(link) => {
                self.give_up(core, link, &why);
                false
            }
            Err((fault, why)) => {
                self.fail(fault, why);
                false
            }
        }
    }

    fn make_end(&mut self, core: &VerbsCore, link: usize) -> Result<(), (Fault, String)> {
        let (at, peer, secondary) = (link, core.peer_of(link), core.is_secondary(link));
        let system = |error: crate::VerbsConnectError| {
            let errno = error.errno();
            let fault = Fault::system("connecting with a process", errno);
            (fault, format!("process {peer}: {error}"))
        };
        if !secondary && self.connections == core.bounds.all_connections() {
            let what = "connecting with one more process (the adapter or an option allows no more)";
            let why = format!("there are {} connections already", self.connections);
            return Err((Fault::system(what, libc::ENOBUFS), why));
        }
        let number = core.rail_of(link);
        let rail = &mut self.rails[number];
        let to = core.address_of(peer, number);
        let wrap = |fault: Fault| {
            let why = format!("connecting with process {peer}: {fault}");
            (fault, why)
        };
        rail.grow(number, core.buffers_of(link), &mut self.memories).map_err(wrap)?;
        let (pair, inline) = rail.pair().map_err(system)?;
        let now = Instant::now();
        let psn = random() as u32 & 0x00ff_ffff;
        let mut link = Connection::new(pair, inline, number, psn, now);
        link.secondary = secondary.then(Box::default);
        self.routes[number].insert(link.pair.number(), at as u32);
        if peer == core.rank {
            let own = link.pair.number();
            rail.connect(&link.pair, psn, &to, own, psn, rail.reads).map_err(system)?;
            link.phase = ConnectionPhase::Open;
            link.messages = core.bounds.messages as u32;
            link.events = core.bounds.events as u32;
        } else {
            let mut path = rail.path(&to, Traffic::Datagrams);
            link.path = Some(object::handle(&rail.domain, &mut path).map_err(system)?);
            self.connecting.push(at as u32);
        }
        self.peers[at] = Some(Box::new(link));
        self.connections += usize::from(!secondary);
        if peer != core.rank {
            self.greet(core, at, now);
        }
        Ok(())
    }

    /// Sends the local connect request (again). A lost datagram is repeated later.
    fn greet(&mut self, core: &VerbsCore, link: usize, now: Instant) {
        let (at, peer) = (link, core.peer_of(link));
        let foreign = core.roster.borrow().foreign(peer);
        let (nonce, me) = foreign.map_or((core.nonce, core.rank as u32), |foreign| {
            (nonce_of(foreign.secret), foreign.me)
        });
        let VerbsState { peers, rails, memories, .. } = self;
        let link = peers[at].as_deref_mut().expect("an end");
        let rail = &mut rails[link.rail];
        let request = ConnectRequest {
            nonce,
            from: me,
            to: core.home(peer) as u32,
            number: link.pair.number(),
            psn: link.psn,
            messages: core.bounds.messages as u16,
            events: core.events_by(at) as u16,
            rail: link.rail as u8,
            reads: rail.reads,
            heard: link.theirs.is_some(),
            settled: link.phase != ConnectionPhase::Connecting,
        };
        let mut bytes = request.encode();
        // SAFETY: `Sge::new` needs memory that is valid while in use: `bytes` outlives `send`, which copies it before it
        // returns.
        let part = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
        let number = core.address_of(peer, link.rail).number;
        if let Some(path) = &link.path {
            rail.greeter.send(memories, path, number, &[part]);
        }
        link.asking.next = now + link.asking.pause;
        let most = if at == peer { PAUSE_MOST } else { PAUSE_SECONDARY };
        link.asking.pause = (link.asking.pause * 2).min(most);
    }

    /// Takes the datagrams that have arrived on `rail`.
    pub fn poll_datagrams(&mut self, core: &VerbsCore, rail: usize) -> bool {
        let mut done = [ibv_wc::default(); BATCH];
        let n = self.rails[rail].base.datagrams.poll(&mut done);
        for wc in &done[..n] {
            if wc.wr_id >= MULTICAST_TAG {
                self.datagram(core, wc);
                continue;
            }
            let greeter = &self.rails[rail].greeter;
            let slot = greeter.slot_of(wc.wr_id);
            let mut bytes = [0; crate::wire::CONNECT_REQUEST];
            let whole = wc.status == IBV_WC_SUCCESS && wc.byte_len as usize == GRH + bytes.len();
            if let Some(part) = greeter.received(slot, wc.byte_len).filter(|_| whole) {
                part.read(&mut bytes);
            }
            greeter.listen(slot, &self.memories);
            if let Some(request) = ConnectRequest::decode(&bytes) {
                self.take_connect_request(core, rail, wc.src_qp, request);
            }
        }
        n > 0
    }

    fn take_connect_request(
        &mut self,
        core: &VerbsCore,
        rail: usize,
        source: u32,
        request: ConnectRequest,
    ) {
        let peer = request.from as usize;
        if !core.concerns(rail, source, &request) {
            return;
        }
        let at = core.link_over(peer, rail);
        // A peer that asks for a secondary connection has a first connection, which is known here, too.
        let known = core.rail_of(at) == rail && (at == peer || self.peers[peer].is_some());
        if !known || self.peers[at].is_none() && !self.begin(core, at) {
            return;
        }
        let VerbsState { peers, rails, .. } = &mut *self;
        let link = peers[at].as_deref_mut().expect("begun above");
        if matches!(link.phase, ConnectionPhase::Gone | ConnectionPhase::Lost) {
            return;
        }
        if link.theirs.is_none() {
            let to = core.address_of(peer, rail);
            let ConnectRequest { number, psn, reads, .. } = request;
            let connected = rails[rail].connect(&link.pair, link.psn, &to, number, psn, reads);
            if let Err(error) = connected {
                let why = format!("no connection was made: {error}");
                match at == peer {
                    true => self.lose(core, peer, why),
                    false => self.shut(core, at, &why),
                }
                return;
            }
            link.theirs = Some(request);
            link.messages += u32::from(request.messages);
            link.events += u32::from(request.events);
        }
        if request.heard && link.phase == ConnectionPhase::Connecting {
            self.settle(core, at);
        }
        if !request.settled {
            self.greet(core, at, Instant::now());
        }
    }

    /// Opens the connection: the peer can receive, so the messages and work kept for it may go.
    pub fn settle(&mut self, core: &VerbsCore, peer: usize) {
        let link = self.link(peer);
        // Without the peer's connect request no traffic could have arrived.
        if link.theirs.is_some() {
            link.phase = ConnectionPhase::Open;
            self.connecting.retain(|&other| other != peer as u32);
            self.drain(core, peer);
        }
    }

    /// Repeats connect requests that are due. Gives up on peers that do not answer within the patience.
    pub fn greet_again(&mut self, core: &VerbsCore, now: Instant) {
        for i in (0..self.connecting.len()).rev() {
            let peer = self.connecting[i] as usize;
            let link = self.link(peer);
            let waited = link.asking.wait(now);
            if now < link.asking.next {
                continue;
            }
            // If no local work waits (the peer asked first), waiting longer costs nothing.
            if !link.is_empty() && waited > core.options.patience {
                let host = core.host_of(core.peer_of(peer));
                let why = format!(
                    "it is on {host} and has not answered for {} s: it has ended, or it makes \
                     no MPI calls, or datagrams do not reach it",
                    waited.as_secs()
                );
                self.lose(core, peer, why);
                self.connecting.swap_remove(i);
                continue;
            }
            self.greet(core, peer, now);
        }
    }
}
