//! Signature marks: a mark reaches the status of its receive by every protocol, and the payload does not change.

use weft_fabric::Fabric;
use weft_fabric_testing::world::{RankBody, SETUPS, TestRank, bytes, pattern, want, world};
use weft_p2p::{
    Direct, MatchingContext, MessageTarget, RequestId, SendMode, SignatureMark, Status, StatusFlags,
};

const DATA: u64 = 1;
const CONTROL: u64 = 2;

/// Lengths of messages. All protocols occur among the fabrics.
const LENGTHS: [usize; 7] = [0, 8, 200, 5_000, 20_000, 100_000, 1_000_000];

/// Time at which a receive is posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PostingTime {
    Before,
    After,
    /// The receive looks for the message, and is not posted if the message is there.
    Direct,
    /// The message is matched first, and received later.
    Matched,
}

const POSTINGS: [PostingTime; 4] =
    [PostingTime::Before, PostingTime::After, PostingTime::Direct, PostingTime::Matched];

/// Rank 0 sends messages with and without marks to rank 1.
struct Marks;

fn mark(number: u32) -> Option<SignatureMark> {
    SignatureMark::new(number)
}

/// Sends a signal to a rank, or waits for the signal of a rank.
fn signal<F: Fabric>(rank: &TestRank<F>, to: usize) {
    let nothing = rank.empty(0);
    match rank.me() == to {
        true => _ = rank.wait(rank.irecv(&want(CONTROL, Some(1 - to), None), &nothing)),
        false => _ = rank.isend(CONTROL, to, 0, &nothing),
    }
}

fn send<F: Fabric>(rank: &TestRank<F>, data: &[u8], mode: SendMode, number: u32) {
    let data = rank.buffer(data);
    let (context, peer) = (MatchingContext(DATA), 1);
    let target = MessageTarget { context, peer, rank: 0, tag: 7 };
    let id: Option<RequestId> = match mark(number) {
        Some(mark) => rank.endpoint().isend_with_mark(target, data.sge(), mode, mark),
        None => rank.endpoint().isend(target, data.sge(), mode),
    };
    if let Some(id) = id {
        rank.wait(id);
    }
}

fn receive<F: Fabric>(rank: &TestRank<F>, len: usize, posting: PostingTime) -> (Status, Vec<u8>) {
    let (want, into) = (want(DATA, Some(0), Some(7)), rank.empty(len));
    let posted = || rank.wait(rank.irecv(&want, &into));
    let status = match posting {
        PostingTime::Before => {
            let id = rank.irecv(&want, &into);
            signal(rank, 0);
            rank.wait(id)
        }
        PostingTime::After => {
            signal(rank, 0);
            rank.until(|| rank.endpoint().probe(&want));
            posted()
        }
        PostingTime::Direct => {
            signal(rank, 0);
            match rank.until(|| match rank.endpoint().poll_direct(&want, into.sge()) {
                Direct::Nothing => None,
                Direct::Marked => Some(rank.endpoint().take_marked(&want, into.sge())),
                other => Some(other),
            }) {
                Direct::Got(status) => status,
                _ => posted(),
            }
        }
        PostingTime::Matched => {
            signal(rank, 0);
            let message = rank.until(|| rank.endpoint().take(&want));
            let flags = message.flags();
            let status = rank.wait(rank.imrecv(message, &into));
            assert_eq!(flags, status.flags);
            status
        }
    };
    (status, bytes(&into))
}

impl RankBody for Marks {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let most = (1 << SignatureMark::BITS) - 1;
        for (round, len) in LENGTHS.into_iter().enumerate() {
            let data = pattern(round as u64, len);
            for mode in [SendMode::Standard, SendMode::Synchronous] {
                for (posting, number) in
                    POSTINGS.into_iter().flat_map(|posting| [0, 1, most].map(|n| (posting, n)))
                {
                    if rank.me() == 0 {
                        signal(rank, 0);
                        send(rank, &data, mode, number);
                        continue;
                    }
                    let (status, got) = receive(rank, len, posting);
                    let flags = mark(number).map_or(StatusFlags::NONE, StatusFlags::of_mark);
                    let case = format!("{len} bytes, {mode:?}, {posting:?}, mark {number}");
                    assert_eq!(status.flags, flags, "{case}");
                    assert_eq!((status.source, status.tag), (0, 7), "{case}");
                    assert!(got == data, "{case}");
                }
            }
        }
    }
}

#[test]
fn marks_arrive_with_their_messages() {
    for setup in SETUPS {
        world(2, setup, &Marks);
    }
}
