//! Secondary connections with a peer: one on each rail except the rail of the first connection. They carry writes, reads, and flags
//! that follow them. If the target does its atomics on a rail, the secondary connection on this rail also carries atomics
//! ([`super::onesided`]).
//!
//! ```text
//!   first connection      messages, flags, immediates; work that no secondary connection takes
//!   secondary connection    `write_over`, `read_over`, `write_flag_after`: each is one request, and remembered until it
//!                         has completed
//! ```
//! A secondary connection is made when an operation first names its rail, and is used as soon as it is open. If a secondary
//! connection fails, it is shut permanently. Its unfinished work is then repeated over the first connection, as soon as the old
//! requests cannot take effect any more:
//!
//! ```text
//!   A: a request fails, A's end is shut ──── shut (rail) ───>  B: shuts its end
//!   A: all requests are flushed         <─── shut (rail) ────
//!   A: repeats them
//! ```
//! Without B's answer, a delayed packet of an old request could overwrite later data.

use super::VerbsState;
use crate::connection::connections::Connections;
use crate::connection::pending::{PostedWork, WriteTail};
use crate::connection::secondary::PassedWork;
use crate::connection::{ConnectionPhase, FailedRequest, VerbsConnection};
use crate::ffi::*;
use crate::job::VerbsCore;
use crate::trouble;
use weft_fabric::{Fault, RemoteRead, RemoteWrite};

/// Returns true if secondary connection `link` is open, but the first connection has not finished the work that it took over from
/// `link`.
fn has_passed(connections: &mut Connections, link: usize, peer: usize) -> bool {
    let it = connections.of(link);
    let open = it.phase == ConnectionPhase::Open;
    let Some(passed) = it.secondary.as_ref().and_then(|it| it.passed) else { return false };
    let first = connections.of(peer);
    let left = match passed {
        PassedWork::Kept if !first.kept_work.is_empty() => Some(PassedWork::Kept),
        PassedWork::Kept => Some(PassedWork::Posted(first.latest())),
        PassedWork::Posted(number) => first.is_outstanding(number).then_some(passed),
    };
    if let Some(secondary) = &mut connections.of(link).secondary {
        secondary.passed = left;
    }
    open && left.is_some()
}

impl VerbsState {
    /// Returns the connection for an operation over `rail`: the secondary connection if it is open, else the first connection.
    fn way(&mut self, core: &VerbsCore, rail: usize, peer: usize) -> usize {
        let link = core.link_over(peer, rail);
        if link == peer {
            return peer;
        }
        match self.connections.get(link) {
            Some(it) if it.phase == ConnectionPhase::Open => link,
            Some(_) => peer,
            None => {
                if self.connections.is_open(peer) {
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
        write: &RemoteWrite,
    ) -> Result<(), Fault> {
        let link = self.way(core, rail, peer);
        self.write(core, link, write, WriteTail::Nothing)?;
        let asked = core.link_over(peer, rail);
        if link != asked {
            let first = self.connections.of(peer);
            let passed = match first.kept_work.is_empty() {
                true => PassedWork::Posted(first.latest()),
                false => PassedWork::Kept,
            };
            let asked = self.connections.get_mut(asked).map(|it| &mut it.secondary);
            if let Some(Some(secondary)) = asked {
                secondary.passed = Some(passed);
            }
        }
        Ok(())
    }

    /// Writes a flag after earlier writes over `rail`. Returns false, and does not write the flag, if one of these writes might
    /// arrive after the flag.
    pub fn flag_after(
        &mut self,
        core: &VerbsCore,
        rail: usize,
        peer: usize,
        tail: WriteTail,
    ) -> Result<bool, Fault> {
        let number = core.link_over(peer, rail);
        if number == peer || self.connections.get(number).is_none() {
            return self.write_tail(core, peer, tail, None).map(|()| true);
        }
        if has_passed(&mut self.connections, number, peer) {
            return Ok(false);
        }
        let repeats = self.secondary.open.contains(&(number as u32));
        let VerbsState { connections, posting, memories, kept, trouble, .. } = self;
        let link = connections.of(number);
        match link.phase {
            ConnectionPhase::Connecting => {}
            ConnectionPhase::Lost if !repeats => {}
            ConnectionPhase::Open => {
                let work = PostedWork::flag(tail);
                if !link.kept_work.is_empty() || !posting.add_work(memories, link, &work) {
                    kept.keep(link, work);
                }
                posting.ring(link, trouble);
                return Ok(true);
            }
            ConnectionPhase::Lost | ConnectionPhase::Gone => return Ok(false),
        }
        self.write_tail(core, peer, tail, None).map(|()| true)
    }

    pub fn read_over(
        &mut self,
        core: &VerbsCore,
        rail: usize,
        peer: usize,
        read: &RemoteRead,
    ) -> Result<(), Fault> {
        let link = self.way(core, rail, peer);
        self.read(core, link, read)
    }

    /// Handles the failure of request `number` on secondary connection `link`.
    #[cold]
    pub fn rail_failed(&mut self, core: &VerbsCore, link: usize, number: u32, status: i32) {
        // Requests complete in order, so all requests before this one are complete.
        self.departed(core, link, number.wrapping_sub(1));
        let VerbsState { connections, rails, posting, handshakes, secondary, trouble, .. } = self;
        let Some(it) = connections.get_mut(link) else { return };
        let mut awaited = false;
        if let Some(FailedRequest { record, work }) = it.take_failed(number) {
            // The repeated work still uses the registration, so only the buffer is given back.
            posting.give_back(record.buffer);
            if let (Some(secondary), Some(work)) = (&mut it.secondary, work) {
                secondary.repeat.push(work);
            }
            awaited = work.is_some_and(|work| work.is_awaited());
        }
        let peer = core.peer_of(link);
        let why = crate::trouble::explain(core, rails, core.rail_of(link), peer, status);
        if awaited && it.phase == ConnectionPhase::Gone {
            trouble::lose(trouble, core, peer, why.clone());
        }
        if status == IBV_WC_REM_ACCESS_ERR {
            // The adapter would refuse the key over any other rail, too.
            let what = "memory key (its adapter refuses it)";
            trouble.fail(Fault::corrupt(peer, what), why.clone());
        }
        secondary.shut(core, handshakes, trouble, it, &why);
    }

    /// Handles the message of `peer` which says that the peer's end of a secondary connection is shut. Buffer `buffer` of `rail`
    /// contains the number of the shut rail.
    #[cold]
    pub fn hear_shut(&mut self, core: &VerbsCore, rail: usize, peer: usize, buffer: u32) {
        let VerbsState { connections, rails, handshakes, secondary, trouble, .. } = self;
        let number = rails[rail].receives.word(buffer) as usize;
        let link = core.link_over(peer, number);
        if number >= core.rails || link == peer {
            let what = "number of a rail";
            return trouble.fail(Fault::corrupt(peer, what), format!("rail {number}"));
        }
        let Some(it) = connections.get_mut(link) else {
            return secondary.give_up(core, rails, trouble, link, "it has failed there");
        };
        if let Some(secondary) = &mut it.secondary {
            secondary.heard = true;
        }
        secondary.shut(core, handshakes, trouble, it, "the peer has lost it");
    }

    /// Advances the shutdown of secondary connections. Returns true if any shutdown advanced.
    #[cold]
    pub fn tend(&mut self, core: &VerbsCore) -> bool {
        let mut moved = false;
        for i in (0..self.secondary.open.len()).rev() {
            let number = self.secondary.open[i] as usize;
            let peer = core.peer_of(number);
            match self.connections.of(peer).phase {
                ConnectionPhase::Connecting => continue,
                ConnectionPhase::Open => moved |= self.tell(core, number),
                ConnectionPhase::Gone | ConnectionPhase::Lost => {
                    self.secondary.open.swap_remove(i);
                    let it = self.connections.of(number);
                    let repeats = it.secondary.as_ref().is_some_and(|it| !it.repeat.is_empty());
                    if repeats || it.is_awaited() || !it.kept_work.is_empty() {
                        let why = "it has left before it took what was sent".to_owned();
                        trouble::lose(&mut self.trouble, core, peer, why);
                    }
                    continue;
                }
            }
            let it = self.connections.of(number);
            let ready = it.secondary.as_ref().is_some_and(|it| it.told && it.heard);
            if ready && it.outstanding() == 0 {
                self.secondary.open.swap_remove(i);
                self.repeat(core, number);
                moved = true;
            }
        }
        moved
    }

    /// Tells the peer that this end of `number` is shut, unless this was already done. Returns true if the message was posted.
    fn tell(&mut self, core: &VerbsCore, number: usize) -> bool {
        let secondary = &self.connections.of(number).secondary;
        if secondary.as_ref().is_none_or(|secondary| secondary.told) {
            return false;
        }
        // A peer with a secondary connection also has a first connection.
        let (peer, rail) = (core.peer_of(number), core.rail_of(number));
        if !self.post_control(peer, |posting, first| posting.add_shut(first, rail)) {
            return false;
        }
        if let Some(secondary) = &mut self.connections.of(number).secondary {
            secondary.told = true;
        }
        true
    }

    /// Moves the unfinished work of connection `number` to the first connection.
    fn repeat(&mut self, core: &VerbsCore, number: usize) {
        let peer = core.peer_of(number);
        let VerbsState { connections, kept, trouble, .. } = self;
        let it: &mut VerbsConnection = connections.of(number);
        let mut works =
            it.secondary.as_mut().map(|it| std::mem::take(&mut it.repeat)).unwrap_or_default();
        kept.take_work(it, &mut works);
        let first = connections.of(peer);
        let mut unsure = false;
        for &work in &works {
            match work {
                PostedWork::Atomic(_) => unsure = true,
                _ => kept.keep(first, work),
            }
        }
        if unsure {
            let why = "its rail for atomics has failed, and nobody knows which were applied";
            trouble::lose(trouble, core, peer, why.to_owned());
        }
        if !works.is_empty() {
            self.drain(core, peer);
        }
    }
}
