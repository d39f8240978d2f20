//! Shared memory that counts what is registered: regions that are allocated or exposed.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use weft_fabric::wait::Sleep;
use weft_fabric::{
    Capabilities, Completion, Copies, Counter, Counters, Datagram, Fabric, Fault, Flag, GroupId,
    Head, Message, Posted, Region, RemoteAddr, RemoteFlag, Sge, Work,
};
use weft_fabric_shm::Shm;

thread_local! {
    /// Of this thread's rank: regions of the fabric's memory, and of the program's.
    pub static ALLOCATED: Cell<u64> = const { Cell::new(0) };
    pub static EXPOSED: Cell<u64> = const { Cell::new(0) };
}

pub struct Counting(pub Shm);

macro_rules! pass {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $result:ty)?;)*) => {$(
        fn $name(&self, $($arg: $ty),*) $(-> $result)? {
            self.0.$name($($arg),*)
        }
    )*};
}

macro_rules! count {
    ($(fn $name:ident($arg:ident: $ty:ty) in $count:ident;)*) => {$(
        fn $name(&self, $arg: $ty) -> Result<Region, Fault> {
            $count.set($count.get() + 1);
            self.0.$name($arg)
        }
    )*};
}

type Done = Result<(), Fault>;

impl Fabric for Counting {
    count! {
        fn allocate(len: usize) in ALLOCATED;
        fn allocate_on_node(len: usize) in ALLOCATED;
        fn expose(memory: Sge) in EXPOSED;
        fn adopt(memory: Sge) in EXPOSED;
    }

    pass! {
        fn rank() -> usize;
        fn size() -> usize;
        fn copies() -> &Copies;
        fn capabilities(peer: usize) -> Capabilities;
        fn node(peer: usize) -> usize;
        fn same_arithmetic() -> bool;
        fn mapped(peer: usize, at: RemoteAddr, len: usize) -> Option<Sge>;
        fn write_over(
            r: usize, p: usize, s: Sge, d: RemoteAddr, done: Completion
        ) -> Done;
        fn read_over(
            r: usize, p: usize, d: Sge, s: RemoteAddr, done: Completion
        ) -> Done;
        fn write_flag_after(
            r: usize, p: usize, flag: RemoteFlag, value: u64
        ) -> Result<bool, Fault>;
        fn rail_works(rail: usize, peer: usize) -> bool;
        fn shown(peer: usize, at: RemoteAddr, len: usize) -> Option<Sge>;
        fn lies_within(memory: Sge) -> bool;
        fn now() -> Instant;
        fn counters() -> &Counters;
        fn fault() -> Option<Fault>;
        fn withdraw(region: Region);
        fn flag(region: &Region, offset: usize, waking: bool) -> Flag;
        fn write(p: usize, s: Sge, d: RemoteAddr, done: Completion) -> Done;
        fn write_flag(
            p: usize, s: Sge, d: RemoteAddr, flag: RemoteFlag, value: u64, done: Completion
        ) -> Done;
        fn write_imm(p: usize, s: Sge, d: RemoteAddr, immediate: u32, done: Completion) -> Done;
        fn immediate(immediate: u32) -> Counter;
        fn read(p: usize, d: Sge, s: RemoteAddr, done: Completion) -> Done;
        fn fetch_add(p: usize, t: RemoteAddr, add: u64, result: Sge, done: Completion) -> Done;
        fn compare_swap(
            p: usize, t: RemoteAddr, compare: u64, swap: u64, result: Sge, done: Completion
        ) -> Done;
        fn send(peer: usize, head: Head, payload: Sge, done: Completion) -> Posted;
        fn send_solicited(peer: usize, head: Head, payload: Sge, done: Completion) -> Posted;
        fn receive(from: Option<usize>) -> Option<Message>;
        fn release(message: Message);
        fn join(group: GroupId);
        fn leave(group: GroupId);
        fn multicast(group: GroupId, src: Sge) -> Done;
        fn receive_multicast(into: Sge) -> Option<Datagram>;
        fn progress() -> bool;
        fn idle() -> bool;
        fn sleeper() -> Arc<dyn Sleep>;
        fn helper() -> Arc<dyn Sleep>;
        fn poll_clock(cx: &mut Context<'_>) -> Poll<()>;
        fn charge(work: Work);
    }

    fn poll_any(
        &self,
        waits: &[(Counter, u64)],
        deadline: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Fault>> {
        self.0.poll_any(waits, deadline, cx)
    }
}
