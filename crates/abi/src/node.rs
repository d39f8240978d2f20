//! The fabric of a real process: shared memory, plain or with the faults that `WEFT_FAULT` asks for.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use weft_bootstrap::Bootstrap;
use weft_fabric::wait::{Sleep, WaitPolicy};
use weft_fabric::{
    Capabilities, Completion, Counter, Counters, Datagram, Fabric, Fault, Flag, GroupId, Head,
    Message, Posted, Region, RemoteAddr, RemoteFlag, Sge, Work,
};
use weft_fabric_fault::{Faulty, Plan};
use weft_fabric_shm::{ConnectError, Options, Shm};

pub type Engine = weft_process::Engine<Node>;
pub type CommObject = weft_process::Comm<Node>;

/// One type for all fabrics, so that the layers above are compiled once.
// The usual fabric lies in place: there is one `Node` a process, and a pointer less to follow.
#[allow(clippy::large_enum_variant)]
pub enum Node {
    Shm(Shm),
    Faulty(Box<Faulty<Shm>>),
}

impl Node {
    /// Joins the ranks of the job, which all call this; `plan`: what goes wrong here.
    pub fn connect(
        bootstrap: &mut dyn Bootstrap,
        options: Options,
        plan: Option<Plan>,
    ) -> Result<Node, ConnectError> {
        let shm = Shm::connect_with(bootstrap, options)?;
        Ok(match plan {
            None => Node::Shm(shm),
            Some(plan) => Node::Faulty(Box::new(Faulty::new(shm, plan))),
        })
    }

    /// How to wait on this machine.
    pub fn policy(&self) -> WaitPolicy {
        match self {
            Node::Shm(shm) => shm.policy(),
            Node::Faulty(faulty) => faulty.inner().policy(),
        }
    }
}

/// Methods that the fabric inside answers. What has faults stays out of line, so that it takes no
/// room in the short ways of the other.
macro_rules! pass_on {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)* $(,)?) $(-> $result:ty)?;)*) => {
        $(
            #[inline]
            fn $name(&self $(, $argument: $kind)*) $(-> $result)? {
                #[cold]
                #[inline(never)]
                fn with_faults(fabric: &Faulty<Shm> $(, $argument: $kind)*) $(-> $result)? {
                    fabric.$name($($argument),*)
                }
                match self {
                    Node::Shm(fabric) => fabric.$name($($argument),*),
                    Node::Faulty(fabric) => with_faults(fabric $(, $argument)*),
                }
            }
        )*
    };
}

/// Every method, also those with a default: a fabric may have its own.
impl Fabric for Node {
    pass_on! {
        fn rank(&self) -> usize;
        fn size(&self) -> usize;
        fn capabilities(&self, peer: usize) -> Capabilities;
        fn counters(&self) -> &Counters;
        fn poll_any(
            &self,
            waits: &[(Counter, u64)],
            deadline: Option<Instant>,
            cx: &mut Context<'_>,
        ) -> Poll<Result<usize, Fault>>;
        fn fault(&self) -> Option<Fault>;
        fn allocate(&self, len: usize) -> Result<Region, Fault>;
        fn expose(&self, memory: Sge) -> Result<Region, Fault>;
        fn withdraw(&self, region: Region);
        fn flag(&self, region: &Region, offset: usize, waking: bool) -> Flag;
        fn write(
            &self,
            peer: usize,
            src: Sge,
            dst: RemoteAddr,
            done: Completion,
        ) -> Result<(), Fault>;
        fn write_flag(
            &self,
            peer: usize,
            src: Sge,
            dst: RemoteAddr,
            flag: RemoteFlag,
            value: u64,
            done: Completion,
        ) -> Result<(), Fault>;
        fn write_imm(
            &self,
            peer: usize,
            src: Sge,
            dst: RemoteAddr,
            immediate: u32,
            done: Completion,
        ) -> Result<(), Fault>;
        fn immediate(&self, immediate: u32) -> Counter;
        fn read(
            &self,
            peer: usize,
            dst: Sge,
            src: RemoteAddr,
            done: Completion,
        ) -> Result<(), Fault>;
        fn fetch_add(
            &self,
            peer: usize,
            target: RemoteAddr,
            operand: u64,
            result: Sge,
            done: Completion,
        ) -> Result<(), Fault>;
        fn compare_swap(
            &self,
            peer: usize,
            target: RemoteAddr,
            compare: u64,
            swap: u64,
            result: Sge,
            done: Completion,
        ) -> Result<(), Fault>;
        fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> Posted;
        fn join(&self, group: GroupId);
        fn leave(&self, group: GroupId);
        fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault>;
        fn receive_multicast(&self, into: Sge) -> Option<Datagram>;
        fn progress(&self) -> bool;
        fn idle(&self) -> bool;
        fn sleeper(&self) -> Arc<dyn Sleep>;
        fn poll_clock(&self, cx: &mut Context<'_>) -> Poll<()>;
        fn charge(&self, work: Work);
    }

    #[inline(always)]
    fn receive(&self, from: Option<usize>) -> Option<Message> {
        match self {
            Node::Shm(shm) => shm.receive(from),
            Node::Faulty(faulty) => receive_with_faults(faulty, from).map(|message| *message),
        }
    }

    #[inline(always)]
    fn release(&self, message: Message) {
        match self {
            Node::Shm(shm) => shm.release(message),
            Node::Faulty(faulty) => release_with_faults(faulty, Box::new(message)),
        }
    }
}

// Boxed, so that the message of the other way is passed in registers and not through memory, which
// a call out of line would have to point at: 14 ns of 57 for a message to oneself.

#[cold]
#[inline(never)]
fn receive_with_faults(fabric: &Faulty<Shm>, from: Option<usize>) -> Option<Box<Message>> {
    fabric.receive(from).map(Box::new)
}

#[cold]
#[inline(never)]
#[allow(clippy::boxed_local)]
fn release_with_faults(fabric: &Faulty<Shm>, message: Box<Message>) {
    fabric.release(*message);
}
