//! How two processes come to be connected, when one of them first has something for the other.
//!
//! ```text
//!   A: makes its end ──── greeting (number of the end) ───>  B: makes its end, which can receive
//!   A's end can receive  <─── greeting, heard ─────────────
//!   A may send           ──── greeting, heard, settled ───>  B may send
//! ```
//! Greetings are datagrams between addresses that all have published; whoever is not settled repeats
//! its own, with growing pauses. Both may begin at once: there is one end on each side, and a greeting
//! says all of it. What arrives on the connection itself also says that the peer has heard.

use crate::connection::{Connection, Phase};
use crate::datagrams::GRH;
use crate::ffi::*;
use crate::object::{self, BATCH};
use crate::path::Traffic;
use crate::rail::MULTICAST_TAG;
use crate::state::{Core, State};
use crate::wire::Greeting;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};
use weft_fabric::{Fault, Sge};

/// Longest pause between two greetings.
const PAUSE_MOST: Duration = Duration::from_millis(500);
/// The same for further connections, which nobody waits for.
const PAUSE_FURTHER: Duration = Duration::from_secs(4);

/// A number that differs from process to process and from call to call.
pub fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

impl State {
    /// Begins to make connection `link`. False: that failed, and is a fault if it is a first one.
    #[cold]
    pub fn begin(&mut self, core: &Core, link: usize) -> bool {
        match self.make_end(core, link) {
            Ok(()) => true,
            Err((_, why)) if core.is_further(link) => {
                self.give_up(core, link, &why);
                false
            }
            Err((fault, why)) => {
                self.fail(fault, why);
                false
            }
        }
    }

    fn make_end(&mut self, core: &Core, link: usize) -> Result<(), (Fault, String)> {
        let (at, peer, further) = (link, core.peer_of(link), core.is_further(link));
        let system = |error: crate::ConnectError| {
            let errno = error.errno();
            let fault = Fault::system("connecting with a process", errno);
            (fault, format!("connecting with process {peer}: {error}"))
        };
        if !further && self.connections == core.bounds.connections {
            let what = "connecting with one more process (the adapter or an option allows no more)";
            let why = format!("there are {} connections already", self.connections);
            return Err((Fault::system(what, libc::ENOBUFS), why));
        }
        let number = core.rail_of(link);
        let rail = &mut self.rails[number];
        let to = core.addresses[peer].rails[number];
        let wrap = |fault: Fault| {
            let why = format!("connecting with process {peer}: {fault}");
            (fault, why)
        };
        let count = match further {
            true => core.bounds.further_buffers(),
            false => core.bounds.buffers(),
        };
        rail.grow(number, count, &mut self.memories).map_err(wrap)?;
        let (pair, inline) = rail.pair().map_err(system)?;
        let now = Instant::now();
        let psn = random() as u32 & 0x00ff_ffff;
        let mut link = Connection::new(pair, inline, number, psn, now);
        link.further = further.then(Box::default);
        self.routes[number].insert(link.pair.number(), at as u32);
        if peer == core.rank {
            let own = link.pair.number();
            rail.connect(&link.pair, psn, &to, own, psn, rail.reads).map_err(system)?;
            link.phase = Phase::Open;
            link.messages = core.bounds.messages as u32;
            link.events = core.bounds.events as u32;
        } else {
            let mut path = rail.path(&to, Traffic::Datagrams);
            link.path = Some(object::handle(&rail.domain, &mut path).map_err(system)?);
            self.greeting.push(at as u32);
        }
        self.peers[at] = Some(Box::new(link));
        self.connections += usize::from(!further);
        if peer != core.rank {
            self.greet(core, at, now);
        }
        Ok(())
    }

    /// Sends our greeting (again). A lost one is repeated.
    fn greet(&mut self, core: &Core, link: usize, now: Instant) {
        let (at, peer) = (link, core.peer_of(link));
        let State { peers, rails, memories, .. } = self;
        let link = peers[at].as_deref_mut().expect("an end");
        let rail = &mut rails[link.rail];
        let greeting = Greeting {
            nonce: core.nonce,
            from: core.rank as u32,
            to: peer as u32,
            number: link.pair.number(),
            psn: link.psn,
            messages: core.bounds.messages as u16,
            events: core.events_by(at) as u16,
            rail: link.rail as u8,
            reads: rail.reads,
            heard: link.theirs.is_some(),
            settled: link.phase != Phase::Greeting,
        };
        let mut bytes = greeting.encode();
        // SAFETY: copied before `send` returns.
        let part = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
        let number = core.addresses[peer].rails[link.rail].number;
        if let Some(path) = &link.path {
            rail.greeter.send(memories, path, number, &[part]);
        }
        link.asking.next = now + link.asking.pause;
        let most = if at == peer { PAUSE_MOST } else { PAUSE_FURTHER };
        link.asking.pause = (link.asking.pause * 2).min(most);
    }

    /// Takes the datagrams that have come to `rail`.
    pub fn poll_datagrams(&mut self, core: &Core, rail: usize) -> bool {
        let mut done = [ibv_wc::default(); BATCH];
        let n = self.rails[rail].base.datagrams.poll(&mut done);
        for wc in &done[..n] {
            if wc.wr_id >= MULTICAST_TAG {
                self.datagram(core, wc);
                continue;
            }
            let greeter = &self.rails[rail].greeter;
            let slot = greeter.slot_of(wc.wr_id);
            let mut bytes = [0; crate::wire::GREETING];
            let whole = wc.status == IBV_WC_SUCCESS && wc.byte_len as usize == GRH + bytes.len();
            if let Some(part) = greeter.received(slot, wc.byte_len).filter(|_| whole) {
                part.read(&mut bytes);
            }
            greeter.listen(slot, &self.memories);
            if let Some(greeting) = Greeting::decode(&bytes) {
                self.greeted(core, rail, wc.src_qp, greeting);
            }
        }
        n > 0
    }

    fn greeted(&mut self, core: &Core, rail: usize, source: u32, greeting: Greeting) {
        let peer = greeting.from as usize;
        // Another job's, or nobody's.
        let ours = greeting.nonce == core.nonce
            && greeting.to as usize == core.rank
            && peer < core.addresses.len()
            && peer != core.rank
            && greeting.rail as usize == rail
            && core.addresses[peer].rails[rail].number == source;
        if !ours {
            return;
        }
        let at = core.link_over(peer, rail);
        // Whoever asks for a further one has a first one, which is known here, too.
        let known = core.rail_of(at) == rail && (at == peer || self.peers[peer].is_some());
        if !known || self.peers[at].is_none() && !self.begin(core, at) {
            return;
        }
        let State { peers, rails, .. } = &mut *self;
        let link = peers[at].as_deref_mut().expect("begun above");
        if matches!(link.phase, Phase::Gone | Phase::Lost) {
            return;
        }
        if link.theirs.is_none() {
            let to = &core.addresses[peer].rails[rail];
            let Greeting { number, psn, reads, .. } = greeting;
            let connected = rails[rail].connect(&link.pair, link.psn, to, number, psn, reads);
            if let Err(error) = connected {
                let why = format!("connecting with process {peer}: {error}");
                match at == peer {
                    true => self.fail(Fault::lost(peer), why),
                    false => self.shut(core, at, &why),
                }
                return;
            }
            link.theirs = Some(greeting);
            link.messages += u32::from(greeting.messages);
            link.events += u32::from(greeting.events);
        }
        if greeting.heard && link.phase == Phase::Greeting {
            self.settle(core, at);
        }
        if !greeting.settled {
            self.greet(core, at, Instant::now());
        }
    }

    /// The peer can receive: what was kept for it may go.
    pub fn settle(&mut self, core: &Core, peer: usize) {
        let link = self.link(peer);
        // Without its greeting nothing could have come.
        if link.theirs.is_some() {
            link.phase = Phase::Open;
            self.greeting.retain(|&other| other != peer as u32);
            self.drain(core, peer);
        }
    }

    /// Repeats greetings whose time has come, and gives up on those who never answer.
    pub fn greet_again(&mut self, core: &Core, now: Instant) {
        for i in (0..self.greeting.len()).rev() {
            let peer = self.greeting[i] as usize;
            let link = self.link(peer);
            let waited = link.asking.wait(now);
            if now < link.asking.next {
                continue;
            }
            // Whoever was only asked has nothing to lose by waiting.
            if !link.is_empty() && waited > core.options.patience {
                let host = &core.addresses[core.peer_of(peer)].host;
                let why = format!(
                    "process {peer} on {host} has not answered for {} s: it has ended, or it makes \
                     no MPI calls, or datagrams do not reach it",
                    waited.as_secs()
                );
                self.fail(Fault::lost(peer), why);
                self.greeting.swap_remove(i);
                continue;
            }
            self.greet(core, peer, now);
        }
    }
}
