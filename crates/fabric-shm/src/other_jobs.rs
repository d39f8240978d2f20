//! Processes of other jobs on the same machine as peers (MPI 5.0, section 11.10: connected processes).
//!
//! ```text
//!   lowest member of all             lowest member of each job           others
//!   a segment with boxes for all,
//!   a server that hands it out       a server that hands out its job's segment
//!   ──────────────── names of the servers: each member to all ─────────
//!   fetch the new segment, and the segments of the other jobs; a free number for each new peer
//!   ──────────────── the members that each member knows ───────────────
//!   ──────────────── the numbers: each member to all ──────────────────
//!   a peer as any other: boxes in the new segment, control block and arena in the segments of its own job
//!   ──────────────── all members are ready ────────────────────────────
//! ```
//! So the processes use the doorbells and the memory that each job has already, under the same names; only the boxes are new. Each
//! process chooses the numbers of its peers itself. It tells each peer the number of the bit that the peer must set in this
//! process's control block.
//!
//! Contract of the end. A member that no longer needs the other members stores `left` in its block of the new segment (release),
//! and rings them. Until then, the death of the member is a loss. [`WatchThread`] notices this loss, because launchers only watch
//! their own job. After that, the member neither reads nor writes any box of the segment.

use crate::connect::{self, ShmConnectError};
use crate::control::RANKS_MAX;
use crate::layout::{ARENA_MIN, SegmentShape};
use crate::options::ShmOptions;
use crate::peer::{ShmPeer, Situation};
use crate::segment::{Segment, random};
use crate::shm::Shm;
use crate::socket;
use crate::sync::Ordering;
use crate::watch::{ControlPlace, WatchThread, WatchedProcess};
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;
use weft_bootstrap::calls::start_thread;
use weft_job_connections::{Exchange, PeerIdentity, messages};

/// Number of rounds of exchange that [`Shm::admit`] makes if nothing fails. A process that takes part in the exchange but is no
/// member makes the same number of rounds.
pub const ADMIT_ROUNDS: usize = 4;

/// A link between processes of several jobs. It lasts until all these processes have left it.
pub struct ShmJobConnection {
    segment: Arc<Segment>,
    place: usize,
    /// Numbers of the members, by place. The peers that came with this link are also in `new`.
    peers: Vec<usize>,
    new: Vec<usize>,
}

impl ShmJobConnection {
    /// Returns the number under which this process knows each member, by place.
    pub fn peers(&self) -> &[usize] {
        &self.peers
    }

    /// Returns the peers that came with this link.
    pub fn new_peers(&self) -> &[usize] {
        &self.new
    }

    /// Returns true if no other member needs this process any more.
    pub fn others_left(&self) -> bool {
        let left =
            |place: usize| self.segment.control(place).facts.0.left.load(Ordering::Acquire) != 0;
        (0..self.peers.len()).all(|place| place == self.place || left(place))
    }
}

/// Decodes the messages of all members. Returns the first reason of a failure, if there is any.
fn all_told(said: &[Vec<u8>]) -> Result<Vec<&[u8]>, ShmConnectError> {
    said.iter().map(|said| messages::told(said).map_err(ShmConnectError::Lowest)).collect()
}

impl Shm {
    /// Makes peers of the processes `members`, which are on this machine and all call this with the same list, each with its
    /// own `place`. A pair of processes that already know each other keeps its numbers. Blocks only in `exchange`, and as long
    /// as the system needs. Calls `added` with the place and the number of each new peer, before the peer can send anything.
    ///
    /// # Errors [`ShmConnectError`]. Then this process has made no peer. Other members perhaps have made peers. They learn of the
    /// failure when they meet this process again.
    pub fn admit(
        &self,
        members: &[PeerIdentity],
        place: usize,
        exchange: Exchange<'_>,
        mut added: impl FnMut(usize, usize),
    ) -> Result<ShmJobConnection, ShmConnectError> {
        let mut exchange = |bytes: Vec<u8>| exchange(bytes).map_err(ShmConnectError::Lowest);
        // Begins to watch before there is a process to watch. If the system has no means to watch, all members learn of this.
        let begun = self.begin_to_watch().and_then(|()| self.offer(members, place));
        let (mine, made) = match begun {
            Ok((name, made)) => (messages::yes(name.as_bytes()), made),
            Err(error) => (messages::no(error), None),
        };
        let names = exchange(mine)?;
        let names = all_told(&names)?;
        let fetched = self.fetch_all(members, place, &names, made);
        // A peer keeps its number only if both sides say that they know each other.
        let views = exchange(match &fetched {
            Ok(_) => messages::yes(&messages::view(members)),
            Err(error) => messages::no(error),
        })?;
        let views = all_told(&views)?.into_iter();
        let both =
            messages::known_to_both(members, place, views).map_err(ShmConnectError::Lowest)?;
        let (segment, homes) = fetched?;
        let count = both.iter().filter(|known| known.is_none()).count();
        // If a member does not know this process, then this process treats the member as a new peer, even if this process knows the
        // member already. The member's old number stays with the old link.
        let numbers = self.peers.reserve(count);
        let mut free = numbers.iter().flat_map(|reserved| reserved.numbers()).copied();
        let peers: Vec<usize> =
            both.iter().map(|known| known.or_else(|| free.next()).unwrap_or(0)).collect();
        let tables = exchange(match &numbers {
            Some(_) => messages::yes(&messages::numbers(peers.iter().copied())),
            None => messages::no("shared memory has no number for another process"),
        })?;
        let mut bits = Vec::new();
        for (whom, table) in members.iter().zip(all_told(&tables)?) {
            let table =
                messages::numbers_of(table, members.len()).map_err(ShmConnectError::Lowest)?;
            let bit = table[place];
            // The messages of all members are checked before any peer is made.
            if bit >= RANKS_MAX || whom.rank >= homes[&whom.job].shape().ranks {
                return Err(ShmConnectError::Mismatch);
            }
            bits.push(bit);
        }
        let (mut new, mut watched) = (Vec::new(), Vec::new());
        for (at, whom) in members.iter().enumerate().filter(|&(at, _)| both[at].is_none()) {
            let home = &homes[&whom.job];
            let situation = Situation {
                boxes: &segment,
                rank: place,
                peer: at,
                home,
                home_rank: whom.rank,
                bit: bits[at],
                is_foreign: true,
            };
            // SAFETY: each member makes its ends of the new segment's boxes only here, once for each other member.
            self.peers.add(peers[at], unsafe { ShmPeer::new(situation) });
            new.push(peers[at]);
            added(at, peers[at]);
            let link = ControlPlace { segment: segment.clone(), rank: at };
            let home = ControlPlace { segment: home.clone(), rank: whom.rank };
            watched.push(WatchedProcess::new(peers[at], link, &home));
        }
        let link = ShmJobConnection { segment, place, peers, new };
        if let Err(error) = exchange(messages::yes(b"")) {
            self.say_left(&link);
            self.forget_link(&link);
            return Err(error);
        }
        // Watches the processes only from now on. Before all processes are ready, the end of a process ends the link, and does not
        // count as a lost peer.
        let watch = self.watch.get().expect("begun above");
        watched.into_iter().for_each(|one| watch.add(one));
        Ok(link)
    }

    /// Starts the watch over processes of other jobs, unless it runs already.
    fn begin_to_watch(&self) -> Result<(), ShmConnectError> {
        if self.watch.get().is_none() {
            let _ = self.watch.set(WatchThread::start(self.segment.clone(), self.rank)?);
        }
        Ok(())
    }

    /// Starts the servers of this process. Returns their names, and the segment for all members if this process creates it.
    #[allow(clippy::type_complexity)]
    fn offer(
        &self,
        members: &[PeerIdentity],
        place: usize,
    ) -> Result<(String, Option<Arc<Segment>>), ShmConnectError> {
        let mut names = ["".to_owned(), "".to_owned()];
        let mut made = None;
        let serve = |segment: &Arc<Segment>, clients: usize| {
            let name = format!("weft-link-{:016x}{:016x}", random(), random());
            let what = "listening on an abstract socket";
            let listener =
                socket::listen(&name).map_err(|error| ShmConnectError::System { what, error })?;
            let (segment, patience) = (segment.clone(), self.options.patience);
            let words = segment.shape().words();
            // A process that does not come has reported a reason, or the next round finds that it is missing.
            let hand_out = move || {
                let _ = socket::serve(&listener, clients, segment.files(), words, patience);
            };
            let what = "starting a thread";
            start_thread("weft-link", hand_out)
                .map_err(|error| ShmConnectError::System { what, error })?;
            Ok::<String, ShmConnectError>(name)
        };
        if place == 0 {
            let options = ShmOptions { lanes: 1, ..self.options.clone() };
            let segment = Arc::new(connect::found_with(members.len(), &options, ARENA_MIN)?);
            names[0] = serve(&segment, members.len() - 1)?;
            made = Some(segment);
        }
        let job = members[place].job;
        if members.iter().position(|whom| whom.job == job) == Some(place) {
            let others = members.iter().filter(|whom| whom.job != job).count();
            if others > 0 {
                names[1] = serve(&self.segment, others)?;
            }
        }
        Ok((names.join(" "), made))
    }

    /// Returns the segment for all members, and the segments of all jobs.
    #[allow(clippy::type_complexity)]
    fn fetch_all(
        &self,
        members: &[PeerIdentity],
        place: usize,
        names: &[&[u8]],
        made: Option<Arc<Segment>>,
    ) -> Result<(Arc<Segment>, HashMap<u64, Arc<Segment>>), ShmConnectError> {
        let name = |place: usize, which: usize| {
            let text = std::str::from_utf8(names[place]).ok()?;
            text.split(' ').nth(which).filter(|name| !name.is_empty())
        };
        let fetch = |name: Option<&str>| {
            let name = name.ok_or(ShmConnectError::Mismatch)?;
            let (files, words) = socket::fetch(name, self.options.patience)
                .map_err(|error| ShmConnectError::System { what: "receiving a segment", error })?;
            let shape = SegmentShape::from_words(words);
            if !shape.is_sound() {
                return Err(ShmConnectError::Mismatch);
            }
            let segment = Segment::map(files, shape)?;
            if segment.is_founded() {
                Ok(Arc::new(segment))
            } else {
                Err(ShmConnectError::Mismatch)
            }
        };
        let segment = match made {
            Some(segment) => segment,
            None => fetch(name(0, 0))?,
        };
        if segment.shape().ranks != members.len() {
            return Err(ShmConnectError::Mismatch);
        }
        let mut homes = HashMap::from([(members[place].job, self.segment.clone())]);
        for (at, whom) in members.iter().enumerate() {
            if let Entry::Vacant(unknown) = homes.entry(whom.job) {
                unknown.insert(fetch(name(at, 1))?);
            }
        }
        Ok((segment, homes))
    }

    /// Declares that this process no longer needs the other members of `link`. These members may still read messages that this
    /// process has sent.
    pub fn say_left(&self, link: &ShmJobConnection) {
        link.segment.control(link.place).facts.0.left.store(1, Ordering::Release);
        for &peer in link.peers.iter().filter(|&&peer| self.peers.has(peer)) {
            self.wake(peer);
        }
    }

    /// Forgets the peers that came with `link`. None of their operations may be under way.
    pub fn forget_link(&self, link: &ShmJobConnection) {
        for &peer in link.new.iter().filter(|&&peer| self.peers.has(peer)) {
            self.forget(peer);
        }
    }

    /// Forgets a process of another job.
    fn forget(&self, peer: usize) {
        self.watch.get().iter().for_each(|watch| watch.remove(peer));
        self.turn.end_batch();
        self.own().active.0[peer / 64].fetch_and(!(1 << (peer % 64)), Ordering::Relaxed);
        self.drop_backlog(peer);
        // SAFETY: no reference to the peer is held here: methods that hold such a reference do not call this method.
        unsafe { self.peers.remove(peer) };
    }

    /// Learns from [`WatchThread`] that a process of another job has ended without notice.
    #[cold]
    pub(crate) fn hear_of_losses(&self) {
        if let Some(peer) = self.watch.get().and_then(WatchThread::lost) {
            self.fail(weft_fabric::Fault::lost(peer));
        }
    }
}
