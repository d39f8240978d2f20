//! Guarantees of single operations: a bound on unreceived payload, synchronous sends that complete
//! only after their match, cancellation that happens wholly or not at all.

use fastrand::Rng;
use weft_fabric::Fabric;
use weft_fabric_testing::world::{
    FabricSetup, RankBody, SETUPS, TestRank, bytes, pattern, want, world,
};
use weft_p2p::protocol::{Locality, MessageCase, MessageProtocol, PeerPath, choose};
use weft_p2p::{ProtocolLimits, TransferPattern};

const DATA: u64 = 1;
const CONTROL: u64 = 2;

/// Runs a test on every fabric.
fn everywhere(n: usize, body: &impl RankBody) {
    for setup in SETUPS {
        world(n, setup, body);
    }
}

/// All ranks send to rank 0, which makes progress but receives nothing for a long time.
struct Flood {
    setup: FabricSetup,
}

const FLOOD: usize = 3000;

fn flood_message(from: usize, i: usize) -> Vec<u8> {
    let len = Rng::with_seed((from * FLOOD + i) as u64).usize(0..120);
    pattern((from * FLOOD + i) as u64, len)
}

impl RankBody for Flood {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let n = rank.size();
        let bound = self.setup.limits.credit * (n as u64 - 1);
        if rank.me() > 0 {
            let mut under_way = Vec::new();
            for i in 0..FLOOD {
                let data = rank.buffer(&flood_message(rank.me(), i));
                if let Some(id) = rank.isend(DATA, 0, 0, &data) {
                    under_way.push((id, data));
                }
            }
            let word = rank.buffer(&[]);
            rank.isend(CONTROL, 0, 0, &word);
            for (id, _data) in under_way {
                rank.wait(id);
            }
            return;
        }
        // The last message of each sender has arrived, so all envelopes have arrived.
        for from in 1..n {
            let nothing = rank.empty(0);
            rank.wait(rank.irecv(&want(CONTROL, Some(from), None), &nothing));
        }
        let (envelopes, most, payload, most_payload) = rank.endpoint().unexpected();
        assert_eq!(envelopes, FLOOD * (n - 1));
        assert!(most <= (FLOOD + 1) * (n - 1));
        assert!(payload <= most_payload && most_payload <= bound, "{most_payload} of {bound}");
        let whole: usize = (0..FLOOD).map(|i| flood_message(1, i).len()).sum();
        if (whole as u64) > self.setup.limits.credit {
            assert!(most_payload > bound / 2, "the credit is used: {most_payload} of {bound}");
        }
        for i in 0..FLOOD {
            for from in (1..n).rev() {
                let into = rank.empty(120);
                let status = rank.wait(rank.irecv(&want(DATA, Some(from), Some(0)), &into));
                let expected = flood_message(from, i);
                assert_eq!(status.bytes, expected.len() as u64, "message {i} of {from}");
                assert!(bytes(&into)[..expected.len()] == expected, "message {i} of {from}");
            }
        }
        let (envelopes, _, payload, most_payload) = rank.endpoint().unexpected();
        assert_eq!((envelopes, payload), (0, 0));
        assert!(most_payload <= bound, "also while payload follows: {most_payload} of {bound}");
    }
}

#[test]
fn unreceived_payload_is_bounded_and_none_is_lost() {
    for setup in SETUPS {
        world(3, setup, &Flood { setup });
    }
}

/// Rank 0 sends synchronously; rank 1 matches only when told.
struct Synchronous;

impl RankBody for Synchronous {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let mut rng = Rng::with_seed(4);
        for round in 0..30 {
            let len = [0, 1, 300, 2000, 9000, 70_000][rng.usize(0..6)];
            let data = pattern(round, len);
            let nothing = rank.empty(0);
            if rank.me() == 0 {
                let data = rank.buffer(&data);
                let id = rank.issend(DATA, 1, 5, &data);
                // The peer has seen the message (its answer comes behind), and must not have matched it.
                rank.isend(CONTROL, 1, 0, &nothing);
                rank.wait(rank.irecv(&want(CONTROL, Some(1), None), &nothing));
                for _ in 0..50 {
                    rank.progress();
                    assert!(!rank.endpoint().is_over(id), "over before it was matched");
                }
                rank.isend(CONTROL, 1, 1, &nothing);
                rank.wait(id);
            } else {
                rank.wait(rank.irecv(&want(CONTROL, Some(0), Some(0)), &nothing));
                let seen =
                    rank.endpoint().probe(&want(DATA, Some(0), None)).expect("it came before");
                assert_eq!((seen.tag, seen.bytes), (5, len as u64));
                rank.isend(CONTROL, 0, 0, &nothing);
                rank.wait(rank.irecv(&want(CONTROL, Some(0), Some(1)), &nothing));
                let into = rank.empty(len);
                rank.wait(rank.irecv(&want(DATA, None, None), &into));
                assert!(bytes(&into) == data);
            }
        }
    }
}

#[test]
fn a_synchronous_send_ends_after_its_match() {
    everywhere(2, &Synchronous);
}

/// Rank 0 sends and cancels at once; rank 1 receives at a random moment. Either both sides see the
/// message, or neither.
struct Cancel;

impl RankBody for Cancel {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let mut rng = Rng::with_seed(7 + rank.me() as u64);
        for round in 0..150u64 {
            let data = pattern(round, if round % 3 == 0 { 20_000 } else { 100 });
            let nothing = rank.empty(0);
            if rank.me() == 0 {
                let source = rank.buffer(&data);
                let id = rank.issend(DATA, 1, 0, &source);
                for _ in 0..rng.usize(0..40) {
                    rank.progress();
                }
                rank.endpoint().cancel(id);
                let status = rank.wait(id);
                rank.isend(CONTROL, 1, i32::from(status.flags.cancelled()), &nothing);
                // The next round has a receive of its own.
                rank.wait(rank.irecv(&want(CONTROL, Some(1), None), &nothing));
            } else {
                for _ in 0..rng.usize(0..40) {
                    rank.progress();
                }
                let into = rank.empty(data.len());
                let id = rank.irecv(&want(DATA, Some(0), Some(0)), &into);
                let verdict = rank.wait(rank.irecv(&want(CONTROL, Some(0), None), &nothing)).tag;
                if verdict == 1 {
                    assert!(!rank.endpoint().is_over(id), "round {round}: it was taken back");
                    rank.endpoint().cancel(id);
                    assert!(rank.wait(id).flags.cancelled());
                } else {
                    assert!(!rank.wait(id).flags.cancelled());
                    assert!(bytes(&into) == data, "round {round}");
                }
                rank.isend(CONTROL, 0, 0, &nothing);
            }
        }
    }
}

#[test]
fn a_cancelled_send_is_received_or_not_but_not_both() {
    everywhere(2, &Cancel);
}

/// Both outcomes of a cancellation, one after the other, without chance.
struct Certain;

impl RankBody for Certain {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let nothing = rank.empty(0);
        for (round, len) in [0, 200, 50_000].into_iter().enumerate() {
            let (first, second) = (pattern(1, len), pattern(2, len));
            if rank.me() == 0 {
                let (a, b) = (rank.buffer(&first), rank.buffer(&second));
                let taken_back = rank.issend(DATA, 1, 0, &a);
                rank.endpoint().cancel(taken_back);
                assert!(
                    rank.wait(taken_back).flags.cancelled(),
                    "round {round}: nobody receives yet"
                );
                let kept = rank.issend(DATA, 1, 0, &b);
                rank.isend(CONTROL, 1, 0, &nothing);
                rank.wait(rank.irecv(&want(CONTROL, Some(1), None), &nothing));
                rank.endpoint().cancel(kept);
                assert!(!rank.wait(kept).flags.cancelled(), "round {round}: it was matched");
            } else {
                rank.wait(rank.irecv(&want(CONTROL, Some(0), None), &nothing));
                let into = rank.empty(len);
                rank.wait(rank.irecv(&want(DATA, Some(0), Some(0)), &into));
                assert!(bytes(&into) == second, "round {round}: the first was taken back");
                rank.isend(CONTROL, 0, 0, &nothing);
            }
        }
    }
}

#[test]
fn cancellation_depends_on_the_match_alone() {
    everywhere(2, &Certain);
}

/// A message to oneself is taken back at once, whatever the fabric delays.
struct Oneself;

impl RankBody for Oneself {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        // The fabric may still need the buffer of a longer message.
        let inline = rank.endpoint().fabric().capabilities(rank.me()).inline_max;
        for len in [0, inline, 50_000] {
            let data = rank.buffer(&pattern(3, len));
            let id = rank.issend(DATA, rank.me(), 0, &data);
            rank.until(|| rank.endpoint().probe(&want(DATA, None, None)));
            rank.endpoint().cancel(id);
            assert!(rank.endpoint().is_over(id));
            assert!(rank.wait(id).flags.cancelled());
            assert!(rank.endpoint().probe(&want(DATA, None, None)).is_none());
        }
    }
}

#[test]
fn a_message_to_oneself_is_taken_back_at_once() {
    everywhere(1, &Oneself);
}

/// Many more pieces than the fabric has room for, to a receiver that takes them slowly.
struct Pieces;

impl RankBody for Pieces {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        for round in 0..3 {
            let data = pattern(round, 8 << 20);
            if rank.me() == 0 {
                let source = rank.buffer(&data);
                let id = rank.isend(DATA, 1, 0, &source).expect("not at once");
                rank.wait(id);
            } else {
                let into = rank.empty(data.len());
                let status = rank.wait(rank.irecv(&want(DATA, Some(0), None), &into));
                assert_eq!(status.bytes, data.len() as u64);
                assert!(bytes(&into) == data);
            }
        }
    }
}

#[test]
fn a_payload_in_more_pieces_than_there_is_room_for_ends() {
    everywhere(2, &Pieces);
}

/// Rank 0 sends, rank 1 receives; afterwards the counts of both are right.
struct Counted;

impl RankBody for Counted {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        const LENGTHS: [usize; 6] = [0, 7, 300, 70_000, 200_000, 1_500_000];
        let total: u64 = LENGTHS.iter().map(|&len| len as u64).sum();
        let of = |key: usize| pattern(key as u64, LENGTHS[key]);
        let word = |n: u64| rank.buffer(&n.to_ne_bytes());
        if rank.me() == 0 {
            for key in 0..LENGTHS.len() {
                let data = rank.buffer(&of(key));
                if let Some(id) = rank.isend(DATA, 1, 0, &data) {
                    rank.wait(id);
                }
            }
            let counts = rank.endpoint().counts();
            let (often, seldom) = (counts.often, counts.seldom);
            assert_eq!(often.eager + seldom.rendezvous, LENGTHS.len() as u64);
            assert_eq!(often.bytes_eager + seldom.bytes_rendezvous, total);
            assert!(seldom.rendezvous >= 2 && often.eager >= 2, "{counts:?}");
            assert!(often.polls > 0);
            for n in [seldom.rendezvous, seldom.sent_pieces] {
                let data = word(n);
                rank.isend(CONTROL, 1, 0, &data);
            }
        } else {
            // A receive without a message is cancelled, and not counted.
            let nothing = rank.empty(1);
            let never = rank.irecv(&want(CONTROL, Some(0), Some(99)), &nothing);
            rank.endpoint().cancel(never);
            assert!(rank.wait(never).flags.cancelled());
            for (key, &len) in LENGTHS.iter().enumerate() {
                let into = rank.empty(len);
                rank.wait(rank.irecv(&want(DATA, Some(0), Some(0)), &into));
                assert!(bytes(&into) == of(key));
            }
            let counts = rank.endpoint().counts();
            assert_eq!(counts.often.received, LENGTHS.len() as u64);
            assert_eq!(counts.often.bytes_received, total);
            assert_eq!(rank.endpoint().peers(), 1);
            let said = [0, 1].map(|_| {
                let into = rank.empty(8);
                rank.wait(rank.irecv(&want(CONTROL, Some(0), Some(0)), &into));
                u64::from_ne_bytes(bytes(&into).try_into().unwrap())
            });
            let seldom = counts.seldom;
            assert_eq!(seldom.read + seldom.shared + seldom.pieces, said[0], "{seldom:?}");
            assert_eq!(seldom.pieces, said[1]);
        }
    }
}

#[test]
fn what_was_sent_and_received_is_counted() {
    everywhere(2, &Counted);
}

/// Staged payloads of all lengths, in both directions at once, from senders that may still be copying.
struct Poured;

impl RankBody for Poured {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let other = 1 - rank.me();
        let mut rng = Rng::with_seed(77);
        for round in 0..300 {
            let most = 1 << rng.u32(11..21);
            let len = rng.usize(1..most);
            let data = rank.buffer(&pattern(round + other as u64, len));
            let into = rank.empty(len);
            // The receive is posted before or after the message arrives.
            let early = rng.bool().then(|| rank.irecv(&want(DATA, Some(other), None), &into));
            let sent = rank.isend(DATA, other, 0, &data);
            let receive =
                early.unwrap_or_else(|| rank.irecv(&want(DATA, Some(other), None), &into));
            assert_eq!(rank.wait(receive).bytes, len as u64);
            assert!(bytes(&into) == pattern(round + rank.me() as u64, len), "{len} bytes");
            if let Some(sent) = sent {
                rank.wait(sent);
            }
        }
    }
}

#[test]
fn payloads_are_followed_while_they_are_poured() {
    everywhere(2, &Poured);
}

/// Messages use the protocol that the choice names, whatever their size and pattern.
struct Ways {
    limits: ProtocolLimits,
}

impl RankBody for Ways {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let fabric = rank.endpoint().fabric();
        let (me, other) = (rank.me(), 1 - rank.me());
        let path = PeerPath::new(
            me,
            other,
            &fabric.capabilities(other),
            &self.limits,
            fabric.copies().model(),
        );
        let mut seen = Vec::new();
        let sizes = [1, 1000, 3000, 12_000, 40_000, 100_000, 600_000, 2_000_000];
        for (bytes_sent, pattern_sent) in
            sizes.into_iter().flat_map(|size| TransferPattern::ALL.map(|kind| (size, kind)))
        {
            let case = MessageCase { bytes: bytes_sent, pattern: pattern_sent, path };
            let way = choose(fabric.copies().model(), &case);
            let before = rank.endpoint().counts();
            let data = pattern(bytes_sent as u64, bytes_sent);
            if me == 0 {
                let data = rank.buffer(&data);
                let send = rank.start_send(DATA, 1, 0, &data, pattern_sent);
                // A network may have no room for the message yet.
                let waits_for_nobody =
                    matches!(way, MessageProtocol::Eager | MessageProtocol::Staged)
                        && pattern_sent != TransferPattern::Synchronous
                        && path.place == Locality::SameNode;
                assert!(send.is_none() || !waits_for_nobody, "{case:?}");
                send.map(|id| rank.wait(id));
                let now = rank.endpoint().counts();
                let staged = now.seldom.staged - before.seldom.staged;
                assert_eq!(staged, u64::from(way == MessageProtocol::Staged), "{case:?}");
                let eager = now.often.eager - before.often.eager;
                assert_eq!(eager, u64::from(way == MessageProtocol::Eager), "{case:?}");
                // Only one message is under way at a time.
                rank.wait(rank.irecv(&want(CONTROL, Some(1), Some(0)), &rank.empty(0)));
            } else {
                let (want, into) = (want(DATA, Some(0), Some(0)), rank.empty(bytes_sent));
                let receive = rank.endpoint().irecv_as(&want, into.sge(), pattern_sent);
                rank.wait(receive);
                assert!(bytes(&into) == data);
                let (now, then) = (rank.endpoint().counts().seldom, before.seldom);
                let counted = [
                    (
                        now.read - then.read,
                        matches!(way, MessageProtocol::Read | MessageProtocol::Staged),
                    ),
                    (now.shared - then.shared, way == MessageProtocol::CoCopy),
                    (now.written - then.written, way == MessageProtocol::Written),
                    (now.pieces - then.pieces, way == MessageProtocol::Pieces),
                ];
                let as_chosen = counted.iter().all(|&(n, is)| n == u64::from(is));
                assert!(as_chosen, "{case:?}, {way:?}: {counted:?}");
                let nothing = rank.buffer(&[]);
                assert!(rank.isend(CONTROL, 0, 0, &nothing).is_none());
            }
            if !seen.contains(&way) {
                seen.push(way);
            }
        }
        assert!(seen.len() > 1, "{seen:?}");
    }
}

#[test]
fn messages_go_as_the_choice_says() {
    for setup in SETUPS.into_iter().filter(|setup| setup.faults.is_empty()) {
        for ranks_each in [1, 4] {
            let limits = ProtocolLimits { ranks_each, ..setup.limits };
            world(2, FabricSetup { limits, ..setup }, &Ways { limits });
        }
    }
}
