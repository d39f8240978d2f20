//! Several rails to a peer: an endpoint for each interface that all hosts have, or for each path of an interface.
//!
//! ```text
//!   the first rail      messages, flags, atomics; whatever another one does not take
//!   the further rails   `write_over`, `read_over`, each remembered until it is over
//! ```
//! A further rail is tried when it is first asked for, by a read of a word of the peer. It is used once the read is complete,
//! because an interface may lead nowhere. Memory has the same key on all rails, so there are several rails only if the provider
//! lets this library choose keys.
//!
//! A rail that fails is not used again. Its incomplete transfers are repeated over the first rail once nothing of them can have an
//! effect any more:
//!
//! ```text
//!   A: a transfer fails, A ends its connections with B on the rail,
//!      and reads them to their end          ──── shut (rail) ───>  B: the same
//!   A: all its transfers there are over or failed  <─── shut (rail) ────
//!   A: repeats those that failed
//! ```
//! Without B's message, data in a buffer of B's kernel could be placed after the repetition, over later data. If the connections
//! cannot be seen, B cannot send that message, and the peer is lost.

use crate::address;
use crate::alive::GONE;
use crate::connection_state::ConnectionState;
use crate::object::Objects;
use crate::requests::{OfiRequest, RemoteTransfer};
use crate::sockets::Sockets;
use crate::state::{OfiCore, OfiState};
use crate::wire::OfiMessageKind;
use crate::work::OfiWork;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_fabric::{Fault, Key, Region, RemoteAddr};

/// Maximum number of rails of a process.
pub const RAILS_MAX: usize = 4;

/// Time after which a rail that has not connected to a peer counts as one that does not lead there.
const TRIAL: Duration = Duration::from_secs(4);

/// Time between two looks at connections that are being shut.
const SCAN: Duration = Duration::from_millis(2);

/// Number of polls of the first rail per poll of the other rails, while no transfer that this process knows of is under way.
const REST: u32 = 8;

/// Size of the memory for probes, in bytes: a word that peers read, and the place for the word that is read from a peer.
pub const PROBE: usize = 16;

/// A rail other than the first.
pub struct ExtraRail {
    pub objects: Arc<Objects>,
    /// By rank: the provider's number for the address, the address in readable form, and the address of TCP.
    pub numbers: Vec<u64>,
    pub addresses: Vec<String>,
    pub ips: Vec<Option<SocketAddr>>,
}

/// Memory by which rails are tried.
pub struct Probes {
    pub own: Region,
    /// Words to read, by rank.
    pub words: Vec<RemoteAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    New,
    /// Tried since this time. The probe has not been posted.
    Connecting(Instant),
    /// The probe is under way.
    Asked,
    Open,
    Shut,
}

/// A further rail to one peer.
#[derive(Default)]
pub struct Over {
    phase: Phase,
    /// Number of transfers that the provider has.
    pub under_way: usize,
    /// Transfers that found no room.
    pub kept: VecDeque<RemoteTransfer>,
    /// Transfers that failed.
    repeat: Vec<RemoteTransfer>,
    /// True if this end's connections are gone and the peer has been told.
    told: bool,
    /// True if the peer's connections are gone.
    heard: bool,
    /// Number of looks in a row that found no connection.
    gone: u8,
}

impl Over {
    /// Drops all transfers, since the peer is lost.
    pub fn forget(&mut self) {
        self.kept.clear();
        self.repeat.clear();
    }

    /// Returns true if the provider has lost transfers: their connection is gone, and nothing was heard of them.
    pub fn is_stuck(&mut self, link: impl FnOnce() -> ConnectionState) -> bool {
        if self.under_way == 0 || link() != ConnectionState::Gone {
            self.gone = 0;
            return false;
        }
        self.gone += 1;
        self.gone > GONE
    }
}

impl OfiState {
    /// Returns the rail that takes a transfer that is meant for `rail`.
    fn way(&mut self, core: &OfiCore, rail: usize, peer: usize) -> usize {
        if rail == 0 {
            return 0;
        }
        // Processes of other jobs have only the first rail.
        let Some(over) = self.peer(core, peer).over.get_mut(rail - 1) else { return 0 };
        match over.phase {
            Phase::Open => return rail,
            Phase::New => {
                over.phase = Phase::Connecting(Instant::now());
                self.asking.push((peer as u32, rail as u8));
                self.ask_again(core);
            }
            _ => {}
        }
        0
    }

    /// Returns true if `rail` carries something to `peer`, or may do so when it is asked to.
    pub fn rail_works(&self, rail: usize, peer: usize) -> bool {
        let Some(it) = &self.peers[peer] else { return true };
        let works = |over: &Over| matches!(over.phase, Phase::New | Phase::Open);
        !it.lost && (rail == 0 || it.over.get(rail - 1).is_some_and(works))
    }

    /// Posts or keeps a transfer that the program asks for over a rail.
    pub fn ask_over(
        &mut self,
        core: &OfiCore,
        rail: usize,
        peer: usize,
        mut transfer: RemoteTransfer,
    ) -> Result<(), Fault> {
        if let Some(fault) = self.refuses(core, peer) {
            return Err(fault);
        }
        let ordered = rail == 0 && core.objects.facts.sends_follow_writes;
        if transfer.write && !ordered && rail < RAILS_MAX {
            transfer.counts = Some(rail as u8);
            self.peer(core, peer).written[rail] += 1;
        }
        let way = self.way(core, rail, peer);
        if way == 0 {
            self.submit(core, peer, OfiWork::Transfer(transfer));
            return Ok(());
        }
        let waits = !self.peer(core, peer).over[way - 1].kept.is_empty();
        if waits || !self.transfer(core, peer, way, transfer) {
            self.peer(core, peer).over[way - 1].kept.push_back(transfer);
            self.wait_for(core, peer);
        }
        Ok(())
    }

    /// Returns true if a flag over the first rail arrives after everything that was written over `rail` before.
    pub fn is_behind(&self, rail: usize, peer: usize) -> bool {
        let written = |written: &[u32; RAILS_MAX]| written.get(rail).is_some_and(|&n| n == 0);
        self.peers[peer].as_ref().is_none_or(|it| written(&it.written))
    }

    /// Counts a transfer that has ended well.
    pub fn is_over(&mut self, core: &OfiCore, peer: usize, rail: u8, transfer: &RemoteTransfer) {
        self.carried[usize::from(rail)] += transfer.local.len() as u64;
        if rail == 0 && transfer.counts.is_none() {
            return;
        }
        let it = self.peer(core, peer);
        if rail > 0 {
            it.over[usize::from(rail) - 1].under_way -= 1;
        }
        if let Some(rail) = transfer.counts {
            it.written[usize::from(rail)] -= 1;
        }
    }

    /// Posts transfers that are kept for the further rails to `rank`. Returns true if anything moved.
    pub fn drain_rails(&mut self, core: &OfiCore, rank: usize) -> bool {
        let mut moved = false;
        for rail in 1..=self.peer(core, rank).over.len() {
            while let Some(transfer) = self.peer(core, rank).over[rail - 1].kept.pop_front() {
                if !self.transfer(core, rank, rail, transfer) {
                    self.peer(core, rank).over[rail - 1].kept.push_front(transfer);
                    break;
                }
                moved = true;
            }
        }
        moved
    }

    /// Takes completed operations of the further rails, at once if `must` is set and at every few polls otherwise. Returns true if
    /// anything moved.
    #[inline]
    pub fn poll_others(&mut self, core: &OfiCore, must: bool) -> bool {
        !core.others.is_empty() && self.look_over(core, must)
    }

    fn look_over(&mut self, core: &OfiCore, must: bool) -> bool {
        let changes = !self.closing.is_empty() || !self.asking.is_empty();
        // Peers that reach memory here need polls of this process, too.
        let busy = changes || self.memory.exposed > 0 || self.requests.open() > 0;
        let rest = self.others_rest.get();
        if !must && !busy && rest > 0 {
            self.others_rest.set(rest - 1);
            return false;
        }
        let mut moved = false;
        for rail in &core.others {
            moved |= self.poll_queue(core, &rail.objects);
            // The transfers under way on that connection fail and are reported by themselves.
            while rail.objects.take_gone().is_some() {}
        }
        self.others_rest.set(if moved { 0 } else { REST });
        if changes {
            self.ask_again(core);
            moved |= self.tend(core);
        }
        moved
    }

    /// Returns true if a transfer waits to be repeated.
    pub fn repeats(&self) -> bool {
        let waits = |&(peer, rail): &(u32, u8)| {
            let peer = self.peers[peer as usize].as_ref();
            peer.is_some_and(|it| !it.over[usize::from(rail) - 1].repeat.is_empty())
        };
        self.closing.iter().any(waits)
    }

    /// Posts the probes of rails that are still to connect. The provider takes no probe before the rail is connected.
    #[cold]
    fn ask_again(&mut self, core: &OfiCore) {
        for i in (0..self.asking.len()).rev() {
            let (peer, rail) = (self.asking[i].0 as usize, usize::from(self.asking[i].1));
            let phase = self.peer(core, peer).over[rail - 1].phase;
            let Phase::Connecting(since) = phase else {
                self.asking.swap_remove(i);
                continue;
            };
            match self.probe(core, peer, rail) {
                Ok(true) => {
                    self.peer(core, peer).over[rail - 1].phase = Phase::Asked;
                    self.asking.swap_remove(i);
                }
                Ok(false) if since.elapsed() < TRIAL => {}
                Ok(false) => {
                    self.asking.swap_remove(i);
                    self.rail_failed(core, peer, rail, "it does not connect");
                }
                Err(why) => {
                    self.asking.swap_remove(i);
                    self.rail_failed(core, peer, rail, &why);
                }
            }
        }
    }

    /// Posts a probe. Returns false if the provider does not take it yet.
    fn probe(&mut self, core: &OfiCore, peer: usize, rail: usize) -> Result<bool, String> {
        let probes = core.probes.as_ref().ok_or("there are no probes")?;
        let target = address::decode(peer, probes.words[peer], 8).map_err(|e| e.to_string())?;
        let Key(own) = probes.own.remote.key;
        let (objects, number) = self.on(core, rail, peer);
        let at = if objects.names_by_address() { target.at } else { target.offset };
        let (local, descriptor) = (probes.own.local.part(8, 8), self.memory.descriptor(rail, own));
        let request = self.requests.add(peer, OfiRequest::Probe(rail as u8));
        let context = self.requests.context(request);
        let remote = (at, target.key);
        // SAFETY: `transfer` needs local memory that lives until the operation is complete: allocated memory stays mapped as long
        // as the fabric. The descriptor is that of its registration.
        let posted =
            unsafe { objects.transfer(number, (local, descriptor), remote, false, context) };
        if posted != 0 {
            self.requests.take(request);
        }
        match posted {
            0 => Ok(true),
            posted if posted == -crate::ffi::FI_EAGAIN => Ok(false),
            posted => Err(objects.why(posted)),
        }
    }

    /// Opens a rail whose probe has come back.
    #[cold]
    pub fn rail_opens(&mut self, core: &OfiCore, peer: usize, rail: usize) {
        let over = &mut self.peer(core, peer).over[rail - 1];
        if over.phase == Phase::Asked {
            over.phase = Phase::Open;
            // This sets the times after which the kernel gives up the new connection.
            Sockets::own(core);
        }
    }

    /// Handles a failed transfer on a further rail.
    #[cold]
    pub fn rail_lost(
        &mut self,
        core: &OfiCore,
        peer: usize,
        rail: u8,
        transfer: RemoteTransfer,
        reason: &str,
    ) {
        let rail = usize::from(rail);
        let it = self.peer(core, peer);
        it.over[rail - 1].under_way -= 1;
        if !it.lost && !it.left {
            it.over[rail - 1].repeat.push(transfer);
        }
        self.rail_failed(core, peer, rail, reason);
    }

    /// Shuts a further rail that does not work towards a peer. The rail is not used any more.
    #[cold]
    pub fn rail_failed(&mut self, core: &OfiCore, peer: usize, rail: usize, why: &str) {
        let it = self.peer(core, peer);
        let over = &mut it.over[rail - 1];
        if it.lost || it.left || over.phase == Phase::Shut {
            return;
        }
        over.phase = Phase::Shut;
        let kept = std::mem::take(&mut over.kept);
        self.closing.push((peer as u32, rail as u8));
        let place = core.place(peer);
        let facts = &core.others[rail - 1].objects.facts;
        let address = &core.others[rail - 1].addresses[peer];
        self.notes.push(format!(
            "{} carries nothing to process {peer} on {}, at {address}: {why}; other rails do",
            facts.domain, place.host
        ));
        // The provider has seen nothing of these transfers.
        for transfer in kept {
            self.submit(core, peer, OfiWork::Transfer(transfer));
        }
    }

    /// Handles the message that a peer's end of a rail is shut. `words`: the rail, and 1 if it is certain that nothing comes over
    /// the rail any more.
    #[cold]
    pub fn hear_shut(&mut self, core: &OfiCore, peer: usize, words: [u64; 3]) -> Result<(), Fault> {
        let [rail, certain, _] = words;
        let rail = usize::try_from(rail).unwrap_or(usize::MAX);
        if rail == 0 || rail > self.peer(core, peer).over.len() {
            return Err(Fault::corrupt(peer, "number of a rail"));
        }
        let over = &mut self.peer(core, peer).over[rail - 1];
        over.heard = true;
        if certain == 0 && (over.under_way > 0 || !over.repeat.is_empty()) {
            self.lose(core, peer, "a transfer", BLIND);
            return Ok(());
        }
        self.rail_failed(core, peer, rail, "the peer has shut it");
        Ok(())
    }

    /// Advances the rails that are being shut. Returns true if anything moved.
    #[cold]
    pub fn tend(&mut self, core: &OfiCore) -> bool {
        let (mut moved, now) = (false, Instant::now());
        let mut sockets = None;
        for i in (0..self.closing.len()).rev() {
            let (peer, rail) = (self.closing[i].0 as usize, usize::from(self.closing[i].1));
            let it = self.peer(core, peer);
            let over = &mut it.over[rail - 1];
            if it.lost || it.left {
                let lost = !it.lost && !over.repeat.is_empty();
                self.closing.swap_remove(i);
                if lost {
                    let why = "it has left before it took what was written".to_owned();
                    self.fail(Fault::lost(peer), why);
                }
                continue;
            }
            if !over.told && now >= self.next_scan {
                let sockets = sockets.get_or_insert_with(|| Sockets::own(core));
                match sockets.shut(core, rail, peer) {
                    Some(0) => self.tell_shut(core, peer, rail, true),
                    Some(_) => {}
                    None => self.shut_blindly(core, peer, rail),
                }
                moved = true;
            }
            let over = &mut self.peer(core, peer).over[rail - 1];
            if over.told && over.heard && over.under_way == 0 {
                let repeat = std::mem::take(&mut over.repeat);
                self.closing.swap_remove(i);
                self.repeated += repeat.len() as u64;
                for transfer in repeat {
                    self.submit(core, peer, OfiWork::Transfer(transfer));
                }
                moved = true;
            }
        }
        if sockets.is_some() {
            self.next_scan = now + SCAN;
        }
        moved
    }

    /// Returns true if some connection is still to be read to its end. No event reports that end.
    pub fn is_shutting(&self) -> bool {
        let untold = |&(peer, rail): &(u32, u8)| {
            let peer = self.peers[peer as usize].as_ref();
            peer.is_some_and(|it| !it.over[usize::from(rail) - 1].told)
        };
        self.closing.iter().any(untold)
    }

    fn tell_shut(&mut self, core: &OfiCore, peer: usize, rail: usize, certain: bool) {
        self.peer(core, peer).over[rail - 1].told = true;
        let words = [rail as u64, certain.into(), 0];
        self.submit(core, peer, OfiWork::Tell { kind: OfiMessageKind::Shut, words });
    }

    /// Shuts a rail whose connections cannot be seen.
    fn shut_blindly(&mut self, core: &OfiCore, peer: usize, rail: usize) {
        let over = &self.peer(core, peer).over[rail - 1];
        if over.under_way > 0 || !over.repeat.is_empty() {
            self.lose(core, peer, "a transfer", BLIND);
        } else {
            self.tell_shut(core, peer, rail, false);
        }
    }
}

/// Reason for the loss of a peer whose rail failed.
const BLIND: &str = "a rail has failed, and its connections cannot be seen, so nothing can be repeated over another";
