//! The cost of a post, counted between the fabric and the adapter (calls, requests, signals) and in this thread (allocations
//! and system calls).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use weft_bootstrap::{Bootstrap, ThreadBootstrap, threads};
use weft_fabric::{
    Fabric, FabricExt, FetchAdd, Head, PostOutcome, RemoteAddr, RemoteFlag, RemoteRead,
    RemoteWrite, Sge,
};
use weft_fabric_testing::adapters;
use weft_fabric_verbs::ffi::*;
use weft_fabric_verbs::{Verbs, VerbsFunctions};

/// Counts of this thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    posts: u32,
    requests: u32,
    signaled: u32,
    receive_posts: u32,
    receives: u32,
    allocations: u32,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts {
        posts: 0, requests: 0, signaled: 0, receive_posts: 0, receives: 0, allocations: 0,
    }) };
}

fn count(change: impl FnOnce(&mut Counts)) {
    // A thread that ends may allocate after its counts are destroyed.
    let _ = COUNTS.try_with(|counts| {
        let mut now = counts.get();
        change(&mut now);
        counts.set(now);
    });
}

/// Runs `f` and returns its result with the counts.
fn counted<R>(f: impl FnOnce() -> R) -> (R, Counts) {
    COUNTS.set(Counts::default());
    let result = f();
    (result, COUNTS.get())
}

struct Counting;

// SAFETY: `GlobalAlloc` needs a correct allocator: each call goes to the system's allocator, and is only counted here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|counts| counts.allocations += 1);
        // SAFETY: the caller of `alloc` promises a layout of non-zero size, as `System.alloc` needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller of `dealloc` promises that `pointer` came from `alloc` with this layout, and `alloc` took it
        // from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ORIGINAL: OnceLock<VerbsFunctions> = OnceLock::new();

unsafe extern "C" fn post_send(
    pair: *mut ibv_qp,
    list: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    let mut request = list;
    count(|counts| {
        counts.posts += 1;
        while !request.is_null() {
            // SAFETY: the caller of `post_send` promises a list of valid requests.
            let wr = unsafe { &*request };
            counts.requests += 1;
            counts.signaled += u32::from(wr.send_flags & IBV_SEND_SIGNALED != 0);
            request = wr.next;
        }
    });
    // SAFETY: the original function gets the arguments that the caller of `post_send` promises to be valid.
    unsafe { (ORIGINAL.get().unwrap().post_send)(pair, list, bad) }
}

unsafe extern "C" fn post_srq_recv(
    queue: *mut ibv_srq,
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    let mut request = list;
    count(|counts| {
        counts.receive_posts += 1;
        while !request.is_null() {
            counts.receives += 1;
            // SAFETY: the caller of `post_srq_recv` promises a list of valid requests.
            request = unsafe { (*request).next };
        }
    });
    // SAFETY: the original function gets the arguments that the caller of `post_srq_recv` promises to be valid.
    unsafe { (ORIGINAL.get().unwrap().post_srq_recv)(queue, list, bad) }
}

fn interpose(table: VerbsFunctions) -> VerbsFunctions {
    ORIGINAL.get_or_init(|| table);
    VerbsFunctions { post_send, post_srq_recv, ..table }
}

/// Runs `first` on rank 0 and `second` on rank 1, connected with each other.
fn pair(first: impl FnOnce(&Side) + Send, second: impl FnOnce(&Side) + Send) {
    let Some(nodes) = adapters::nodes() else { return };
    let mut worlds = threads(2);
    let (mut b, mut a) = (worlds.pop().unwrap(), worlds.pop().unwrap());
    let nodes = &nodes;
    std::thread::scope(|scope| {
        scope.spawn(move || first(&Side::new(&mut a, nodes)));
        scope.spawn(move || second(&Side::new(&mut b, nodes)));
    });
}

/// A rank, and a region of the other rank.
struct Side {
    verbs: Verbs,
    region: weft_fabric::Region,
    theirs: RemoteAddr,
}

const LEN: usize = 64 << 10;

impl Side {
    fn new(world: &mut ThreadBootstrap, nodes: &[Vec<String>]) -> Side {
        let mut options = adapters::options(nodes, world.rank());
        options.interpose = Some(interpose);
        let verbs = match Verbs::connect_with(world, options) {
            Ok(verbs) => verbs,
            Err(error) => panic!("{error}"),
        };
        let region = verbs.allocate(LEN).unwrap();
        let theirs = adapters::exchange(world, "at", region.remote);
        let side = Side { verbs, region, theirs };
        // A round trip makes the connection and lets all tables grow to their final size.
        side.send(0);
        side.take(0);
        side
    }

    fn peer(&self) -> usize {
        1 - self.verbs.rank()
    }

    fn send(&self, number: u64) {
        let posted = self.verbs.send(self.peer(), Head([number, 0, 0]), Sge::EMPTY, None);
        assert_eq!(posted, PostOutcome::Done);
    }

    /// Waits for message `number`.
    fn take(&self, number: u64) {
        let start = Instant::now();
        loop {
            if let Some(message) = self.verbs.receive(Some(self.peer())) {
                assert_eq!(message.head.0[0], number);
                self.verbs.release(message);
                return;
            }
            assert_eq!(self.verbs.fault(), None, "{:?}", self.verbs.trouble());
            assert!(start.elapsed() < Duration::from_secs(60), "message {number} does not come");
            if !self.verbs.progress() {
                std::thread::yield_now();
            }
        }
    }

    /// Waits until no requests are in flight.
    fn settle(&self) {
        while !self.verbs.idle() {
            self.verbs.progress();
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_message_is_one_post_and_no_allocation() {
    pair(
        |side| {
            side.settle();
            for len in [0, 8, 100, 1000, 8192] {
                let payload = side.region.local.part(0, len);
                let ((), counts) = counted(|| {
                    let posted = side.verbs.send(1, Head([1, 0, 0]), payload, None);
                    assert_eq!(posted, PostOutcome::Done);
                });
                let Counts { posts, requests, allocations, .. } = counts;
                assert_eq!((posts, requests, allocations), (1, 1, 0), "{len} bytes");
            }
            side.take(2);
        },
        |side| {
            (0..5).for_each(|_| side.take(1));
            side.send(2);
            side.settle();
        },
    );
}

#[test]
fn data_and_flag_are_one_post() {
    pair(
        |side| {
            side.settle();
            let data = side.region.local.part(0, 4096);
            let flag = |waking| RemoteFlag { at: side.theirs.offset(LEN as u64 - 8), waking };
            let (to, verbs) = (side.theirs, &side.verbs);
            let done = verbs.counters().allocate();
            type Post<'p> = Box<dyn Fn() + 'p>;
            let posts: [(&str, u32, Post); 6] = [
                (
                    "write",
                    1,
                    Box::new(|| verbs.write(1, &RemoteWrite::new(data, to, Some(done))).unwrap()),
                ),
                (
                    "write and silent flag",
                    2,
                    Box::new(|| {
                        verbs
                            .write_flag(1, &RemoteWrite::new(data, to, None), &flag(false).with(1))
                            .unwrap()
                    }),
                ),
                (
                    "write and waking flag",
                    2,
                    Box::new(|| {
                        verbs
                            .write_flag(1, &RemoteWrite::new(data, to, None), &flag(true).with(2))
                            .unwrap()
                    }),
                ),
                (
                    "write with immediate",
                    1,
                    Box::new(|| verbs.write_imm(1, &RemoteWrite::new(data, to, None), 7).unwrap()),
                ),
                (
                    "read",
                    1,
                    Box::new(|| verbs.read(1, &RemoteRead::new(data, to, Some(done))).unwrap()),
                ),
                (
                    "fetch and add",
                    1,
                    Box::new(|| {
                        let result = data.part(0, 8);
                        verbs
                            .fetch_add(
                                1,
                                &FetchAdd { target: to, operand: 0, result, done: Some(done) },
                            )
                            .unwrap();
                    }),
                ),
            ];
            for (what, requests, post) in &posts {
                let ((), counts) = counted(post);
                assert_eq!((counts.posts, counts.requests), (1, *requests), "{what}");
                assert_eq!(counts.allocations, 0, "{what}");
            }
            side.send(1);
            side.take(2);
            side.settle();
        },
        |side| {
            side.take(1);
            side.send(2);
            side.settle();
        },
    );
}

#[test]
fn few_sends_are_signaled_and_receives_are_posted_together() {
    const ROUNDS: u64 = 400;
    let turn = |side: &Side| {
        side.settle();
        let ((), counts) = counted(|| {
            for i in 1..=ROUNDS {
                if side.verbs.rank() == 0 {
                    side.send(i);
                }
                side.take(i);
                if side.verbs.rank() == 1 {
                    side.send(i);
                }
            }
        });
        eprintln!("rank {}: {counts:?}", side.verbs.rank());
        // One post per message: credits travel with the messages.
        assert!(counts.posts <= ROUNDS as u32 + 5, "{counts:?}");
        assert!(counts.signaled <= counts.requests / 8, "{counts:?}");
        assert!(counts.receive_posts <= counts.receives / 4 + 1, "{counts:?}");
        assert_eq!(counts.allocations, 0);
        side.settle();
    };
    pair(turn, turn);
}

/// In strict mode the kernel ends a thread that makes a system call other than read, write or exit. The doorbell of soft-RoCE
/// is a write; real adapters need no call.
#[test]
fn a_post_makes_no_other_system_call() {
    static SENT: AtomicU32 = AtomicU32::new(0);
    if adapters::nodes().is_none() {
        return;
    }
    let mut worlds = threads(2);
    let (mut b, mut a) = (worlds.pop().unwrap(), worlds.pop().unwrap());
    let nodes = adapters::nodes().unwrap();
    let theirs = nodes.clone();
    let handle = std::thread::spawn(move || {
        let side = Side::new(&mut a, &theirs);
        side.settle();
        let data = side.region.local.part(0, 4096);
        let flag = RemoteFlag { at: side.theirs.offset(LEN as u64 - 8), waking: true };
        // SAFETY: `prctl` with SECCOMP_MODE_STRICT takes no pointers, and restricts only this thread.
        let failed = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) };
        if failed == 0 {
            side.send(1);
            side.verbs.send(1, Head([2, 0, 0]), data, None);
            let _ =
                side.verbs.write_flag(1, &RemoteWrite::new(data, side.theirs, None), &flag.with(1));
            SENT.store(1, Ordering::Release);
        }
        // SAFETY: `exit` takes no pointers. It ends only this thread, without the usual cleanup, whose system calls are
        // forbidden.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    });
    let side = Side::new(&mut b, &nodes);
    side.take(1);
    side.take(2);
    let start = Instant::now();
    while SENT.load(Ordering::Acquire) == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "the sender was ended by the kernel");
        std::thread::yield_now();
    }
    // The thread has ended without notice and without cleanup, so it cannot be joined.
    std::mem::forget(handle);
}
