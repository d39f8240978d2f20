//! Connection setup between two processes. It begins when one of the two processes first has something to send.
//!
//! ```text
//!   A: makes its end ──── connect request (number of the end) ───>  B: makes its end, which can receive
//!   A's end can receive  <─── connect request, heard ─────────────
//!   A may send           ──── connect request, heard, settled ───>  B may send
//! ```
//! Connect requests are datagrams to the published addresses. A process that has not settled repeats its connect request, with
//! growing pauses. Both processes may begin at the same time, because each process makes its own end, and a connect request
//! describes the sender's end completely. A message on the connection itself also proves that the peer has received the connect
//! request.

use super::VerbsState;
use crate::adapter::object::BATCH;
use crate::connection::ConnectionPhase;
use crate::connection::handshakes::{SetupFailure, greet};
use crate::datagrams::{GRH, MULTICAST_TAG};
use crate::ffi::*;
use crate::job::VerbsCore;
use crate::trouble;
use crate::wire::ConnectRequest;
use std::time::Instant;
use weft_fabric::Fault;

impl VerbsState {
    /// Begins to make connection `link`. Returns false if this failed. If a first connection fails, also records a fault.
    #[cold]
    pub fn begin(&mut self, core: &VerbsCore, link: usize) -> bool {
        let VerbsState { connections, rails, memories, handshakes, trouble, .. } = self;
        let secondary = core.is_secondary(link);
        if !secondary && connections.connected() == core.bounds.all_connections() {
            let what = "connecting with one more process (the adapter or an option allows no more)";
            let why = format!("there are {} connections already", connections.connected());
            trouble.fail(Fault::system(what, libc::ENOBUFS), why);
            return false;
        }
        match handshakes.begin(core, &mut rails[core.rail_of(link)], memories, link) {
            Ok(made) => {
                connections.insert(made);
                return true;
            }
            Err(SetupFailure { why, .. }) if secondary => {
                self.secondary.give_up(core, rails, trouble, link, &why);
            }
            Err(SetupFailure { fault, why }) => trouble.fail(fault, why),
        }
        false
    }

    /// Begins a connection with `peer` if no connection exists. Returns false if the peer has left or is lost. If the peer has
    /// left, also records a fault.
    pub fn reach(&mut self, core: &VerbsCore, peer: usize) -> bool {
        match self.connections.get(peer).map(|link| link.phase) {
            Some(ConnectionPhase::Gone) => {
                trouble::lose(&mut self.trouble, core, peer, "it has left already".to_owned());
                false
            }
            Some(phase) => phase != ConnectionPhase::Lost,
            None => self.begin(core, peer),
        }
    }

    /// Handles the datagrams that have arrived on `rail`.
    pub fn poll_datagrams(&mut self, core: &VerbsCore, rail: usize) -> bool {
        let mut done = [ibv_wc::default(); BATCH];
        let n = self.rails[rail].base.datagrams.poll(&mut done);
        for wc in &done[..n] {
            if wc.wr_id >= MULTICAST_TAG {
                if let Some(multicast) = &mut self.multicast {
                    multicast.keep(core, &self.memories, wc);
                }
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
        // A peer requests a secondary connection only after it has made the first connection, so this process must already have its
        // end of the first connection.
        let known =
            core.rail_of(at) == rail && (at == peer || self.connections.get(peer).is_some());
        if !known || self.connections.get(at).is_none() && !self.begin(core, at) {
            return;
        }
        let VerbsState { connections, rails, handshakes, secondary, trouble, .. } = self;
        let link = connections.of(at);
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
                    true => trouble::lose(trouble, core, peer, why),
                    false => secondary.shut(core, handshakes, trouble, link, &why),
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
            let VerbsState { connections, rails, memories, .. } = self;
            let link = connections.of(at);
            greet(core, &mut rails[rail], memories, link, Instant::now());
        }
    }

    /// Opens the connection, because the peer can receive. Posts the messages and the work that are kept for the peer.
    pub fn settle(&mut self, core: &VerbsCore, number: usize) {
        let link = self.connections.of(number);
        // Traffic can arrive only after this process has received the peer's connect request.
        if link.theirs.is_some() {
            link.phase = ConnectionPhase::Open;
            self.handshakes.end(number as u32);
            self.drain(core, number);
        }
    }

    /// Repeats connect requests that are due. Gives up a peer that has not answered for the time `patience`.
    pub fn greet_again(&mut self, core: &VerbsCore, now: Instant) {
        let VerbsState { connections, rails, memories, handshakes, trouble, .. } = self;
        for i in (0..handshakes.connecting.len()).rev() {
            let number = handshakes.connecting[i] as usize;
            let link = connections.of(number);
            let waited = link.asking.wait(now);
            if now < link.asking.next {
                continue;
            }
            // If no local work waits for the connection (the peer asked first), this end waits without limit, because this costs
            // nothing.
            if !link.is_empty() && waited > core.options.patience {
                let host = core.host_of(core.peer_of(number));
                let why = format!(
                    "it is on {host} and has not answered for {} s: it has ended, or it makes \
                     no MPI calls, or datagrams do not reach it",
                    waited.as_secs()
                );
                trouble::lose(trouble, core, number, why);
                handshakes.connecting.swap_remove(i);
                continue;
            }
            greet(core, &mut rails[link.rail], memories, link, now);
        }
    }
}
