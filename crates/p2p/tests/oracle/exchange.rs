//! The protocols of exchanges: offers that cross are read in place, and other traffic keeps its protocols.

use weft_fabric::{Fabric, Staging};
use weft_fabric_testing::world::{RankBody, SETUPS, TestRank, bytes, pattern, want, world};
use weft_p2p::protocol::{MessageCase, MessageProtocol, PeerPath, choose};
use weft_p2p::{RequestId, SendMode, TransferPattern};

const DATA: u64 = 1;
const CONTROL: u64 = 2;
const ROUNDS: u64 = 10;

/// A rank whose messages have a length at which the pattern makes a difference by the model of the machine.
struct Neighbor<'w, F: Fabric> {
    rank: &'w TestRank<'w, F>,
    len: usize,
}

impl<'w, F: Fabric> Neighbor<'w, F> {
    fn new(rank: &'w TestRank<'w, F>) -> Neighbor<'w, F> {
        let (fabric, limits) = (rank.endpoint().fabric(), rank.endpoint().limits());
        let (model, peer) = (fabric.copies().model(), (rank.me() + 1) % rank.size());
        let path = PeerPath::new(rank.me(), peer, &fabric.capabilities(peer), &limits, model);
        let chosen = |bytes, pattern| choose(model, &MessageCase { bytes, pattern, path });
        let differs = |&len: &usize| {
            chosen(len, TransferPattern::Plain) == MessageProtocol::Staged
                && chosen(len, TransferPattern::Exchange) == MessageProtocol::Read
        };
        let len = (12..20).map(|power| 1 << power).find(differs);
        Neighbor { rank, len: len.expect("a length at which the pattern makes a difference") }
    }

    fn send(&self, to: usize, round: u64) -> (Option<RequestId>, Staging) {
        let data = self.rank.buffer(&pattern(round, self.len));
        (self.rank.start_send(DATA, to, 0, &data, SendMode::Standard), data)
    }

    fn post(&self, from: usize) -> (RequestId, Staging) {
        let into = self.rank.empty(self.len);
        (self.rank.irecv(&want(DATA, Some(from), Some(0)), &into), into)
    }

    fn take(&self, (receive, into): (RequestId, Staging), round: u64) {
        self.rank.wait(receive);
        assert!(bytes(&into) == pattern(round, self.len), "round {round}");
    }

    /// Returns the number of staged sends so far.
    fn staged(&self) -> u64 {
        self.rank.endpoint().counts().seldom.staged
    }

    /// Waits until all ranks are here and have handled all messages that were sent before.
    fn meet(&self) {
        let (rank, nothing) = (self.rank, self.rank.empty(0));
        // After the first time, each rank has handled what was sent before. The second time waits for that.
        for _ in 0..2 {
            let others = || (0..rank.size()).filter(|&other| other != rank.me());
            others().for_each(|to| assert!(rank.isend(CONTROL, to, 0, &nothing).is_none()));
            others().for_each(|from| {
                rank.wait(rank.irecv(&want(CONTROL, Some(from), Some(0)), &nothing));
            });
        }
    }

    /// Sends to the rank behind, and receives from the rank before, so that all offers cross.
    fn shift(&self, round: u64) {
        let (me, size) = (self.rank.me(), self.rank.size());
        let (send, _data) = self.send((me + 1) % size, round);
        self.meet();
        self.take(self.post((me + size - 1) % size), round);
        send.map(|id| self.rank.wait(id));
        self.meet();
    }

    /// Sends to and fro. Both ranks post the receive before they send.
    fn ping_pong(&self, round: u64) {
        let peer = 1 - self.rank.me();
        let posted = self.post(peer);
        if self.rank.me() == 0 {
            let (send, _data) = self.send(peer, round);
            self.take(posted, round);
            send.map(|id| self.rank.wait(id));
        } else {
            self.take(posted, round);
            let (send, _data) = self.send(peer, round);
            send.map(|id| self.rank.wait(id));
        }
    }
}

/// All ranks send to the next rank at the same time.
struct Shift;

impl RankBody for Shift {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let neighbor = Neighbor::new(rank);
        for round in 0..ROUNDS {
            neighbor.shift(round);
            assert!(neighbor.staged() <= 1, "only before anything was observed: round {round}");
        }
    }
}

#[test]
fn messages_that_cross_are_read_in_place() {
    world(2, SETUPS[0], &Shift);
    world(3, SETUPS[0], &Shift);
}

/// A ping-pong, an exchange, a ping-pong, and a stream in one direction.
struct Phases;

impl RankBody for Phases {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let neighbor = Neighbor::new(rank);
        (0..ROUNDS).for_each(|round| neighbor.ping_pong(round));
        assert_eq!(neighbor.staged(), ROUNDS, "a posted receive is no sign of an exchange");
        (0..ROUNDS).for_each(|round| neighbor.shift(round));
        let before = neighbor.staged();
        assert!(before <= ROUNDS + 1, "{before}");
        (0..ROUNDS).for_each(|round| neighbor.ping_pong(round));
        let early = u64::from(rank.me() == 0);
        let staged = neighbor.staged() - before;
        assert_eq!(staged, ROUNDS - early, "only the first message was taken for an exchange");
        neighbor.shift(0);
        let before = neighbor.staged();
        // The number after which traffic is one-way, and as many again.
        for round in 0..64 {
            if rank.me() == 0 {
                let (send, _data) = neighbor.send(1, round);
                send.map(|id| rank.wait(id));
            } else {
                neighbor.take(neighbor.post(0), round);
            }
            neighbor.meet();
        }
        if rank.me() == 0 {
            let staged = neighbor.staged() - before;
            // The offer of the other rank arrived before or after the own offer.
            assert!((32..=33).contains(&staged), "one-way traffic is no exchange: {staged}");
        }
    }
}

#[test]
fn other_traffic_keeps_its_protocols() {
    world(2, SETUPS[0], &Phases);
}
