//! Processes of other jobs as peers, on this host or on others (MPI 5.0, section 11.10: connected processes).
//!
//! ```text
//!   all   the address of the own endpoint, and whom one knows     ── each to all ──
//!   all   a free number for each new peer: what one will call it  ── each to all ──
//!   all   the addresses go into the provider's tables, with the link's secret
//!   all   ready                                                   ── each to all ──
//! ```
//! From then on they are peers as any other: what a message begins with is the link's secret in place of the job's, and what the
//! receiver calls the sender. They have the first rail alone.
//!
//! Contract of the end. A member that needs the others no more says so to the session ([`Life`]), which all stay in: it misses nobody
//! from then on. Until then the end of a process is a loss, which the session sees, whoever has a connection with it. When all have
//! left, the connections end, and the numbers are free.

use super::*;
use crate::agree::host;
use crate::connect::{add_part, part};
use crate::links::Bond;
use crate::roster::{Foreign, Member};
use crate::sockets;
use crate::state::Where;
use std::net::IpAddr;
use weft_bootstrap::ports::Life;
use weft_fabric::linking::{self, Exchange, Whom};

/// Most processes of other jobs.
const MOST: usize = 1 << 16;

/// What processes of several jobs share: until all of them have left it.
#[derive(Clone)]
pub struct Link(Rc<Bond>);

impl Link {
    /// What this process calls each member, by place.
    pub fn peers(&self) -> &[usize] {
        &self.0.peers
    }

    /// The peers that this link has brought.
    pub fn new_peers(&self) -> &[usize] {
        &self.0.new
    }

    /// Whether no member needs this process any more.
    pub fn others_left(&self) -> bool {
        self.0.life.is_over()
    }
}

/// Numbers of members, by place, and those of them that are new.
#[derive(Debug, Clone, Copy)]
pub struct Known<'l> {
    /// See [`Link::peers`].
    pub peers: &'l [usize],
    /// See [`Link::new_peers`].
    pub new: &'l [usize],
}

/// What a member has said: the address of its endpoint, its host, and whom it knows.
struct Said<'s> {
    name: &'s [u8],
    host: String,
    view: &'s [u8],
}

fn say(name: &[u8], view: &[u8]) -> Vec<u8> {
    let mut said = Vec::new();
    add_part(&mut said, name);
    add_part(&mut said, host().as_bytes());
    said.extend(view);
    said
}

fn hear(said: &[u8]) -> Result<Said<'_>, String> {
    let mut view = linking::told(said)?;
    let mut next = || part(&mut view).ok_or("a process of another job says no address");
    let (name, host) = (next()?, String::from_utf8_lossy(next()?).into_owned());
    Ok(Said { name, host, view })
}

impl Ofi {
    /// Where this process's endpoint is, of providers that speak TCP: jobs can be linked then.
    pub fn ip(&self) -> Option<IpAddr> {
        self.core.ip(0, self.core.rank).map(|address| address.ip())
    }

    /// What two jobs must have in common to be linked, for both to compare.
    pub fn dialect(&self) -> String {
        format!("{}, {} credits", self.core.objects.facts.provider, self.core.credits)
    }

    /// Processes of this job and of linked ones.
    pub fn processes(&self) -> usize {
        self.core.roster.borrow().iter().count()
    }

    /// What wakes this process when a link has something to say; for any thread.
    pub fn alarm(&self) -> impl Fn() + Send + 'static {
        let (alarm, sleeper) = (self.core.alarm.clone(), self.core.sleeper.clone());
        move || {
            alarm.store(true, Ordering::Release);
            sleeper.look_next();
            weft_fabric::wait::Sleep::ring(&*sleeper);
        }
    }

    /// Makes peers of the processes `members`, which all call this with the same list, each at its own `place`, and with a
    /// `secret` that they alone know. Those that are known on both sides stay what they are. Blocks in `exchange` alone; then
    /// all go on in the session, which `stay` does, after what it still has to exchange.
    ///
    /// # Errors
    /// In words; then no peer was made.
    pub fn admit(
        &self,
        (members, place): (&[Whom], usize),
        secret: u64,
        exchange: Exchange<'_>,
        stay: impl FnOnce(Known<'_>, Exchange<'_>) -> Result<Life, String>,
    ) -> Result<Link, String> {
        let core = &self.core;
        self.state.borrow_mut().end_links(core);
        let said = exchange(match core.objects.name() {
            Ok(name) => linking::yes(&say(&name, &linking::view(members))),
            Err(error) => linking::no(error),
        })?;
        let said = said.iter().map(|said| hear(said)).collect::<Result<Vec<_>, _>>()?;
        let both = linking::known_to_both(members, place, said.iter().map(|said| said.view))?;
        let count = both.iter().filter(|known| known.is_none()).count();
        let new = core.roster.borrow_mut().reserve(count, MOST);
        let mut free = new.iter().flatten().copied();
        let peers: Vec<usize> =
            both.iter().map(|known| known.or_else(|| free.next()).unwrap_or(0)).collect();
        let tables = exchange(match &new {
            Some(_) => linking::yes(&linking::numbers(peers.iter().copied())),
            None => linking::no(format_args!("there are {MOST} processes of other jobs already")),
        });
        let made = || {
            let tables = tables?;
            for (at, table) in tables.iter().enumerate() {
                let me = linking::numbers_of(linking::told(table)?, members.len())?[place] as u32;
                if both[at].is_none() {
                    self.put(peers[at], &said[at], &members[at], (secret, me))?;
                }
            }
            Ok::<(), String>(())
        };
        let made = made();
        let ready = exchange(made.as_ref().map_or_else(linking::no, |()| linking::yes(b"")));
        let ready =
            ready.and_then(|said| said.iter().try_for_each(|said| linking::told(said).map(drop)));
        let new = new.unwrap_or_default();
        let life = ready.and_then(|()| stay(Known { peers: &peers, new: &new }, exchange));
        match made.and(life) {
            Ok(life) => {
                let bond = Rc::new(Bond { life, peers, new });
                self.state.borrow_mut().links.live.push(bond.clone());
                Ok(Link(bond))
            }
            Err(error) => {
                let state = &mut *self.state.borrow_mut();
                new.into_iter().for_each(|peer| state.forget(core, peer));
                Err(error)
            }
        }
    }

    /// Makes a peer of a process of another job.
    fn put(
        &self,
        peer: usize,
        said: &Said<'_>,
        whom: &Whom,
        (secret, me): (u64, u32),
    ) -> Result<(), String> {
        let core = &self.core;
        let number = core.objects.insert(said.name, Some(secret)).map_err(|e| e.to_string())?;
        let address = core.objects.show(said.name);
        let ip = sockets::address(&core.objects.facts.provider, &address);
        let place = Where { host: said.host.clone(), address };
        let mut roster = core.roster.borrow_mut();
        let node = roster.node(whom.job, whom.node);
        roster.put(peer, Member { number, place, ip, foreign: Some(Foreign { secret, me, node }) });
        let peers = &mut self.state.borrow_mut().peers;
        if peers.len() < roster.len() {
            peers.resize_with(roster.len(), || None);
        }
        Ok(())
    }

    /// Says that this process needs the others of `link` no more; nothing for them is under way. They may still read what it has
    /// sent.
    pub fn say_left(&self, link: &Link) {
        let state = &mut *self.state.borrow_mut();
        link.0.new.iter().for_each(|&peer| state.peer(&self.core, peer).unmissed = true);
        link.0.life.leave();
    }

    /// Forgets the peers that came with `link`, when all have left it.
    pub fn forget_link(&self, link: Link) {
        let links = &mut self.state.borrow_mut().links;
        links.live.retain(|bond| !Rc::ptr_eq(bond, &link.0));
        links.leaving.push(link.0);
    }
}
