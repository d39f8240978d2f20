//! Connect requests of this process: datagrams that describe this process's end of a connection.

use crate::adapter::object;
use crate::adapter::path::Traffic;
use crate::connection::connections::Connections;
use crate::connection::{ConnectionPhase, LocalEnd, VerbsConnection};
use crate::job::VerbsCore;
use crate::memory::Memories;
use crate::rail::VerbsRail;
use crate::wire::ConnectRequest;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};
use weft_bootstrap::keyed_hash;
use weft_fabric::{Fault, Sge};

/// Maximum pause between two connect requests of a first connection.
const PAUSE_MOST: Duration = Duration::from_millis(500);
/// Maximum pause between two connect requests of a secondary connection. It is long, because no operation waits for the connection.
const PAUSE_SECONDARY: Duration = Duration::from_secs(4);

/// Time after which a rail counts as not working if a connect request on it has no answer. Once the peer answers, the rail works
/// again.
pub const TRIAL: Duration = Duration::from_secs(2);

/// Reason why this end of a connection could not be made.
pub struct SetupFailure {
    pub fault: Fault,
    /// Description in words.
    pub why: String,
}

/// Returns a random number, which differs between processes and between calls.
pub fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// Returns the number that identifies connect requests between connected jobs. It is a hash of their common secret, which is never
/// sent.
fn nonce_of(secret: u128) -> u64 {
    keyed_hash(secret, "nonce")
}

/// Connections that exchange connect requests.
pub struct Handshakes {
    pub connecting: Vec<u32>,
}

impl Handshakes {
    /// Makes an empty list with room for `connections` connections.
    pub fn new(connections: usize) -> Handshakes {
        Handshakes { connecting: Vec::with_capacity(connections) }
    }

    /// Ends the exchange for connection `number`, if there is one.
    pub fn end(&mut self, number: u32) {
        self.connecting.retain(|&other| other != number);
    }

    /// Returns true if a first connection is being made, or if a secondary connection is being made and was begun not long ago.
    pub fn is_connecting(&self, core: &VerbsCore, connections: &Connections) -> bool {
        self.connecting.iter().any(|&link| {
            let it = connections.get(link as usize);
            let young = |it: &VerbsConnection| it.asking.since.elapsed() < TRIAL;
            !core.is_secondary(link as usize) || it.is_some_and(young)
        })
    }

    /// Makes this end of connection `number` over `rail`, and asks the peer for the other end.
    pub fn begin(
        &mut self,
        core: &VerbsCore,
        rail: &mut VerbsRail,
        memories: &mut Memories,
        number: usize,
    ) -> Result<VerbsConnection, SetupFailure> {
        let (peer, secondary) = (core.peer_of(number), core.is_secondary(number));
        let system = |error: crate::VerbsConnectError| {
            let fault = Fault::system("connecting with a process", error.errno());
            SetupFailure { fault, why: format!("process {peer}: {error}") }
        };
        let wrap = |fault: Fault| {
            let why = format!("connecting with process {peer}: {fault}");
            SetupFailure { fault, why }
        };
        let place = core.rail_of(number);
        let to = core.address_of(peer, place);
        rail.receives.grow(place, core.buffers_of(number), memories).map_err(wrap)?;
        let (pair, inline) = rail.pair().map_err(system)?;
        let now = Instant::now();
        let psn = random() as u32 & 0x00ff_ffff;
        let mut link =
            VerbsConnection::new(number, LocalEnd { pair, inline, rail: place, psn }, now);
        link.secondary = secondary.then(Box::default);
        if peer == core.rank {
            let own = link.pair.number();
            rail.connect(&link.pair, psn, &to, own, psn, rail.reads).map_err(system)?;
            link.phase = ConnectionPhase::Open;
            link.messages = core.bounds.messages as u32;
            link.events = core.bounds.events as u32;
        } else {
            let mut path = rail.path(&to, Traffic::Datagrams);
            link.path = Some(object::handle(&rail.domain, &mut path).map_err(system)?);
            self.connecting.push(number as u32);
            greet(core, rail, memories, &mut link, now);
        }
        Ok(link)
    }
}

/// Sends the local connect request, for the first time or again. If the datagram is lost, a later call repeats it.
pub fn greet(
    core: &VerbsCore,
    rail: &mut VerbsRail,
    memories: &Memories,
    link: &mut VerbsConnection,
    now: Instant,
) {
    let (at, peer) = (link.number as usize, core.peer_of(link.number as usize));
    let foreign = core.roster.borrow().foreign(peer);
    let own = (core.nonce, core.rank as u32);
    let (nonce, me) = foreign.map_or(own, |foreign| (nonce_of(foreign.secret), foreign.me));
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
    // SAFETY: `Sge::new` needs memory that is valid while in use: `bytes` outlives `send`, which copies it before it returns.
    let part = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
    let number = core.address_of(peer, link.rail).number;
    if let Some(path) = &link.path {
        rail.greeter.send(memories, path, number, &[part]);
    }
    link.asking.next = now + link.asking.pause;
    let most = if at == peer { PAUSE_MOST } else { PAUSE_SECONDARY };
    link.asking.pause = (link.asking.pause * 2).min(most);
}

impl VerbsCore {
    /// Returns true if `request`, which came to `rail` from queue pair `source`, is from a peer and meant for this process. Any
    /// other request belongs to another job, or to an unknown process. Between connected jobs, requests carry a hash of the common
    /// secret instead of the job's nonce.
    pub fn concerns(&self, rail: usize, source: u32, request: &ConnectRequest) -> bool {
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
