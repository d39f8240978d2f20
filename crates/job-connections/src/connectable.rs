//! The protocol by which a network makes peers of processes of other jobs, on this host or on other hosts (MPI 5.0, section
//! 11.10: connected processes).
//!
//! ```text
//!   1. own address, and the members that are already known    ── each member to all members ──
//!   2. the number here of each member, free for a new peer     ── each member to all members ──
//!   3. the network makes the peers, from these messages and the link's secret
//!   4. ready                                                   ── each member to all members ──
//! ```
//! From then on the members are ordinary peers. Two such peers find each other by the secret of the link, which replaces the
//! secret of the job, and by the number under which the receiver knows the sender.
//!
//! Contract of the end. All members stay in a session ([`SessionMonitor`]). A member that no longer needs the other members
//! leaves the session. From then on its end is not a loss, and it reports no losses of other members. The session reports the end
//! of a process that has not left to all members, even to members without a connection to it. When all members have left, the
//! connections end and the numbers are free again.

use crate::messages::{add_part, known_to_both, no, numbers, numbers_of, part, told, view, yes};
use crate::{Exchange, JobConnection, JobConnections, PeerIdentity};
use std::net::IpAddr;
use weft_bootstrap::ports::SessionMonitor;

/// Maximum number of processes of other jobs that are peers at the same time.
pub const MOST: usize = 1 << 16;

/// The members of a session, by place, and the place of this process.
#[derive(Debug, Clone, Copy)]
pub struct SessionMembers<'s> {
    /// Identities of the members.
    pub identities: &'s [PeerIdentity],
    /// Index of this process in `identities`.
    pub place: usize,
}

/// The numbers of the members, by place, and the numbers of the new members.
#[derive(Debug, Clone, Copy)]
pub struct JobMembers<'l> {
    /// See [`JobConnection::peers`].
    pub peers: &'l [usize],
    /// See [`JobConnection::new_peers`].
    pub new: &'l [usize],
}

/// The function that a member runs in the session. Its arguments are the numbers of the members and a function that exchanges
/// further messages.
pub type SessionBody<'s> =
    &'s mut dyn FnMut(JobMembers<'_>, Exchange<'_>) -> Result<SessionMonitor, String>;

/// Facts about a member of a link, from which the network makes a peer.
#[derive(Debug, Clone, Copy)]
pub struct Introduced<'s> {
    /// Identity of the member.
    pub whom: &'s PeerIdentity,
    /// The member's bytes from [`Connectable::introduction`].
    pub said: &'s [u8],
    /// The secret by which this process and the member find each other. Only the members know it.
    pub secret: u128,
    /// The number under which the member knows this process.
    pub me: u32,
}

/// A network that takes processes of other jobs as peers.
pub trait Connectable {
    /// Returns an IP address by which other hosts reach this process: the address of its adapter or endpoint. `None`: there is no
    /// such address, so jobs cannot be linked.
    fn ip(&self) -> Option<IpAddr>;

    /// Returns a text that must be equal in two jobs to be linked: it describes the network. It also appears in messages for the
    /// user.
    fn dialect(&self) -> String;

    /// Returns a function that wakes this process when a link has news. Any thread may call it.
    fn alarm(&self) -> Box<dyn Fn() + Send>;

    /// Returns the bytes that other processes need to reach this process. An error is in words.
    fn introduction(&self) -> Result<Vec<u8>, String>;

    /// Reserves `count` free numbers for processes of other jobs. All are less than the number of processes of the job plus
    /// `most`. Returns `None` if there are not enough free numbers.
    fn reserve(&self, count: usize, most: usize) -> Option<Vec<usize>>;

    /// Makes a peer of a process of another job, under a number that was reserved. An error is in words.
    fn put(&self, peer: usize, introduced: &Introduced<'_>) -> Result<(), String>;

    /// Declares that the death of `peer`, a process of another job, is no longer a loss.
    fn miss_no_more(&self, peer: usize);

    /// Forgets a peer of another job, or a number that was reserved for one.
    fn forget_peer(&self, peer: usize);

    /// Calls `use_them` with the links of this process.
    fn links(&self, use_them: &mut dyn FnMut(&mut JobConnections));

    /// Makes peers of the processes `members`. Each member calls this function with the same list, its own place, and a `secret`
    /// that only the members know. Two processes that already know each other keep their numbers. Blocks only in `exchange`.
    /// Finally all members continue in the session by calling `stay`.
    ///
    /// # Errors
    /// Returns the reason in words. Then no peer was made.
    fn admit(
        &self,
        members: SessionMembers<'_>,
        secret: u128,
        exchange: Exchange<'_>,
        stay: SessionBody<'_>,
    ) -> Result<JobConnection, String> {
        let SessionMembers { identities: members, place } = members;
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

    /// Declares that this process no longer needs the other members of `link`. No operation to them may be under way, but they
    /// may still read messages that this process has sent.
    fn say_left(&self, link: &JobConnection) {
        link.new_peers().iter().for_each(|&peer| self.miss_no_more(peer));
        link.leave();
    }

    /// Forgets the peers that `link` has added, once all members have left it.
    fn forget_link(&self, link: JobConnection) {
        let mut link = Some(link);
        self.links(&mut |links| links.leave(link.take().expect("called once")));
        self.end_links();
    }

    /// Returns true if all other members have left each link that this process has left.
    fn has_parted(&self) -> bool {
        let mut parted = true;
        self.links(&mut |links| parted = links.have_parted());
        parted
    }

    /// Ends the links that all members have left, and forgets their peers.
    fn end_links(&self) {
        let mut over = Vec::new();
        self.links(&mut |links| over = links.take_over());
        over.into_iter().for_each(|peer| self.forget_peer(peer));
    }
}

/// Encodes the first message of a member: its introduction, and the members that it already knows.
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
