//! How a network makes peers of processes of other jobs, on this host or on others (MPI 5.0, section 11.10: connected processes).
//!
//! ```text
//!   all   where one is reached, and whom one knows                ── each to all ──
//!   all   a free number for each new peer: what one will call it  ── each to all ──
//!   all   the network takes what was said, with the link's secret
//!   all   ready                                                   ── each to all ──
//! ```
//! From then on they are peers as any other: what they meet by is the link's secret in place of the job's, and what the receiver
//! calls the sender.
//!
//! Contract of the end. A member that needs the others no more says so to the session ([`SessionMonitor`]), which all stay in: it misses nobody
//! from then on. Until then the end of a process is a loss, which the session sees, whoever has a connection with it. When all have
//! left, the connections end, and the numbers are free.

use super::{
    Exchange, JobConnection, JobConnections, PeerIdentity, add_part, known_to_both, no, numbers,
    numbers_of, part,
};
use super::{told, view, yes};
use std::net::IpAddr;
use weft_bootstrap::ports::SessionMonitor;

/// Most processes of other jobs.
pub const MOST: usize = 1 << 16;

/// Numbers of members, by place, and those of them that are new.
#[derive(Debug, Clone, Copy)]
pub struct JobMembers<'l> {
    /// See [`JobConnection::peers`].
    pub peers: &'l [usize],
    /// See [`JobConnection::new_peers`].
    pub new: &'l [usize],
}

/// What goes on in the session, after what it still has to exchange.
pub type SessionBody<'s> =
    &'s mut dyn FnMut(JobMembers<'_>, Exchange<'_>) -> Result<SessionMonitor, String>;

/// What the members of a link know of one of them.
#[derive(Debug, Clone, Copy)]
pub struct Introduced<'s> {
    /// Who it is.
    pub whom: &'s PeerIdentity,
    /// What it has said by [`Connectable::introduction`].
    pub said: &'s [u8],
    /// What the two meet by, which the members alone know.
    pub secret: u64,
    /// What it calls this process.
    pub me: u32,
}

/// A network that takes processes of other jobs as peers.
pub trait Connectable {
    /// An address of this process that other hosts reach: of its adapter or its endpoint. `None`: it has none, so that jobs cannot
    /// be linked.
    fn ip(&self) -> Option<IpAddr>;

    /// What two jobs must have in common to be linked, for both to compare, and for people to read.
    fn dialect(&self) -> String;

    /// What wakes this process when a link has something to say; for any thread.
    fn alarm(&self) -> Box<dyn Fn() + Send>;

    /// What others must know to reach this process. An error is in words.
    fn introduction(&self) -> Result<Vec<u8>, String>;

    /// So many free numbers, of at most `most` beyond those of the job; `None`: there are not so many.
    fn reserve(&self, count: usize, most: usize) -> Option<Vec<usize>>;

    /// Makes a peer of a process of another job, under a number that was reserved. An error is in words.
    fn put(&self, peer: usize, introduced: &Introduced<'_>) -> Result<(), String>;

    /// The end of `peer`, of another job, is no loss any more.
    fn miss_no_more(&self, peer: usize);

    /// Forgets a peer of another job, or a number that was reserved for one.
    fn forget_peer(&self, peer: usize);

    /// The links of this process.
    fn links(&self, use_them: &mut dyn FnMut(&mut JobConnections));

    /// Makes peers of the processes `members`, which all call this with the same list, each at its own `place`, and with a
    /// `secret` that they alone know. Those that are known on both sides stay what they are. Blocks in `exchange` alone; then
    /// all go on in the session, which `stay` does.
    ///
    /// # Errors
    /// In words; then no peer was made.
    fn admit(
        &self,
        (members, place): (&[PeerIdentity], usize),
        secret: u64,
        exchange: Exchange<'_>,
        stay: SessionBody<'_>,
    ) -> Result<JobConnection, String> {
        self.end_links();
        let said = exchange(self.introduction().map_or_else(no, |own| yes(&say(&own, members))))?;
        let said = said.iter().map(|said| hear(said)).collect::<Result<Vec<_>, _>>()?;
        let both = known_to_both(members, place, said.iter().map(|&(_, view)| view))?;
        let new = self.reserve(both.iter().filter(|known| known.is_none()).count(), MOST);
        let mut free = new.iter().flatten().copied();
        let peers: Vec<usize> =
            both.iter().map(|known| known.or_else(|| free.next()).unwrap_or(0)).collect();
        let tables = exchange(match &new {
            Some(_) => yes(&numbers(peers.iter().copied())),
            None => no(format_args!("there are {MOST} processes of other jobs already")),
        });
        let made = || {
            for (at, table) in tables?.iter().enumerate() {
                let me = numbers_of(told(table)?, members.len())?[place] as u32;
                if both[at].is_none() {
                    let (whom, (said, _)) = (&members[at], said[at]);
                    self.put(peers[at], &Introduced { whom, said, secret, me })?;
                }
            }
            Ok::<(), String>(())
        };
        let made = made();
        let ready = exchange(made.as_ref().map_or_else(no, |()| yes(b"")));
        let ready = ready.and_then(|said| said.iter().try_for_each(|said| told(said).map(drop)));
        let new = new.unwrap_or_default();
        let life = ready.and_then(|()| stay(JobMembers { peers: &peers, new: &new }, exchange));
        match made.and(life) {
            Ok(life) => {
                let link = JobConnection::new(life, peers, new);
                self.links(&mut |links| links.add(link.clone()));
                Ok(link)
            }
            Err(error) => {
                new.into_iter().for_each(|peer| self.forget_peer(peer));
                Err(error)
            }
        }
    }

    /// Says that this process needs the others of `link` no more; nothing for them is under way. They may still read what it has
    /// sent.
    fn say_left(&self, link: &JobConnection) {
        link.new_peers().iter().for_each(|&peer| self.miss_no_more(peer));
        link.leave();
    }

    /// Forgets the peers that came with `link`, when all have left it.
    fn forget_link(&self, link: JobConnection) {
        let mut link = Some(link);
        self.links(&mut |links| links.leave(link.take().expect("called once")));
        self.end_links();
    }

    /// Whether all others have left, too, what this process has left.
    fn has_parted(&self) -> bool {
        let mut parted = true;
        self.links(&mut |links| parted = links.have_parted());
        parted
    }

    /// Ends what all have left.
    fn end_links(&self) {
        let mut over = Vec::new();
        self.links(&mut |links| over = links.take_over());
        over.into_iter().for_each(|peer| self.forget_peer(peer));
    }
}

/// What a member says first: where it is, and whom it knows.
fn say(own: &[u8], members: &[PeerIdentity]) -> Vec<u8> {
    let mut said = Vec::new();
    add_part(&mut said, own);
    said.extend(view(members));
    said
}

fn hear(said: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let mut view = told(said)?;
    let own = part(&mut view).ok_or("a process of another job says no address")?;
    Ok((own, view))
}
