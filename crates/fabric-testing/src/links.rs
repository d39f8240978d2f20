//! Tests of links between jobs, for every network that takes processes of other jobs. Processes of two jobs that meet later are
//! peers like all others until they part. A process that ends without a word is missed.

use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use weft_bootstrap::ports::{AcceptingGroup, Caller, Invitation, Member, Port};
use weft_bootstrap::{ThreadBootstrap, threads};
use weft_fabric::{
    Fabric, FabricExt, FaultCause, FetchAdd, FlagKind, Head, Region, RemoteAddr, RemoteRead, Sge,
};
use weft_fabric_ofi::Ofi;
use weft_fabric_verbs::Verbs;
use weft_job_connections::{
    Connectable, Exchange, JobConnection, JobMembers, PeerIdentity, SessionMembers,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Number of processes of each job.
pub const SIZES: [usize; 2] = [1, 2];
const ALL: usize = 3;

/// Size of the memory that each process shows to the others, in bytes: a word, a flag, and data that is read over every rail.
const LEN: usize = (64 << 10) + 16;

/// Number of messages that go to each peer at once.
const FLOOD: u64 = 40;

/// A network as these tests see it.
pub trait Linked: Fabric + Connectable {
    /// Returns the reason for a fault, in words.
    fn trouble(&self) -> Option<String>;
    /// Returns the number of processes of the job and of linked jobs.
    fn processes(&self) -> usize;
}

impl Linked for Ofi {
    fn trouble(&self) -> Option<String> {
        Ofi::trouble(self)
    }

    fn processes(&self) -> usize {
        Ofi::processes(self)
    }
}

impl Linked for Verbs {
    fn trouble(&self) -> Option<String> {
        Verbs::trouble(self)
    }

    fn processes(&self) -> usize {
        Verbs::processes(self)
    }
}

/// A session between the two jobs.
struct Session {
    invitation: Invitation,
    /// Call of the calling job. If it ended before all processes have joined, the session would count as given up.
    _caller: Caller,
}

/// Opens a session between the two jobs.
fn session() -> Session {
    let port = Port::open(Some("127.0.0.1".parse().unwrap()), || {}).unwrap();
    let name = port.name().to_owned();
    let caller = thread::spawn(move || {
        let mut caller = Caller::call(&name, SIZES[1]).unwrap();
        caller.invitation(PATIENCE).unwrap();
        caller
    });
    let calling = loop {
        match port.next() {
            Some(calling) => break calling,
            None => thread::sleep(Duration::from_millis(1)),
        }
    };
    let invitation =
        port.admit(calling, AcceptingGroup { root: 0, size: SIZES[0] }, 0, PATIENCE).unwrap();
    Session { invitation, _caller: caller.join().unwrap() }
}

/// A process, and the sessions by which it meets the others.
pub struct Process<'p, F> {
    /// Network of the process.
    pub fabric: F,
    place: usize,
    job: usize,
    sessions: &'p Mutex<Vec<Session>>,
}

fn lock(sessions: &Mutex<Vec<Session>>) -> MutexGuard<'_, Vec<Session>> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(place: usize, i: usize) -> u8 {
    (place * 101 + i * 7 + i / 256) as u8
}

impl<F: Linked> Process<'_, F> {
    /// Waits until `found` returns a value, while making progress.
    fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let (end, fabric) = (Instant::now() + PATIENCE, &self.fabric);
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(Instant::now() < end, "{what} does not come: {:?}", fabric.trouble());
            fabric.progress();
            thread::yield_now();
        }
    }

    /// Returns the link of a round.
    fn link(&self, round: usize) -> JobConnection {
        if self.place == 0 {
            let made = session();
            lock(self.sessions).push(made);
        }
        let invitation = self.until("a session", || {
            lock(self.sessions).get(round).map(|session| session.invitation.clone())
        });
        let whom = |place: usize| {
            let job = usize::from(place >= SIZES[0]);
            let rank = place - job * SIZES[0];
            let known = (job == self.job).then_some(rank);
            PeerIdentity { job: job as u64, rank, node: 0, known }
        };
        let identities: Vec<PeerIdentity> = (0..ALL).map(whom).collect();
        let members = SessionMembers { identities: &identities, place: self.place };
        let member = Member::join(&invitation, self.place, PATIENCE).unwrap();
        let mut exchange = |bytes: Vec<u8>| member.exchange(&bytes).map_err(|e| e.to_string());
        let stays = || member.try_clone()?.stay(self.fabric.alarm());
        let mut stay =
            |_: JobMembers<'_>, _: Exchange<'_>| stays().map_err(|error| error.to_string());
        let secret = invitation.secret();
        self.fabric.admit(members, secret, &mut exchange, &mut stay).unwrap()
    }

    /// Sends messages to each member of the other job, and receives as many from each. Then reads and changes words of their
    /// memory.
    fn talk(&self, link: &JobConnection, round: u64) {
        let (fabric, peers) = (&self.fabric, link.new_peers());
        assert_eq!(peers.len(), SIZES[1 - self.job]);
        let region = fabric.allocate(LEN).unwrap();
        let content: Vec<u8> = (0..LEN - 16).map(|i| number(self.place, i)).collect();
        region.local.part(16, LEN - 16).fill(&content);
        let flag = fabric.flag(&region, 8, FlagKind::Waking);
        let mut name: Vec<u8> = region.remote.words().map(u64::to_le_bytes).concat();
        // SAFETY: `Sge::new` needs memory that stays until the operation is complete. `name` lives until the fabric is idle, after
        // the messages have left.
        let payload = unsafe { Sge::new(name.as_mut_ptr(), name.len()) };
        for i in 0..FLOOD {
            for &peer in peers {
                let _ = fabric.send(peer, Head([round, self.place as u64, i]), payload, None);
            }
        }
        for &peer in peers {
            let mut found = None;
            for i in 0..FLOOD {
                let message = self.until("a message", || fabric.receive(Some(peer)));
                let Head([said, place, number]) = message.head;
                let from = (link.peers()[place as usize], message.peer);
                assert_eq!((said, number, from), (round, i, (peer, peer)));
                let mut words = [0; 8 * RemoteAddr::WORDS];
                message.payload.read(&mut words);
                fabric.release(message);
                let (words, _) = words.as_chunks();
                let word = |i: usize| u64::from_le_bytes(words[i]);
                found = Some((RemoteAddr::from_words(std::array::from_fn(word)), place as usize));
            }
            let (at, place) = found.expect("there was a message");
            self.reach(peer, at, place);
        }
        let value = || fabric.counters().value(flag.local);
        self.until("atomics of all", || (value() >= peers.len() as u64).then_some(()));
        self.until("nothing under way", || fabric.idle().then_some(()));
        fabric.withdraw(region);
    }

    /// Reads everything that `peer` shows over every rail, and adds to its word.
    fn reach(&self, peer: usize, at: RemoteAddr, place: usize) {
        let (fabric, counters) = (&self.fabric, self.fabric.counters());
        let done = counters.allocate();
        let before = counters.value(done);
        let mut over = 0;
        let mut wait = |what: &str| {
            over += 1;
            self.until(what, || (counters.value(done) >= before + over).then_some(()));
        };
        let into: Region = fabric.allocate(LEN - 16).unwrap();
        for rail in 0..fabric.capabilities(peer).rails {
            // The first read may find the rail not open yet.
            for _ in 0..2 {
                into.local.fill(&vec![0; LEN - 16]);
                fabric
                    .read_over(rail, peer, &RemoteRead::new(into.local, at.offset(16), Some(done)))
                    .unwrap();
                wait("a read");
                let mut bytes = vec![0; LEN - 16];
                into.local.read(&mut bytes);
                let wrong = (0..bytes.len()).find(|&i| bytes[i] != number(place, i));
                assert_eq!(wrong, None, "the first wrong byte, over rail {rail}");
            }
        }
        let result = into.local.part(0, 8);
        fabric
            .fetch_add(
                peer,
                &FetchAdd { target: at.offset(8), operand: 1, result, done: Some(done) },
            )
            .unwrap();
        wait("an atomic");
        counters.free(done);
        fabric.withdraw(into);
    }

    fn part(&self, link: JobConnection) {
        let fabric = &self.fabric;
        self.until("the last message", || fabric.idle().then_some(()));
        fabric.say_left(&link);
        self.until("the others' leave", || link.others_left().then_some(()));
        let own = SIZES[self.job];
        fabric.forget_link(link);
        self.until("the end of the link", || (fabric.processes() == own).then_some(()));
    }
}

/// Runs `what` in all processes of two jobs. `make` gets the number of the job.
fn jobs<F: Linked>(
    make: &(impl Fn(usize, &mut ThreadBootstrap) -> F + Sync),
    what: impl Fn(&Process<'_, F>) + Sync,
) {
    let sessions = Mutex::default();
    thread::scope(|scope| {
        for (job, size) in SIZES.into_iter().enumerate() {
            for (rank, mut world) in threads(size).into_iter().enumerate() {
                let (what, sessions) = (&what, &sessions);
                scope.spawn(move || {
                    let fabric = make(job, &mut world);
                    what(&Process { fabric, place: job * SIZES[0] + rank, job, sessions });
                });
            }
        }
    });
}

/// Lets the jobs meet `rounds` times. Calls `look` with a process's network, its place and the round between two rounds.
pub fn meet_and_part<F: Linked>(
    make: &(impl Fn(usize, &mut ThreadBootstrap) -> F + Sync),
    rounds: usize,
    look: impl Fn(&F, usize, usize) + Sync,
) {
    jobs(make, |process| {
        let mut before = None;
        for round in 0..rounds {
            let link = process.link(round);
            let peers = link.new_peers().to_vec();
            let first = before.get_or_insert_with(|| peers.clone());
            assert_eq!(*first, peers, "numbers are used again");
            process.talk(&link, round as u64);
            process.part(link);
            look(&process.fabric, process.place, round);
        }
        assert!(process.fabric.fault().is_none(), "{:?}", process.fabric.trouble());
    });
}

/// Lets a process end without a word, with `talk` after something was exchanged with it. Returns the reason that another process
/// reports.
pub fn end_without_a_word<F: Linked>(
    make: &(impl Fn(usize, &mut ThreadBootstrap) -> F + Sync),
    talk: bool,
) -> String {
    let (seen, said) = (Barrier::new(2), Mutex::default());
    jobs(make, |process| {
        let link = process.link(0);
        if talk {
            process.talk(&link, 0);
        }
        if process.place == 0 {
            let fault = process.until("the loss", || process.fabric.fault());
            let lost = link.peers()[2];
            assert!(matches!(*fault.cause(), FaultCause::PeerLost { rank } if rank == lost));
            *said.lock().unwrap() = process.fabric.trouble().unwrap();
        }
        // The process at the last place drops its network.
        if process.place < 2 {
            seen.wait();
        }
    });
    said.into_inner().unwrap()
}
