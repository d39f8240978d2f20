//! Processes of two jobs that meet later are peers as any other, until they part; what ends without a word is missed.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use weft_bootstrap::ports::{Caller, Invitation, Member, Port};
use weft_bootstrap::threads;
use weft_fabric::linking::{Exchange, Whom};
use weft_fabric::{Cause, Fabric, Head, RemoteAddr, Sge};
use weft_fabric_ofi::{Known, Link, Ofi, Options};

const PATIENCE: Duration = Duration::from_secs(20);

/// Processes of each job.
const SIZES: [usize; 2] = [1, 2];
const ALL: usize = 3;

/// Waits, and moves on.
fn until<T>(ofi: &Ofi, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{what} does not come: {:?}", ofi.trouble());
        ofi.progress();
        thread::yield_now();
    }
}

/// A session between the two jobs.
fn session() -> Invitation {
    let port = Port::open(Some("127.0.0.1".parse().unwrap()), || {}).unwrap();
    let name = port.name().to_owned();
    let caller =
        thread::spawn(move || Caller::call(&name, SIZES[1]).unwrap().invitation(PATIENCE).unwrap());
    let calling = loop {
        match port.next() {
            Some(calling) => break calling,
            None => thread::sleep(Duration::from_millis(1)),
        }
    };
    let invitation = port.admit(calling, (0, SIZES[0]), 0, PATIENCE).unwrap();
    caller.join().unwrap();
    invitation
}

/// One process, and what it knows of all members.
struct Process {
    ofi: Ofi,
    place: usize,
    job: usize,
}

impl Process {
    fn link(&self, invitation: &Invitation) -> Link {
        let whom = |place: usize| {
            let job = usize::from(place >= SIZES[0]);
            let rank = place - job * SIZES[0];
            let known = (job == self.job).then_some(rank);
            Whom { job: job as u64, rank, node: 0, known }
        };
        let members: Vec<Whom> = (0..ALL).map(whom).collect();
        let member = Member::join(invitation, self.place, PATIENCE).unwrap();
        let mut exchange = |bytes: Vec<u8>| member.exchange(&bytes).map_err(|e| e.to_string());
        let stays = || member.try_clone()?.stay(self.ofi.alarm());
        let stay = |_: Known<'_>, _: Exchange<'_>| stays().map_err(|error| error.to_string());
        self.ofi.admit((&members, self.place), invitation.secret(), &mut exchange, stay).unwrap()
    }

    /// A message to each member of the other job, and one of each; then words to and from their memory.
    fn talk(&self, link: &Link, round: u64) {
        let (ofi, peers) = (&self.ofi, link.new_peers());
        assert_eq!(peers.len(), SIZES[1 - self.job]);
        let region = ofi.allocate(64).unwrap();
        region.local.part(0, 8).fill(&(1000 + self.place as u64).to_le_bytes());
        let flag = ofi.flag(&region, 8, true);
        let mut name: Vec<u8> = region.remote.words().map(u64::to_le_bytes).concat();
        // SAFETY: it lives until the messages have left.
        let payload = unsafe { Sge::new(name.as_mut_ptr(), name.len()) };
        for &peer in peers {
            assert_eq!(ofi.capabilities(peer).rails, 1);
            let _ = ofi.send(peer, Head([round, self.place as u64, 0]), payload, None);
        }
        for &peer in peers {
            let message = until(ofi, "a message", || ofi.receive(Some(peer)));
            let Head([said, place, _]) = message.head;
            assert_eq!((said, link.peers()[place as usize], message.peer), (round, peer, peer));
            let mut words = [0; 8 * RemoteAddr::WORDS];
            message.payload.read(&mut words);
            ofi.release(message);
            let (words, _) = words.as_chunks();
            let at = RemoteAddr::from_words(std::array::from_fn(|i| u64::from_le_bytes(words[i])));
            let (mut word, done) = ([0; 8], ofi.counters().allocate());
            // SAFETY: it lives until the read is over.
            let local = unsafe { Sge::new(word.as_mut_ptr(), 8) };
            ofi.read(peer, local, at, Some(done)).unwrap();
            until(ofi, "a read", || (ofi.counters().value(done) >= 1).then_some(()));
            assert_eq!(u64::from_le_bytes(word), 1000 + place);
            ofi.fetch_add(peer, at.offset(8), 1, local, Some(done)).unwrap();
            until(ofi, "an atomic", || (ofi.counters().value(done) >= 2).then_some(()));
        }
        let value = || ofi.counters().value(flag.local);
        until(ofi, "atomics of all", || (value() >= peers.len() as u64).then_some(()));
    }

    fn part(&self, link: Link) {
        until(&self.ofi, "the last message", || self.ofi.idle().then_some(()));
        self.ofi.say_left(&link);
        until(&self.ofi, "the others' leave", || link.others_left().then_some(()));
        let own = SIZES[self.job];
        self.ofi.forget_link(link);
        until(&self.ofi, "the end of the link", || (self.ofi.processes() == own).then_some(()));
    }
}

/// Runs `what` in all processes of two jobs.
fn jobs(what: impl Fn(&Process, &[Invitation]) + Sync) {
    let invitations: Vec<Invitation> = (0..4).map(|_| session()).collect();
    thread::scope(|scope| {
        for (job, size) in SIZES.into_iter().enumerate() {
            for (rank, mut world) in threads(size).into_iter().enumerate() {
                let (what, invitations) = (&what, &invitations);
                scope.spawn(move || {
                    let provider = Some("weft-tcp".to_owned());
                    let options = Options { provider, ..Options::default() };
                    let ofi = Ofi::connect(&mut world, options).unwrap();
                    what(&Process { ofi, place: job * SIZES[0] + rank, job }, invitations);
                });
            }
        }
    });
}

#[test]
fn jobs_meet_and_part_again_and_again() {
    jobs(|process, invitations| {
        let mut before = None;
        for (round, invitation) in invitations.iter().enumerate() {
            let link = process.link(invitation);
            let peers = link.new_peers().to_vec();
            assert_eq!(
                *before.get_or_insert_with(|| peers.clone()),
                peers,
                "numbers are used again"
            );
            process.talk(&link, round as u64);
            process.part(link);
        }
        assert!(process.ofi.fault().is_none(), "{:?}", process.ofi.trouble());
    });
}

#[test]
fn whoever_ends_without_a_word_is_missed_without_a_connection() {
    let seen = Barrier::new(2);
    jobs(|process, invitations| {
        let link = process.link(&invitations[0]);
        if process.place == 0 {
            let fault = until(&process.ofi, "the loss", || process.ofi.fault());
            let lost = link.peers()[2];
            assert!(matches!(*fault.cause(), Cause::PeerLost { rank } if rank == lost));
            assert!(process.ofi.trouble().unwrap().contains("its job"));
        }
        // The last one drops its end.
        if process.place < 2 {
            seen.wait();
        }
    });
}
