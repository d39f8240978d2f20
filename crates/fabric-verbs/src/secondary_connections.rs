//! Secondary connections with a peer: one on each rail besides the rail of the first connection. They carry writes, reads and
//! the flags after them, and atomics if the target does its atomics on that rail ([`crate::atomics`]).
//!
//! ```text
//!   first connection      messages, flags, immediates; whatever another one does not take
//!   secondary connection    `write_over`, `read_over`, `write_flag_after`: each is one request, and remembered until it
//!                         has completed
//! ```
//! A secondary connection is made when it is first asked for, and used once it is open. A secondary connection that fails is
//! shut for good. Its unfinished work is repeated over the first connection, once nothing of the old work can take effect any
//! more:
//!
//! ```text
//!   A: a request fails, A's end is shut ──── shut (rail) ───>  B: shuts its end
//!   A: all requests are flushed         <─── shut (rail) ────
//!   A: repeats them
//! ```
//! Without B's answer, a delayed packet could be placed after the repetition, over later data.

use crate::connection::{Connection, ConnectionPhase, Record};
use crate::connections::SECONDARY;
use crate::ffi::*;
use crate::memory::NONE;
use crate::pending::{PostedWork, WriteTail};
use crate::state::{VerbsCore, VerbsState, request_id};
use crate::wire::{ImmediateTag, WireKind};
use std::collections::VecDeque;
use std::time::Duration;
use weft_fabric::{Completion, Fault, RemoteAddr, Sge};

/// Time after which a rail whose peer has not answered the connect request counts as not working, until the peer answers.
pub const TRIAL: Duration = Duration::from_secs(2);

/// State that a secondary connection has in addition to that of a first connection.
#[derive(Default)]
pub struct Secondary {
    /// Work to repeat for each request in the window; `None` for a probe or a return of credits.
    pub posted: VecDeque<Option<PostedWork>>,
    /// Work of failed requests, in order, to be repeated.
    repeat: Vec<PostedWork>,
    /// Progress of work that the first connection took in place of this connection: kept, or posted up to a request.
    passed: Option<Passed>,
    /// True if the peer was told that this end is shut.
    told: bool,
    /// True if the peer has said that its end is shut.
    heard: bool,
}

/// Progress of the first connection with work that it took in place of a secondary connection.
#[derive(Clone, Copy)]
enum Passed {
    Kept,
    Posted(u32),
}

impl VerbsCore {
    /// Returns the maximum number of events that a peer may have in flight to this process on connection `link`.
    pub fn events_by(&self, link: usize) -> usize {
        match self.is_secondary(link) {
            true => self.bounds.secondary_events(),
            false => self.bounds.events,
        }
    }

    /// Returns the number of receive buffers that connection `link` adds.
    pub fn buffers_of(&self, link: usize) -> usize {
        match self.is_secondary(link) {
            true => self.bounds.secondary_buffers(),
            false => self.bounds.buffers(),
        }
    }

    /// Returns the number of rails that carry data between this process and `peer`.
    pub fn rails_to(&self, peer: usize) -> usize {
        if peer == self.rank || self.options.rail.is_some() { 1 } else { self.rails }
    }

    /// Returns the number of the connection with `peer` over `rail`, see [`crate::connections`].
    pub fn link_over(&self, peer: usize, rail: usize) -> usize {
        let rails = self.rails_to(peer);
        if rails == 1 {
            return peer;
        }
        match (rail % rails + rails - self.rail_to(peer)) % rails {
            0 => peer,
            place => SECONDARY + peer * (rails - 1) + place - 1,
        }
    }

    /// Returns the peer of connection `link`.
    #[inline]
    pub fn peer_of(&self, link: usize) -> usize {
        if link < SECONDARY { link } else { (link - SECONDARY) / (self.rails - 1) }
    }

    /// Returns the rail of connection `link`.
    pub fn rail_of(&self, link: usize) -> usize {
        let place = if link < SECONDARY { 0 } else { 1 + (link - SECONDARY) % (self.rails - 1) };
        (self.rail_to(self.peer_of(link)) + place) % self.rails
    }

    /// Returns the numbers of all connections with `peer`, beginning with the first connection.
    pub fn links_with(&self, peer: usize) -> impl Iterator<Item = usize> + use<> {
        let further = self.rails - 1;
        let behind = SECONDARY + peer * further;
        std::iter::once(peer).chain(behind..behind + further)
    }

    #[inline]
    pub fn is_secondary(&self, link: usize) -> bool {
        link >= SECONDARY
    }
}

impl Secondary {
    /// Takes the work that was to be repeated, for the caller to give up.
    pub fn abandon(&mut self) -> Vec<PostedWork> {
        std::mem::take(&mut self.repeat)
    }
}

impl Connection {
    /// Takes the record of the failed request `number` if it is the oldest, with the work to repeat.
    fn failed(&mut self, number: u32) -> Option<(Record, Option<PostedWork>)> {
        let work = self.secondary.as_ref()?.posted.front().copied()?;
        let record = self.oldest(number)?;
        Some((record, work))
    }
}

impl VerbsState {
    /// Returns the connection for an operation over `rail`: the secondary connection if it is open, else the first.
    fn way(&mut self, core: &VerbsCore, rail: usize, peer: usize) -> usize {
        let link = core.link_over(peer, rail);
        if link == peer {
            return peer;
        }
        match &self.peers[link] {
            Some(it) if it.phase == ConnectionPhase::Open => link,
            Some(_) => peer,
            None => {
                let first = self.peers[peer].as_ref();
                if first.is_some_and(|first| first.phase == ConnectionPhase::Open) {
                    self.begin(core, link);
                }
                peer
            }
        }
    }

    pub fn write_over(
        &mut self,
        core: &VerbsCore,
        rail: usize,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        done: Completion,
    ) -> Result<(), Fault> {
        let link = self.way(core, rail, peer);
        self.write(core, link, src, dst, WriteTail::Nothing, done)?;
        let asked = core.link_over(peer, rail);
        if link != asked {
            let first = self.link(peer);
            let passed = match first.kept_work.is_empty() {
                true => Passed::Posted(first.latest()),
                false => Passed::Kept,
            };
            if let Some(Some(secondary)) = self.peers[asked].as_mut().map(|it| &mut it.secondary) {
                secondary.passed = Some(passed);
            }
        }
        Ok(())
    }

    /// Writes a flag after earlier writes over `rail`. Returns false, and writes nothing, if one of these writes may still
    /// arrive later.
    pub fn flag_after(
        &mut self,
        core: &VerbsCore,
        rail: usize,
        peer: usize,
        tail: WriteTail,
    ) -> Result<bool, Fault> {
        let link = core.link_over(peer, rail);
        if link == peer || self.peers[link].is_none() {
            return self
                .write(core, peer, Sge::EMPTY, RemoteAddr::default(), tail, None)
                .map(|()| true);
        }
        if self.has_passed(link, peer) {
            return Ok(false);
        }
        let repeats = self.out.contains(&(link as u32));
        match self.link(link).phase {
            ConnectionPhase::Connecting => {}
            ConnectionPhase::Lost if !repeats => {}
            ConnectionPhase::Open => {
                let work = PostedWork::flag(tail);
                let it = self.link(link);
                if !it.kept_work.is_empty() || !self.add_work(link, &work) {
                    let VerbsState { peers, slab, .. } = self;
                    let it = peers[link].as_deref_mut().expect("looked at above");
                    slab.push(&mut it.kept_work, work);
                    self.wait_for(link);
                }
                self.ring(link);
                return Ok(true);
            }
            ConnectionPhase::Lost | ConnectionPhase::Gone => return Ok(false),
        }
        self.write(core, peer, Sge::EMPTY, RemoteAddr::default(), tail, None).map(|()| true)
    }

    /// Returns true if secondary connection `link` is open while the first connection has not finished work that it took in
    /// its place.
    fn has_passed(&mut self, link: usize, peer: usize) -> bool {
        let passed = |it: &Connection| it.secondary.as_ref().and_then(|secondary| secondary.passed);
        let it = self.link(link);
        let (open, Some(passed)) = (it.phase == ConnectionPhase::Open, passed(it)) else {
            return false;
        };
        let first = self.link(peer);
        let left = match passed {
            Passed::Kept if !first.kept_work.is_empty() => Some(Passed::Kept),
            Passed::Kept => Some(Passed::Posted(first.latest())),
            Passed::Posted(number) => first.is_outstanding(number).then_some(passed),
        };
        if let Some(secondary) = &mut self.link(link).secondary {
            secondary.passed = left;
        }
        open && left.is_some()
    }

    pub fn read_over(
        &mut self,
        core: &VerbsCore,
        rail: usize,
        peer: usize,
        dst: Sge,
        src: RemoteAddr,
        done: Completion,
    ) -> Result<(), Fault> {
        let link = self.way(core, rail, peer);
        self.read(core, link, dst, src, done)
    }

    /// Returns true if `rail` carries data to `peer`, or may do so once it is asked to.
    pub fn rail_works(&self, core: &VerbsCore, rail: usize, peer: usize) -> bool {
        if rail >= core.rails {
            return false;
        }
        let link = core.link_over(peer, rail);
        match &self.peers[link] {
            None => !self.unmade.contains(&link),
            Some(it) if it.phase == ConnectionPhase::Connecting && link != peer => {
                it.asking.since.elapsed() < TRIAL
            }
            Some(it) => matches!(it.phase, ConnectionPhase::Connecting | ConnectionPhase::Open),
        }
    }

    /// Records that secondary connection `link` cannot be made.
    #[cold]
    pub fn give_up(&mut self, core: &VerbsCore, link: usize, why: &str) {
        self.unmade.push(link);
        let rail = self.rails[core.rail_of(link)].port.name();
        self.notes.push(format!(
            "{rail} carries nothing to process {}: {why}; other rails do",
            core.peer_of(link)
        ));
    }

    /// Handles the failure of request `number` on secondary connection `link`.
    #[cold]
    pub fn rail_failed(&mut self, core: &VerbsCore, link: usize, number: u32, status: i32) {
        // Requests complete in order, so all requests before this one are complete.
        self.departed(core, link, number.wrapping_sub(1));
        let Some(it) = self.peers[link].as_deref_mut() else { return };
        let failed = it.failed(number);
        if let Some((record, work)) = failed {
            // The work holds the registration, and stays its user.
            if record.buffer != NONE {
                self.pool.give_back(record.buffer);
            }
            let it = self.link(link);
            if let (Some(secondary), Some(work)) = (&mut it.secondary, work) {
                secondary.repeat.push(work);
            }
        }
        let peer = core.peer_of(link);
        let why = crate::trouble::explain(core, &self.rails, core.rail_of(link), peer, status);
        let awaited = failed.and_then(|(_, work)| work).is_some_and(|work| work.is_awaited());
        if awaited && self.link(link).phase == ConnectionPhase::Gone {
            self.lose(core, peer, why.clone());
        }
        if status == IBV_WC_REM_ACCESS_ERR {
            // The adapter would refuse the key over another rail, too.
            let what = "memory key (its adapter refuses it)";
            self.fail(Fault::corrupt(peer, what), why.clone());
        }
        self.shut(core, link, &why);
    }

    /// Shuts this end of secondary connection `link`: it carries nothing any more.
    #[cold]
    pub fn shut(&mut self, core: &VerbsCore, link: usize, why: &str) {
        let VerbsState { peers, connecting, notes, out, .. } = self;
        let it = peers[link].as_deref_mut().expect("a connection");
        if matches!(it.phase, ConnectionPhase::Lost | ConnectionPhase::Gone) {
            return;
        }
        it.phase = ConnectionPhase::Lost;
        connecting.retain(|&other| other != link as u32);
        it.shut();
        out.push(link as u32);
        notes.push(format!("rail {} is not used any more: {why}", core.rail_of(link)));
    }

    /// Handles the message of `peer` that its end over a rail is shut. The rail's number is in receive buffer `buffer` of
    /// `rail`.
    #[cold]
    pub fn hear_shut(&mut self, core: &VerbsCore, rail: usize, peer: usize, buffer: u32) {
        let mut word = [0; 8];
        self.rails[rail].buffers[buffer as usize].memory.part(0, 8).read(&mut word);
        let number = u64::from_ne_bytes(word) as usize;
        let link = core.link_over(peer, number);
        if number >= core.rails || link == peer {
            let what = "number of a rail";
            return self.fail(Fault::corrupt(peer, what), format!("rail {number}"));
        }
        let Some(it) = self.peers[link].as_deref_mut() else {
            return self.give_up(core, link, "it has failed there");
        };
        if let Some(secondary) = &mut it.secondary {
            secondary.heard = true;
        }
        self.shut(core, link, "the peer has lost it");
    }

    /// Advances the shutdown of secondary connections that were shut. Returns true if any advanced.
    #[cold]
    pub fn tend(&mut self, core: &VerbsCore) -> bool {
        let mut moved = false;
        for i in (0..self.out.len()).rev() {
            let link = self.out[i] as usize;
            let peer = core.peer_of(link);
            match self.link(peer).phase {
                ConnectionPhase::Connecting => continue,
                ConnectionPhase::Open => moved |= self.tell(core, link),
                ConnectionPhase::Gone | ConnectionPhase::Lost => {
                    self.out.swap_remove(i);
                    let it = self.link(link);
                    let repeats = it.secondary.as_ref().is_some_and(|f| !f.repeat.is_empty());
                    if repeats || it.is_awaited() || !it.kept_work.is_empty() {
                        let why = "it has left before it took what was sent".to_owned();
                        self.lose(core, peer, why);
                    }
                    continue;
                }
            }
            let it = self.link(link);
            let ready =
                it.secondary.as_ref().is_some_and(|secondary| secondary.told && secondary.heard);
            if ready && it.outstanding() == 0 {
                self.out.swap_remove(i);
                self.repeat(core, link);
                moved = true;
            }
        }
        moved
    }

    /// Tells the peer that this end of `link` is shut, unless it was told before. Returns true if the message was posted.
    fn tell(&mut self, core: &VerbsCore, link: usize) -> bool {
        let secondary = self.link(link).secondary.as_ref();
        if secondary.is_none_or(|secondary| secondary.told) {
            return false;
        }
        let peer = core.peer_of(link);
        let VerbsState { peers, batch, .. } = self;
        let first = peers[peer].as_deref_mut().expect("a secondary one has a first");
        if !first.has_room(1) {
            return false;
        }
        let tag: ImmediateTag = first.take_credits(WireKind::Credits);
        let (number, signaled) = first.note(Record::NOTHING, false);
        // The peer may be computing, so the message wakes its helper thread.
        let flags = IBV_SEND_SOLICITED | if signaled { IBV_SEND_SIGNALED } else { 0 };
        batch
            .add(request_id(peer, number), IBV_WR_SEND_WITH_IMM, flags)
            .immediate(tag.encode())
            .word(core.rail_of(link) as u64);
        self.ring(peer);
        if let Some(secondary) = &mut self.link(link).secondary {
            secondary.told = true;
        }
        true
    }

    /// Hands over the unfinished work of `link` to the first connection.
    fn repeat(&mut self, core: &VerbsCore, link: usize) {
        let peer = core.peer_of(link);
        let it = self.link(link);
        let mut works =
            it.secondary.as_mut().map(|f| std::mem::take(&mut f.repeat)).unwrap_or_default();
        let VerbsState { peers, slab, .. } = self;
        let it = peers[link].as_deref_mut().expect("looked at above");
        while let Some(&work) = slab.front(&it.kept_work) {
            slab.pop(&mut it.kept_work);
            works.push(work);
        }
        let first = peers[peer].as_deref_mut().expect("a secondary one has a first");
        let mut unsure = false;
        for &work in &works {
            match work {
                PostedWork::Atomic { .. } => unsure = true,
                _ => slab.push(&mut first.kept_work, work),
            }
        }
        if unsure {
            let why = "its rail for atomics has failed, and nobody knows which were applied";
            self.lose(core, peer, why.to_owned());
        }
        if !works.is_empty() {
            self.wait_for(peer);
            self.drain(core, peer);
        }
    }

    /// Returns true if a first connection is being made, or a secondary connection that may open soon.
    pub fn is_connecting(&self, core: &VerbsCore) -> bool {
        self.connecting.iter().any(|&link| {
            let it = self.peers[link as usize].as_deref();
            let young = |it: &Connection| it.asking.since.elapsed() < TRIAL;
            !core.is_secondary(link as usize) || it.is_some_and(young)
        })
    }

    /// Returns the number of open secondary connections.
    pub fn secondary_open(&self) -> usize {
        self.peers.secondary().filter(|it| it.phase == ConnectionPhase::Open).count()
    }

    /// Returns true if no secondary connection has requests in flight.
    pub fn is_secondary_idle(&self) -> bool {
        let quiet = |it: &Connection| it.phase != ConnectionPhase::Open || it.outstanding() == 0;
        self.out.is_empty() && self.peers.secondary().all(quiet)
    }

    /// Ends the secondary connections with `peer`, whose first connection has ended.
    pub fn leave_secondary(&mut self, core: &VerbsCore, peer: usize) {
        for link in core.links_with(peer).skip(1) {
            let Some(it) = self.peers[link].as_deref_mut() else { continue };
            if it.phase != ConnectionPhase::Lost {
                it.phase = ConnectionPhase::Gone;
            }
            self.connecting.retain(|&other| other != link as u32);
        }
    }
}
