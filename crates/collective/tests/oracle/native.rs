//! Streams of segments under a view: every path of a message, too few places and tokens, late receivers, several communicators,
//! messages that are forwarded while they arrive.

use crate::group::{Float, Group, bytes_of};
use fastrand::Rng;
use weft_collective::{ReductionBuffers, Via, allreduce, alltoall, barrier, bcast};
use weft_fabric::{Fabric, Fault, Staging};
use weft_fabric_testing::world::{FabricSetup, RankBody, SETUPS, TestRank, bytes, pattern, world};
use weft_p2p::stream::{StreamCounts, StreamSizes};

/// Sizes so small that every resource runs short.
const SCARCE: StreamSizes = StreamSizes {
    small: 256,
    credit: 4,
    segment: 1024,
    slots: 8,
    tokens: 2,
    allowance: 2,
    window: 4,
    rendezvous: 8 << 10,
    block: 2048,
    blocks: 2,
    flags: 3,
};

/// Lengths around every threshold.
const LENGTHS: [usize; 20] = [
    0, 1, 255, 256, 257, 1023, 1024, 1025, 2048, 2049, 4096, 5000, 8191, 8192, 8193, 10_240,
    10_241, 12_288, 30_000, 70_001,
];

fn native<'r, F: Fabric>(
    rank: &'r TestRank<'r, F>,
    context: u64,
    sizes: StreamSizes,
) -> Group<'r, F> {
    let streams = rank.endpoint().streams();
    streams.set_sizes(sizes);
    let all = (0..rank.size() as u32).collect();
    let mut group = Group::new(rank, context, all).expect("everybody is a member");
    group.via = Via::Native;
    group
}

fn counts<F: Fabric>(rank: &TestRank<F>) -> StreamCounts {
    rank.endpoint().streams().counts()
}

/// Runs `body` on every fabric of [`SETUPS`].
fn everywhere(n: usize, body: &impl RankBody) {
    for setup in SETUPS {
        world(n, setup, body);
    }
}

/// All ranks send to all ranks, including themselves: several messages with one key, received in another order.
struct Traffic;

impl RankBody for Traffic {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = native(rank, 100, SCARCE);
        let (me, n) = (rank.me(), rank.size());
        let key = |len: usize, from: usize, to: usize, i: usize| {
            (len << 16 | from << 10 | to << 4 | i) as u64
        };
        for (round, len) in LENGTHS.into_iter().enumerate() {
            let link = group.link();
            // Only the order distinguishes two messages with one key.
            let sizes = [len, LENGTHS[(round + 7) % LENGTHS.len()]];
            let mut sends: Vec<(_, Staging)> = Vec::new();
            let mut receives = Vec::new();
            let late = Rng::with_seed((round * n + me) as u64).bool();
            for late_now in [late, !late] {
                if late_now {
                    for to in 0..n {
                        for (i, len) in sizes.into_iter().enumerate() {
                            let data = rank.buffer(&pattern(key(len, me, to, i), len));
                            if let Some(id) = link.isend(to, data.sge()) {
                                sends.push((id, data));
                            }
                        }
                    }
                } else {
                    for from in (0..n).rev() {
                        for (i, len) in sizes.into_iter().enumerate() {
                            let into = rank.empty(len);
                            receives.push((link.irecv(from, into.sge()), into, from, i));
                        }
                    }
                }
                rank.progress();
            }
            for (id, into, from, i) in receives {
                rank.block_on(link.wait(id)).unwrap();
                let expected = pattern(key(sizes[i], from, me, i), sizes[i]);
                assert!(bytes(&into) == expected, "{} bytes, {from} to {me}, {i}", sizes[i]);
            }
            for (id, _data) in sends {
                rank.block_on(link.wait(id)).unwrap();
            }
        }
        let counts = counts(rank);
        assert_eq!(counts.received, (2 * LENGTHS.len() * n) as u64);
        assert_eq!(counts.small + counts.segmented + counts.blocks, counts.received);
        assert_eq!(counts.lookups, 2 * counts.received, "one look for each half");
    }
}

#[test]
fn messages_of_every_length_arrive_in_order_however_little_there_is() {
    for n in [1, 2, 5, 12] {
        everywhere(n, &Traffic);
    }
}

/// Early messages in one communicator do not block another communicator, and their memory is bounded.
struct Early;

const EARLY: usize = 40;

impl RankBody for Early {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let (first, second) = (native(rank, 100, SCARCE), native(rank, 101, SCARCE));
        let (me, n) = (rank.me(), rank.size());
        let early = first.link();
        let content = |from: usize, i: usize| {
            pattern((from << 8 | i) as u64, LENGTHS[1..][i % (LENGTHS.len() - 1)])
        };
        let mut sends = Vec::new();
        if me > 0 {
            for i in 0..EARLY {
                let data = rank.buffer(&content(me, i));
                sends.extend(early.isend(0, data.sge()).map(|id| (id, data)));
            }
        }
        // A whole exchange follows, with messages that need places.
        for len in [100, 5000, 40_000] {
            let link = second.link();
            let (to, from) = ((me + 1) % n, (me + n - 1) % n);
            let out = rank.buffer(&pattern((len + me) as u64, len));
            let into = rank.empty(len);
            rank.block_on(link.exchange(to, out.sge(), from, into.sge())).unwrap();
            assert!(bytes(&into) == pattern((len + from) as u64, len));
        }
        if me == 0 {
            let counts = counts(rank);
            let most = SCARCE.credit * (n as u64 - 1);
            assert!(counts.saved <= most, "{} of {most}", counts.saved);
            for i in 0..EARLY {
                for from in 1..n {
                    let expected = content(from, i);
                    let into = rank.empty(expected.len());
                    rank.block_on(early.recv(from, into.sge())).unwrap();
                    assert!(bytes(&into) == expected, "message {i} of {from}");
                }
            }
        }
        for (id, _data) in sends {
            rank.block_on(early.wait(id)).unwrap();
        }
    }
}

#[test]
fn early_messages_are_kept_within_bounds_and_block_nobody() {
    for n in [2, 4, 9] {
        everywhere(n, &Early);
    }
}

/// A message goes down a binary tree; some ranks come late.
struct BinaryTree {
    sizes: StreamSizes,
    lengths: &'static [usize],
}

impl RankBody for BinaryTree {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = native(rank, 100, self.sizes);
        let (me, n) = (rank.me(), rank.size());
        for (round, &len) in self.lengths.iter().enumerate() {
            let data = pattern(round as u64, len);
            let link = group.link();
            let mut sends = Vec::new();
            // A binary tree: ranks 2 r + 1 and 2 r + 2 are the children of r.
            let children: Vec<usize> =
                [2 * me + 1, 2 * me + 2].into_iter().filter(|&c| c < n).collect();
            let buffer = if me == 0 { rank.buffer(&data) } else { rank.empty(len) };
            if me == 0 {
                sends.extend(children.iter().filter_map(|&c| link.isend(c, buffer.sge())));
            } else {
                if (me + round) % 3 == 0 {
                    // This rank is late: messages that are forwarded to it must not wait in the places of its parent.
                    for _ in 0..200 {
                        rank.progress();
                    }
                }
                let before = counts(rank);
                rank.block_on(link.relay((me - 1) / 2, buffer.sge(), &children, &mut sends))
                    .unwrap();
                let out = counts(rank).copied_out - before.copied_out;
                assert!(out <= len as u64, "no byte is copied twice: {out} of {len}");
            }
            rank.block_on(link.wait_all(sends)).unwrap();
            assert!(bytes(&buffer) == data, "{len} bytes at {me}");
        }
    }
}

#[test]
fn a_message_is_passed_on_while_it_comes() {
    for n in [2, 3, 8] {
        everywhere(n, &BinaryTree { sizes: SCARCE, lengths: &LENGTHS });
    }
    let sizes = StreamSizes { rendezvous: usize::MAX, ..StreamSizes::default() };
    for setup in SETUPS {
        world(4, setup, &BinaryTree { sizes, lengths: &[200_000, 4096, 4097, 1 << 20] });
    }
}

/// Messages of all kinds go down a chain. Their receives are posted long before they arrive. There are more messages than credit
/// and room allow, and no message overtakes another.
struct Ahead {
    sizes: StreamSizes,
}

impl RankBody for Ahead {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        const LENGTHS: [usize; 9] = [100, 0, 97, 5000, 64, 20_000, 1, 70_000, 333];
        let group = native(rank, 100, self.sizes);
        let (me, n) = (rank.me(), rank.size());
        for round in 0..6u64 {
            let link = group.link();
            let len = |i: u64| LENGTHS[((i * (round + 1)) % 9) as usize];
            let data = |i| pattern(round * 100 + i, len(i));
            let (mut sends, mut asked) = (Vec::new(), Vec::new());
            let next: &[usize] = if me + 1 < n { &[me + 1] } else { &[] };
            let buffers: Vec<_> = (0..40)
                .map(|i| if me == 0 { rank.buffer(&data(i)) } else { rank.empty(len(i)) })
                .collect();
            for buffer in &buffers {
                match me {
                    0 => sends.extend(link.isend(1, buffer.sge())),
                    _ => asked.push(link.irelay(me - 1, buffer.sge(), next, &mut sends)),
                }
            }
            for (receive, buffer) in asked.into_iter().zip(&buffers) {
                rank.block_on(link.wait(receive)).unwrap();
                link.relay_come(buffer.sge(), next, &mut sends);
            }
            rank.block_on(link.wait_all(sends)).unwrap();
            for (i, buffer) in buffers.iter().enumerate() {
                let i = i as u64;
                assert!(bytes(buffer) == data(i), "message {i} of round {round}, {} bytes", len(i));
            }
        }
    }
}

#[test]
fn what_is_passed_on_stays_in_order() {
    for n in [3, 5] {
        everywhere(n, &Ahead { sizes: SCARCE });
    }
    world(4, SETUPS[0], &Ahead { sizes: StreamSizes::default() });
}

/// A receiver that expected fewer bytes reports it, and all ranks go on.
struct Disagreement;

impl RankBody for Disagreement {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = native(rank, 100, SCARCE);
        for len in [200, 1000, 5000, 20_000] {
            let link = group.link();
            let data = rank.buffer(&pattern(len as u64, len));
            if rank.me() == 0 {
                rank.block_on(link.send(1, data.sge())).unwrap();
            } else {
                let into = rank.empty(150);
                let fault = rank.block_on(link.recv(0, into.sge())).unwrap_err();
                assert_eq!(fault, Fault::truncated(0, 150, len as u64));
            }
            let link = group.link();
            let (to, into) = (1 - rank.me(), rank.empty(len));
            rank.block_on(link.exchange(to, data.sge(), to, into.sge())).unwrap();
            assert!(bytes(&into) == bytes(&data));
        }
    }
}

#[test]
fn a_message_that_is_too_long_is_an_error_of_its_receiver_alone() {
    everywhere(2, &Disagreement);
}

/// Memory that cannot be registered: blocks are sent as segments instead.
struct Unregistered;

impl RankBody for Unregistered {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = native(rank, 100, SCARCE);
        for round in 0..20 {
            let link = group.link();
            let len = 9000 + 1000 * round;
            let (peer, out) =
                (1 - rank.me(), rank.buffer(&pattern((round * 2 + rank.me()) as u64, len)));
            let into = rank.empty(len);
            rank.block_on(link.exchange(peer, out.sge(), peer, into.sge())).unwrap();
            assert!(bytes(&into) == pattern((round * 2 + peer) as u64, len));
        }
        assert!(counts(rank).converted > 0);
    }
}

#[test]
fn blocks_that_cannot_be_registered_come_as_segments() {
    for on in [SETUPS[0].on, SETUPS[5].on, SETUPS[6].on] {
        let faults = "seed=2,registration_failure=0.5";
        world(2, FabricSetup { on, faults, ..SETUPS[0] }, &Unregistered);
    }
}

/// The same algorithms over both transports, alternately on one communicator, give the same bits.
struct Collectives;

impl RankBody for Collectives {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let mut group = native(rank, 100, SCARCE);
        let (me, n) = (rank.me(), rank.size());
        for words in [1, 40, 300, 3000] {
            let len = 8 * words;
            let mut sums = Vec::new();
            for via in [Via::Native, Via::Messages] {
                group.via = via;
                let root = words % n;
                let key = (words << 8 | root) as u64;
                let buffer =
                    if me == root { rank.buffer(&pattern(key, len)) } else { rank.empty(len) };
                rank.block_on(bcast::binomial(&group.link(), root, buffer.sge())).unwrap();
                assert!(bytes(&buffer) == pattern(key, len), "bcast of {words} words, {via:?}");

                let block = |a: usize, b: usize| pattern((words << 10 | a << 5 | b) as u64, len);
                let out: Vec<_> = (0..n).map(|to| rank.buffer(&block(me, to))).collect();
                let into: Vec<_> = (0..n).map(|_| rank.empty(len)).collect();
                let sges = |all: &[Staging]| all.iter().map(Staging::sge).collect::<Vec<_>>();
                let link = group.link();
                rank.block_on(alltoall::pairwise(&link, &sges(&out), &sges(&into))).unwrap();
                for (from, got) in into.iter().enumerate() {
                    assert!(bytes(got) == block(from, me), "alltoall of {words} words, {via:?}");
                }

                let mut rng = Rng::with_seed((me + words) as u64);
                let mut number = || ((rng.f64() - 0.5) * 10f64.powi(rng.i32(-12..12))).to_bits();
                let mine: Vec<u64> = (0..words).map(|_| number()).collect();
                let (data, sum) = (rank.buffer(&bytes_of(&mine)), rank.empty(len));
                let link = group.link();
                let buffers = ReductionBuffers { data: data.sge(), result: sum.sge(), element: 8 };
                let reduced = allreduce::pairwise_exchange(&link, buffers, &Float);
                rank.block_on(reduced).unwrap();
                sums.push(bytes(&sum));
                rank.block_on(barrier::dissemination(&group.link())).unwrap();
            }
            assert!(sums[0] == sums[1], "allreduce of {words} words: other bits by streams");
        }
    }
}

#[test]
fn algorithms_do_not_see_what_carries_them() {
    for n in [1, 3, 8, 13] {
        everywhere(n, &Collectives);
    }
}

/// Messages that are to be forwarded, from a root that does not come before another communicator's
/// message has arrived: their receives must leave places for that message.
struct Patience;

impl RankBody for Patience {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let (first, second) = (native(rank, 100, SCARCE), native(rank, 101, SCARCE));
        let me = rank.me();
        let lengths = [5000, 20_000, 4000, 8000, 9000, 30_000, 7000, 12_000, 6000, 300, 100];
        let links: Vec<_> = lengths.iter().map(|_| first.link()).collect();
        let fill = |i: usize| match me {
            0 => rank.buffer(&pattern(i as u64, lengths[i])),
            _ => rank.empty(lengths[i]),
        };
        let buffers: Vec<_> = (0..lengths.len()).map(fill).collect();
        // Down the chain 0, 1, 2, all messages at once.
        let pass = |i: usize| {
            let (link, data) = (&links[i], buffers[i].sge());
            async move {
                let mut sends = Vec::new();
                let next = [me + 1];
                match me {
                    0 => sends.extend(link.isend(1, data)),
                    _ => link.relay(me - 1, data, &next[..2 - me], &mut sends).await?,
                }
                link.wait_all(sends).await
            }
        };
        let mut passing: Vec<_> = (0..lengths.len()).map(|i| Some(Box::pin(pass(i)))).collect();
        let mut all = || {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            for one in &mut passing {
                if let Some(std::task::Poll::Ready(ended)) =
                    one.as_mut().map(|one| one.as_mut().poll(&mut cx))
                {
                    ended.unwrap();
                    *one = None;
                }
            }
            passing.iter().all(Option::is_none).then_some(())
        };
        if me > 0 {
            assert!(all().is_none());
            for _ in 0..200 {
                rank.progress();
            }
        }
        for len in [6000, 20_000] {
            let link = second.link();
            let (to, from) = ((me + 2) % 3, (me + 1) % 3);
            let (out, into) = (rank.buffer(&pattern(me as u64, len)), rank.empty(len));
            rank.block_on(link.exchange(to, out.sge(), from, into.sge())).unwrap();
            assert!(bytes(&into) == pattern(from as u64, len));
        }
        rank.until(all);
        for (i, buffer) in buffers.iter().enumerate() {
            assert!(bytes(buffer) == pattern(i as u64, lengths[i]), "message {i}");
        }
    }
}

#[test]
fn what_is_to_be_passed_on_keeps_nobody_from_going_on() {
    everywhere(3, &Patience);
}
