//! Tests of signal handlers, on any fabric: transfers start while the program computes, nothing is allocated, and work that the
//! handler has left is done in order.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use weft_fabric::{Fabric, Sge};
use weft_p2p::{
    Endpoint, MatchingContext, MessageTarget, ProtocolLimits, ReceiveSource, Rendezvous, RequestId,
    SendMode, Want,
};
use weft_process::Engine;

thread_local! {
    static IN_HANDLER: Cell<bool> = const { Cell::new(false) };
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// Allocator that counts allocations and deallocations in a handler.
pub struct Guarded;

fn count() {
    // A thread that ends may still allocate after its thread-local values are gone.
    if IN_HANDLER.try_with(Cell::get).unwrap_or(false) {
        let _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
    }
}

// SAFETY: `GlobalAlloc` needs an allocator that keeps its contract. All calls go to the system's allocator, and the count allocates
// nothing.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: `System.alloc` needs a layout of nonzero size, which the caller of `alloc` promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: `System.dealloc` needs memory that `System` allocated with this layout. The caller promises the layout, and
        // `alloc` got the memory from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Lengths of large messages, which go by rendezvous, and of small messages, in bytes.
const LARGE: usize = 100_000;
const SMALL: usize = 300;
const MESSAGES: usize = 40;
const ROUNDS: usize = 5;
/// Time without progress after which a test fails. A lost packet costs a network without hardware a second, and a loaded machine more.
const LONG: Duration = Duration::from_secs(60);
const CONTEXT: MatchingContext = MatchingContext(77);
/// Tags of messages that do not belong to a round.
const GO: i32 = 1000;
const STRAY: i32 = 2000;

/// Returns limits with which large messages go by `rendezvous`, and none is copied into a staging buffer.
pub fn limits(rendezvous: Rendezvous) -> ProtocolLimits {
    ProtocolLimits {
        eager: 1000,
        staging: 0,
        rendezvous,
        prepares: true,
        ..ProtocolLimits::default()
    }
}

fn len(i: usize) -> usize {
    if i % 4 == 3 { SMALL } else { LARGE + i }
}

fn content(round: usize, i: usize) -> Vec<u8> {
    (0..len(i)).map(|k| (((k * 31) ^ (i * 7 + round)) >> 2) as u8).collect()
}

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: `Sge::new` needs memory that stays until the operation is complete. Every user keeps its bytes until then.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// A rank of a pair.
pub struct PairRank<'e, F: Fabric> {
    /// Engine of the rank.
    pub engine: &'e Engine<F>,
    /// Function that lets the other rank move meanwhile.
    pub give_way: &'e dyn Fn(),
}

impl<F: Fabric> PairRank<'_, F> {
    fn endpoint(&self) -> &Endpoint<F> {
        self.engine.endpoint()
    }

    fn send(&self, tag: i32, data: &mut [u8]) -> Option<RequestId> {
        let me = self.endpoint().fabric().rank();
        let target = MessageTarget { context: CONTEXT, peer: 1 - me, rank: me as u32, tag };
        self.endpoint().isend(target, sge(data), SendMode::Standard)
    }

    fn receive(&self, tag: i32, into: &mut [u8]) -> RequestId {
        let other = 1 - self.endpoint().fabric().rank();
        let source = ReceiveSource::Rank { rank: other as u32, peer: other };
        self.endpoint().irecv(&Want { context: CONTEXT, source, tag: Some(tag) }, sge(into))
    }

    fn wait(&self, request: Option<RequestId>, what: &str) {
        let Some(request) = request else { return };
        let since = Instant::now();
        while self.endpoint().finish(request).is_none() {
            assert!(self.endpoint().fault().is_none(), "{what}: {:?}", self.endpoint().fault());
            assert!(since.elapsed() < LONG, "{what}: hangs");
            if !self.engine.progress() {
                (self.give_way)();
            }
        }
    }

    /// Runs the handler as if a signal came. Nothing else moves. Allocations fail the test.
    fn signal(&self) {
        IN_HANDLER.set(true);
        self.endpoint().interrupted();
        IN_HANDLER.set(false);
        assert_eq!(ALLOCATED.get(), 0, "a handler has allocated, or given back");
        (self.give_way)();
    }

    fn started(&self) -> u64 {
        self.endpoint().counts().seldom.interrupted
    }

    /// Runs only handlers until `count` transfers were started. Fails if none starts for a long time.
    fn compute_until(&self, count: u64) {
        let mut last = (self.started(), Instant::now());
        while self.started() < count {
            self.signal();
            assert!(self.endpoint().fault().is_none(), "{:?}", self.endpoint().fault());
            let started = self.started();
            if started > last.0 {
                last = (started, Instant::now());
            }
            assert!(last.1.elapsed() < LONG, "{started} of {count} started, and no more");
        }
    }

    /// Lets rank 0 send to rank 1. The transfers start in the handler of the rank that computes: the sender with
    /// `Rendezvous::Write`, the receiver with `Rendezvous::Read`. Rank 1 notes in `ready` the rounds for which it makes no more progress
    /// of its own: transfers that start in its last progress would not be counted.
    pub fn run(&self, rendezvous: Rendezvous, ready: &AtomicUsize) {
        let large = (0..MESSAGES).filter(|&i| len(i) == LARGE + i).count() as u64;
        let sends = self.endpoint().fabric().rank() == 0;
        for round in 0..ROUNDS {
            let before = self.started();
            let mut go = [round as u8];
            let mut data: Vec<Vec<u8>> = (0..MESSAGES).map(|i| content(round, i)).collect();
            let mut stray = [round as u8; 50];
            if sends {
                let request = self.receive(GO, &mut go);
                self.wait(Some(request), "the receiver is ready");
                let since = Instant::now();
                while ready.load(Ordering::Acquire) <= round {
                    assert!(since.elapsed() < LONG, "the receiver does not compute");
                    self.engine.progress();
                    (self.give_way)();
                }
                // The receiver computes then.
                let mut requests = Vec::new();
                for (i, data) in data.iter_mut().enumerate() {
                    requests.push(self.send(i as i32, data));
                }
                requests.push(self.send(STRAY, &mut stray));
                if rendezvous == Rendezvous::Write {
                    self.compute_until(before + large);
                }
                for request in requests {
                    self.wait(request, "a send");
                }
                continue;
            }
            data.iter_mut().for_each(|data| data.fill(0));
            let requests: Vec<_> =
                data.iter_mut().enumerate().map(|(i, d)| self.receive(i as i32, d)).collect();
            let sent = self.send(GO, &mut go);
            self.wait(sent, "ready");
            // The message may be kept until there is a connection.
            while !self.endpoint().fabric().idle() {
                self.engine.progress();
            }
            ready.store(round + 1, Ordering::Release);
            if rendezvous == Rendezvous::Read {
                self.compute_until(before + large);
            }
            for request in requests {
                self.wait(Some(request), "a receive");
            }
            for (i, data) in data.iter().enumerate() {
                assert!(*data == content(round, i), "message {i} of round {round}");
            }
            stray = [0; 50];
            let request = self.receive(STRAY, &mut stray);
            self.wait(Some(request), "what no receive was posted for");
            assert_eq!(stray, [round as u8; 50]);
        }
    }

    /// Lets rank 0 send one message after the other to rank 1. Rank 1 computes from the time when it sets `posted` until `sent`
    /// tells it that the send is complete. Neither of the two is a message, so only FINs go back, more than there is room for at
    /// once. Before every 50th message comes a message that no receive was posted for.
    pub fn ends_alone(&self, posted: &AtomicUsize, sent: &AtomicUsize) {
        const MANY: usize = 600;
        let mut data = vec![7; LARGE];
        for i in 1..=MANY {
            let stray = i % 50 == 0;
            let mut number = [i as u8];
            if self.endpoint().fabric().rank() == 0 {
                while posted.load(Ordering::Acquire) < i {
                    std::thread::yield_now();
                }
                let first = stray.then(|| self.send(STRAY, &mut number));
                self.wait(self.send(0, &mut data), "a send to who computes");
                self.wait(first.flatten(), "a small send");
                sent.store(i, Ordering::Release);
                continue;
            }
            let request = self.receive(0, &mut data);
            posted.store(i, Ordering::Release);
            let since = Instant::now();
            while sent.load(Ordering::Acquire) < i {
                self.signal();
                // The thread that has signalled does the same.
                let endpoint = self.endpoint();
                if endpoint.take_behind() || endpoint.awaits_more_than_a_handler() {
                    self.engine.help();
                }
                assert!(since.elapsed() < LONG, "message {i} is not ended");
            }
            self.wait(Some(request), "a receive");
            if stray {
                let request = self.receive(STRAY, &mut number);
                self.wait(Some(request), "a small receive");
            }
        }
    }
}
