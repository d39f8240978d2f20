//! Streams allocate and register nothing once they have carried each kind of traffic. Their memory is
//! bounded per process, whatever the number of communicators.

use crate::group::Group;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use weft_collective::{CommView, Via};
use weft_fabric::{Fabric, Sge};
use weft_fabric_testing::world::{FabricSetup, On, RankBody, SETUPS, TestRank, world};
use weft_p2p::stream::StreamSizes;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all calls go to `System`, which meets the contract of `GlobalAlloc`; the counter neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // The counter of a thread that ends may be gone when the thread allocates.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: `layout` has a nonzero size: the caller of `GlobalAlloc::alloc` promises it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `System` allocated `pointer` with `layout`: the caller of `GlobalAlloc::dealloc` promises it.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTER: Counting = Counting;

/// Sends messages to this rank and receives them, so that both ends count in one thread.
async fn both_ways<F: Fabric>(link: &CommView<F>, out: Sge, into: Sge) {
    link.exchange(0, out, 0, into).await.expect("an exchange");
    // The message comes before its receive.
    let send = link.isend(0, out);
    link.recv(0, into).await.expect("a receive");
    if let Some(send) = send {
        link.wait(send).await.expect("a send");
    }
}

struct Steady;

impl RankBody for Steady {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let mut group = Group::world(rank);
        group.via = Via::Native;
        for len in [0, 8, 4096, 5000, 64 << 10, 200_000, 300_000, 1 << 20] {
            let (out, into) = (rank.buffer(&vec![7; len]), rank.empty(len));
            let mut last = 0;
            for round in 0..12 {
                let link = group.link();
                let before = ALLOCATIONS.get();
                rank.block_on(both_ways(&link, out.sge(), into.sge()));
                last = ALLOCATIONS.get() - before;
                assert!(round < 4 || last == 0, "{len} bytes, round {round}: {last} allocations");
            }
            assert_eq!(last, 0);
        }
    }
}

#[test]
fn nothing_is_allocated_once_it_runs() {
    world(1, SETUPS[0], &Steady);
}

/// Memory that a process with twenty communicators has registered. The bound is the same as for one communicator.
struct Communicators;

impl RankBody for Communicators {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let all: Vec<u32> = (0..rank.size() as u32).collect();
        let groups: Vec<_> = (0..20)
            .map(|context| Group::new(rank, 200 + context, all.clone()).expect("a member"))
            .collect();
        let len = 200_000;
        for mut group in groups {
            group.via = Via::Native;
            let link = group.link();
            let (out, into) = (rank.buffer(&vec![7; len]), rank.empty(len));
            let (to, from) = ((rank.me() + 1) % 3, (rank.me() + 2) % 3);
            rank.block_on(link.exchange(to, out.sge(), from, into.sge())).expect("an exchange");
        }
        let streams = rank.endpoint().streams();
        let (now, most) = (streams.registered(), StreamSizes::default().memory());
        // One chunk of 8 places is enough for three ranks that do one operation at a time.
        assert!(now > 0 && now <= most / 2, "{now} of {most} bytes");
    }
}

#[test]
fn memory_is_the_process_s_not_the_communicators() {
    for on in [On::Shm { cma: true }, On::Sim { ranks_per_node: 1, chaos: true }] {
        let setup = FabricSetup { on, ..SETUPS[0] };
        world(3, setup, &Communicators);
    }
}
