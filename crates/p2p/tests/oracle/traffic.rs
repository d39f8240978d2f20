//! Random traffic between all ranks against an oracle: each receive gets exactly the message that
//! the order of the standard gives it (MPI 5.0, section 3.5).

use fastrand::Rng;
use std::collections::VecDeque;
use weft_fabric::{Fabric, Staging};
use weft_fabric_testing::world::{
    self, FabricSetup, RankBody, SETUPS, TestRank, bytes, pattern, want, world,
};
use weft_p2p::{Direct, ProtocolLimits, Rendezvous, RequestId, Status, Tag, TransferPattern};

/// Number of messages that each rank sends.
const MESSAGES: usize = 60;
const CONTEXTS: u64 = 2;
const TAGS: Tag = 3;

#[derive(Debug, Clone, PartialEq)]
struct Message {
    to: usize,
    context: u64,
    tag: Tag,
    len: usize,
    synchronous: bool,
    /// Key of the payload, which is `pattern(key, len)`.
    key: u64,
}

/// Returns the messages that `from` sends, in order. Every rank can compute the messages of every other rank.
fn plan(seed: u64, from: usize, setup: &FabricSetup, n: usize) -> Vec<Message> {
    let mut rng = Rng::with_seed(seed * 1000 + from as u64);
    let eager = setup.limits.eager;
    let message = |i: usize| {
        let len = match rng.u32(0..10) {
            0 => 0,
            1..=4 => rng.usize(1..200),
            5 => rng.usize(eager.saturating_sub(2)..=eager + 2),
            6 => rng.usize(eager / 2..=2 * eager),
            7 => rng.usize(0..=setup.limits.credit as usize / 4),
            8 => rng.usize(0..=64 << 10),
            _ => rng.usize(0..=200 << 10),
        };
        let key = ((seed * 100 + from as u64) * 1000 + i as u64) << 1;
        let (to, context) = (rng.usize(0..n), rng.u64(0..CONTEXTS));
        let synchronous = rng.u8(0..4) == 0;
        Message { to, context, tag: rng.i32(0..TAGS), len, synchronous, key }
    };
    (0..MESSAGES).map(message).collect()
}

/// Way in which a batch of receives is made.
#[derive(Debug, Clone, Copy)]
enum Way {
    Posted,
    Probed,
    TakenOut,
    Direct,
}

struct Traffic {
    seed: u64,
    setup: FabricSetup,
}

struct Sender {
    queue: VecDeque<Message>,
    under_way: Vec<(RequestId, Staging)>,
}

impl Sender {
    /// Starts some sends, and ends sends that are complete.
    fn step<F: Fabric>(&mut self, rank: &TestRank<F>, rng: &mut Rng) {
        for _ in 0..rng.usize(0..3) {
            let Some(m) = self.queue.pop_front() else { break };
            let data = rank.buffer(&pattern(m.key, m.len));
            let kind = match m.synchronous {
                true => TransferPattern::Synchronous,
                false => {
                    let others = TransferPattern::ALL.map(|p| match p {
                        TransferPattern::Synchronous => TransferPattern::Plain,
                        other => other,
                    });
                    others[rng.usize(0..others.len())]
                }
            };
            if let Some(id) = rank.start_send(m.context, m.to, m.tag, &data, kind) {
                self.under_way.push((id, data));
            }
        }
        self.under_way.retain(|(id, _)| rank.endpoint().finish(*id).is_none());
    }
}

/// Messages still expected at this rank, by sender, in order.
struct Oracle {
    expected: Vec<Vec<Message>>,
}

impl Oracle {
    fn left(&self) -> usize {
        self.expected.iter().map(Vec::len).sum()
    }

    /// Returns the number of expected messages that match a pattern.
    fn fitting(&self, context: u64, from: Option<usize>, tag: Option<Tag>) -> usize {
        let senders = self.expected.iter().enumerate();
        let wanted = senders.filter(|(s, _)| from.is_none_or(|f| f == *s));
        let fits = |m: &&Message| m.context == context && tag.is_none_or(|t| t == m.tag);
        wanted.map(|(_, list)| list.iter().filter(fits).count()).sum()
    }

    /// Checks the result of a receive, and removes its message.
    fn check(&mut self, context: u64, tag: Option<Tag>, status: &Status, into: &Staging) {
        let list = &mut self.expected[status.source as usize];
        let fits = |m: &Message| m.context == context && tag.is_none_or(|t| t == m.tag);
        let place = list.iter().position(fits).expect("a message is still expected");
        let m = list.remove(place);
        let fitting = m.len.min(into.len());
        let lost = (m.len - fitting) as u64;
        assert_eq!((status.tag, status.bytes, status.lost), (m.tag, fitting as u64, lost), "{m:?}");
        assert!(!status.flags.cancelled());
        let got = bytes(into);
        assert!(got[..fitting] == pattern(m.key, m.len)[..fitting], "content of {m:?}");
        assert!(got[fitting..].iter().all(|&b| b == 0xee), "nothing beyond the end of {m:?}");
    }
}

impl RankBody for Traffic {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let (me, n) = (rank.me(), rank.size());
        let mut rng = Rng::with_seed(self.seed << 8 | me as u64);
        let queue = plan(self.seed, me, &self.setup, n).into();
        let mut sender = Sender { queue, under_way: Vec::new() };
        let to_me = |from| plan(self.seed, from, &self.setup, n).into_iter();
        let expected = (0..n).map(|from| to_me(from).filter(|m| m.to == me).collect()).collect();
        let mut oracle = Oracle { expected };
        while oracle.left() > 0 {
            let context = rng.u64(0..CONTEXTS);
            let from = rng.bool().then(|| rng.usize(0..n));
            let tag = rng.bool().then(|| rng.i32(0..TAGS));
            let most = oracle.fitting(context, from, tag);
            if most > 0 {
                let count = rng.usize(1..=most.min(8));
                self.batch(rank, &mut rng, &mut sender, &mut oracle, (context, from, tag), count);
            }
        }
        rank.until(|| {
            sender.step(rank, &mut rng);
            (sender.queue.is_empty() && sender.under_way.is_empty()).then_some(())
        });
        let (envelopes, _, payload, _) = rank.endpoint().unexpected();
        assert_eq!((envelopes, payload), (0, 0));
    }
}

impl Traffic {
    /// Simulates signals while the program computes.
    fn interrupt<F: Fabric>(&self, rank: &TestRank<F>, rng: &mut Rng) {
        for _ in 0..rng.u32(0..4) {
            rank.endpoint().interrupted();
            std::thread::yield_now();
        }
    }

    /// Makes `count` receives of one pattern. At least as many matching messages are still expected, so all receives end.
    fn batch<F: Fabric>(
        &self,
        rank: &TestRank<F>,
        rng: &mut Rng,
        sender: &mut Sender,
        oracle: &mut Oracle,
        (context, from, tag): (u64, Option<usize>, Option<Tag>),
        count: usize,
    ) {
        let endpoint = rank.endpoint();
        let want = want(context, from, tag);
        // The buffer is sometimes too short: the rest of the message is lost, and nothing is written beyond the end.
        let room = if rng.u8(0..8) == 0 { rng.usize(0..2000) } else { 200 << 10 };
        match rng.choice([Way::Posted, Way::Probed, Way::TakenOut, Way::Direct]) {
            Some(Way::Posted) | None => {
                let alone = rng.bool();
                let start = |_| {
                    let into = rank.empty(room);
                    let id = match alone {
                        true => endpoint.irecv_as(&want, into.sge(), TransferPattern::OneToMany),
                        false => rank.irecv(&want, &into),
                    };
                    (id, into)
                };
                let posted: Vec<_> = (0..count).map(start).collect();
                for (id, into) in posted {
                    let status = rank.until(|| {
                        if self.setup.limits.prepares {
                            self.interrupt(rank, rng);
                        }
                        sender.step(rank, rng);
                        endpoint.finish(id)
                    });
                    oracle.check(context, tag, &status, &into);
                }
            }
            Some(Way::Probed) => {
                for _ in 0..count {
                    let seen = rank.until(|| {
                        sender.step(rank, rng);
                        endpoint.probe(&want)
                    });
                    let source = Some(seen.source as usize);
                    let into = rank.empty(seen.bytes as usize);
                    let exact = world::want(context, source, Some(seen.tag));
                    let status = rank.wait(rank.irecv(&exact, &into));
                    assert_eq!(
                        (status.source, status.tag, status.bytes),
                        (seen.source, seen.tag, seen.bytes)
                    );
                    oracle.check(context, tag, &status, &into);
                }
            }
            Some(Way::TakenOut) => {
                let mut taken = Vec::new();
                for _ in 0..count {
                    taken.push(rank.until(|| {
                        sender.step(rank, rng);
                        endpoint.take(&want)
                    }));
                }
                let start = |message| {
                    let into = rank.empty(room);
                    (rank.imrecv(message, &into), into)
                };
                let started: Vec<_> = taken.into_iter().map(start).collect();
                for (id, into) in started {
                    oracle.check(context, tag, &rank.wait(id), &into);
                }
            }
            Some(Way::Direct) => {
                for _ in 0..count {
                    let into = rank.empty(room);
                    let status = rank.until(|| {
                        sender.step(rank, rng);
                        match endpoint.poll_direct(&want, into.sge()) {
                            Direct::Got(status) => Some(Ok(status)),
                            Direct::Nothing => None,
                            Direct::Marked => panic!("nobody sends marks"),
                            Direct::Post | Direct::Other => Some(Err(rank.irecv(&want, &into))),
                        }
                    });
                    let status = match status {
                        Ok(status) => status,
                        Err(id) => rank.until(|| {
                            sender.step(rank, rng);
                            endpoint.finish(id)
                        }),
                    };
                    oracle.check(context, tag, &status, &into);
                }
            }
        }
    }
}

fn traffic(setup: usize) {
    traffic_on(SETUPS[setup]);
}

fn traffic_on(setup: FabricSetup) {
    for (seed, n) in [(1, 2), (2, 3), (3, 4)] {
        world(n, setup, &Traffic { seed: seed + 10 * setup.limits.credit, setup });
    }
}

#[test]
fn bare() {
    traffic(0);
}

#[test]
fn in_pieces_with_little_sent_at_once() {
    traffic(1);
}

#[test]
fn with_little_credit() {
    traffic(2);
}

#[test]
fn with_delays() {
    traffic(3);
}

#[test]
fn in_pieces_and_in_disorder() {
    traffic(4);
}

#[test]
fn on_a_simulated_cluster() {
    traffic(5);
}

#[test]
fn on_a_simulated_cluster_in_chaos() {
    traffic(6);
}

#[test]
fn on_a_simulated_cluster_in_chaos_with_delays() {
    traffic(7);
}

/// Runs with `limits` on shared memory, on a cluster, on a cluster in chaos, and with half of all registrations failing.
fn everywhere(limits: ProtocolLimits) {
    for on in [SETUPS[0].on, SETUPS[5].on, SETUPS[6].on] {
        traffic_on(FabricSetup { on, limits, faults: "" });
    }
    traffic_on(FabricSetup { on: SETUPS[0].on, limits, faults: "seed=2,registration_failure=0.5" });
    traffic_on(FabricSetup { on: SETUPS[7].on, limits, faults: SETUPS[7].faults });
}

const LARGE: ProtocolLimits = ProtocolLimits { eager: 1000, staging: 0, ..SETUPS[0].limits };

#[test]
fn written_by_the_sender() {
    everywhere(ProtocolLimits { rendezvous: Rendezvous::Write, ..LARGE });
}

#[test]
fn with_ends_that_wake() {
    everywhere(ProtocolLimits { notifies_at_end: true, ..LARGE });
}

/// Handlers do not change the order of messages. The test in handler.rs shows that handlers start transfers.
#[test]
fn while_handlers_run() {
    for rendezvous in [Rendezvous::Read, Rendezvous::Write] {
        everywhere(ProtocolLimits { rendezvous, prepares: true, ..LARGE });
    }
}
