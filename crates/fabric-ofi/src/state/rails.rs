//! Several rails to a peer: an endpoint for each interface that all hosts have, or for each path of an interface.
//!
//! ```text
//!   the first rail      messages, flags, atomics; transfers that no other rail takes
//!   the further rails   `write_over`, `read_over`, each remembered until it is complete
//! ```
//! A further rail is tried when a transfer first names it: a probe reads a word of the peer. The rail is used only once the probe
//! is complete, because not every interface leads to the peer. Memory has the same key on all rails, so there are several rails
//! only if the provider lets this library choose keys.
//!
//! A rail that fails is not used again. Its incomplete transfers are repeated over the first rail, once the old transfers cannot
//! take effect any more:
//!
//! ```text
//!   A: a transfer fails, A ends its connections with B on the rail,
//!      and reads them to their end          ──── shut (rail) ───>  B: the same
//!   A: all its transfers there have completed or failed  <─── shut (rail) ────
//!   A: repeats the failed transfers
//! ```
//! Without B's message, data in a buffer of B's kernel could be placed after the repetition, over later data. An end that cannot
//! see its connections cannot promise that no such data are left. Then a peer with incomplete transfers on the rail counts as lost.

use super::OfiState;
use crate::access::{LocalPiece, RemoteKey, TransferKind};
use crate::address;
use crate::ffi::FI_EAGAIN;
use crate::job::OfiCore;
use crate::options::RAILS_MAX;
use crate::peer_rail::{PeerRail, RailPhase};
use crate::poll_pace::{PollNeed, PollResult};
use crate::rail_changes::{RailOfPeer, SCAN};
use crate::requests::{OfiRequest, RemoteTransfer};
use crate::sockets::Sockets;
use crate::wire::OfiMessageKind;
use crate::work::OfiWork;
use std::time::{Duration, Instant};
use weft_fabric::{Fault, Key};

/// Maximum time for a rail to connect to a peer. After that the rail counts as not leading to the peer.
const TRIAL: Duration = Duration::from_secs(4);

impl OfiState {
    /// Returns the rail that carries a transfer requested on `rail`: `rail` if it is open, else the first rail.
    fn way(&mut self, core: &OfiCore, rail: usize, peer: usize) -> usize {
        if rail == 0 {
            return 0;
        }
        // Processes of other jobs have only the first rail.
        let Some(over) = self.peer(core, peer).over.get_mut(rail - 1) else { return 0 };
        match over.phase {
            RailPhase::Open => return rail,
            RailPhase::New => {
                over.phase = RailPhase::Connecting(Instant::now());
                self.changes.asking.push(RailOfPeer { peer, rail });
                self.ask_again(core);
            }
            _ => {}
        }
        0
    }

    /// Returns true if `rail` carries data to `peer`, or may carry data once it is tried.
    pub fn rail_works(&self, rail: usize, peer: usize) -> bool {
        let Some(it) = self.peers.get(peer) else { return true };
        let works = |over: &PeerRail| matches!(over.phase, RailPhase::New | RailPhase::Open);
        !it.lost && (rail == 0 || it.over.get(rail - 1).is_some_and(works))
    }

    /// Posts or keeps a transfer that the program requests on a rail.
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
        if transfer.access == TransferKind::Write && !ordered && rail < RAILS_MAX {
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
            self.peers.wait_for(core, peer);
        }
        Ok(())
    }

    /// Returns true if a flag over the first rail arrives after all earlier writes that were requested on `rail`.
    pub fn is_behind(&self, rail: usize, peer: usize) -> bool {
        let written = |written: &[u32; RAILS_MAX]| written.get(rail).is_some_and(|&n| n == 0);
        self.peers.get(peer).is_none_or(|it| written(&it.written))
    }

    /// Counts a completed transfer.
    pub fn is_over(&mut self, core: &OfiCore, peer: usize, rail: u8, transfer: &RemoteTransfer) {
        self.counts.carried[usize::from(rail)] += transfer.local.len() as u64;
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

    /// Takes completed operations of the further rails. If nothing is under way, polls these rails only in every Nth call. Returns
    /// true if anything moved.
    #[inline]
    pub fn poll_others(&mut self, core: &OfiCore, look: PollNeed) -> bool {
        !core.others.is_empty() && self.look_over(core, look)
    }

    fn look_over(&mut self, core: &OfiCore, look: PollNeed) -> bool {
        let changes = self.changes.any();
        // Peers that access exposed memory here also need polls of this process.
        let busy = changes || self.memory.exposed > 0 || self.requests.open() > 0;
        if look == PollNeed::Usual && !busy && self.pace.skips_others() {
            return false;
        }
        let mut moved = false;
        for rail in &core.others {
            moved |= self.poll_queue(core, &rail.objects);
            // The end of a connection needs no action: the provider reports each transfer that fails with it.
            while rail.objects.take_gone().is_some() {}
        }
        self.pace.count_others(if moved { PollResult::Moved } else { PollResult::Nothing });
        if changes {
            self.ask_again(core);
            moved |= self.tend(core);
        }
        moved
    }

    /// Returns true if a transfer waits to be repeated.
    pub fn repeats(&self) -> bool {
        let waits = |&RailOfPeer { peer, rail }: &RailOfPeer| {
            self.peers.get(peer).is_some_and(|it| !it.over[rail - 1].repeat.is_empty())
        };
        self.changes.closing.iter().any(waits)
    }

    /// Posts the probes of rails that are being connected. The provider accepts a probe only once the rail is connected.
    #[cold]
    fn ask_again(&mut self, core: &OfiCore) {
        for i in (0..self.changes.asking.len()).rev() {
            let RailOfPeer { peer, rail } = self.changes.asking[i];
            let phase = self.peer(core, peer).over[rail - 1].phase;
            let RailPhase::Connecting(since) = phase else {
                self.changes.asking.swap_remove(i);
                continue;
            };
            match self.probe(core, peer, rail) {
                Ok(true) => {
                    self.peer(core, peer).over[rail - 1].phase = RailPhase::Asked;
                    self.changes.asking.swap_remove(i);
                }
                Ok(false) if since.elapsed() < TRIAL => {}
                Ok(false) => {
                    self.changes.asking.swap_remove(i);
                    self.rail_failed(core, peer, rail, "it does not connect");
                }
                Err(why) => {
                    self.changes.asking.swap_remove(i);
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
        let (local, descriptor) =
            (probes.own.local.part(8, 8), self.memory.registrations.descriptor(rail, own));
        let request = self.requests.add(peer, OfiRequest::Probe(rail as u8));
        let context = self.requests.context(request);
        let remote = RemoteKey { at, key: target.key };
        let local = LocalPiece { memory: local, descriptor };
        // SAFETY: `transfer` needs local memory that lives until the operation is complete: allocated memory stays mapped as long
        // as the fabric. The descriptor is that of its registration.
        let posted =
            unsafe { objects.transfer(number, TransferKind::Read, local, remote, context) };
        if posted != 0 {
            self.requests.take(request);
        }
        match posted {
            0 => Ok(true),
            posted if posted == -FI_EAGAIN => Ok(false),
            posted => Err(objects.why(posted)),
        }
    }

    /// Opens a rail whose probe has come back.
    #[cold]
    pub fn rail_opens(&mut self, core: &OfiCore, peer: usize, rail: usize) {
        let over = &mut self.peer(core, peer).over[rail - 1];
        if over.phase == RailPhase::Asked {
            over.phase = RailPhase::Open;
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
        if it.lost || it.left || over.phase == RailPhase::Shut {
            return;
        }
        over.phase = RailPhase::Shut;
        let kept = std::mem::take(&mut over.kept);
        self.changes.closing.push(RailOfPeer { peer, rail });
        let place = core.place(peer);
        let facts = &core.others[rail - 1].objects.facts;
        let address = &core.others[rail - 1].addresses[peer];
        self.trouble.note(format!(
            "{} carries nothing to process {peer} on {}, at {address}: {why}; other rails do",
            facts.domain, place.host
        ));
        // These transfers were never posted, so they can be repeated at once.
        for transfer in kept {
            self.submit(core, peer, OfiWork::Transfer(transfer));
        }
    }

    /// Handles a message by which a peer reports that its end of a rail is shut. `words` are the rail, and 1 if it is certain that
    /// nothing comes over the rail any more.
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

    /// Advances the shutdown of rails. Returns true if anything moved.
    #[cold]
    pub fn tend(&mut self, core: &OfiCore) -> bool {
        let (mut moved, now) = (false, Instant::now());
        let mut sockets = None;
        for i in (0..self.changes.closing.len()).rev() {
            let RailOfPeer { peer, rail } = self.changes.closing[i];
            let it = self.peer(core, peer);
            let over = &mut it.over[rail - 1];
            if it.lost || it.left {
                let lost = !it.lost && !over.repeat.is_empty();
                self.changes.closing.swap_remove(i);
                if lost {
                    let why = "it has left before it took what was written".to_owned();
                    self.trouble.fail(Fault::lost(peer), why);
                }
                continue;
            }
            if !over.told && now >= self.changes.next_scan {
                let sockets = sockets.get_or_insert_with(|| Sockets::own(core));
                match sockets.shut(core, rail, peer) {
                    Some(0) => self.tell_shut(core, peer, rail, ShutCertainty::Certain),
                    Some(_) => {}
                    None => self.shut_blindly(core, peer, rail),
                }
                moved = true;
            }
            let over = &mut self.peer(core, peer).over[rail - 1];
            if over.told && over.heard && over.under_way == 0 {
                let repeat = std::mem::take(&mut over.repeat);
                self.changes.closing.swap_remove(i);
                self.counts.repeated += repeat.len() as u64;
                for transfer in repeat {
                    self.submit(core, peer, OfiWork::Transfer(transfer));
                }
                moved = true;
            }
        }
        if sockets.is_some() {
            self.changes.next_scan = now + SCAN;
        }
        moved
    }

    /// Returns true if a connection is not yet read to its end. No event reports this end, so sleeps must be naps.
    pub fn is_shutting(&self) -> bool {
        let untold = |&RailOfPeer { peer, rail }: &RailOfPeer| {
            self.peers.get(peer).is_some_and(|it| !it.over[rail - 1].told)
        };
        self.changes.closing.iter().any(untold)
    }

    fn tell_shut(&mut self, core: &OfiCore, peer: usize, rail: usize, certainty: ShutCertainty) {
        self.peer(core, peer).over[rail - 1].told = true;
        let words = [rail as u64, u64::from(certainty == ShutCertainty::Certain), 0];
        self.tell(core, peer, OfiMessageKind::Shut, words);
    }

    /// Shuts a rail whose connections cannot be seen.
    fn shut_blindly(&mut self, core: &OfiCore, peer: usize, rail: usize) {
        let over = &self.peer(core, peer).over[rail - 1];
        if over.under_way > 0 || !over.repeat.is_empty() {
            self.lose(core, peer, "a transfer", BLIND);
        } else {
            self.tell_shut(core, peer, rail, ShutCertainty::Blind);
        }
    }
}

/// Certainty with which this end tells the peer that a rail is shut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShutCertainty {
    /// Nothing comes over the rail any more.
    Certain,
    /// The connections cannot be seen.
    Blind,
}

/// Reason for the loss of a peer whose rail failed.
const BLIND: &str = "a rail has failed, and its connections cannot be seen, so nothing can be repeated over another";
