//! The methods of the core and of each part as lists, for fabrics that pass calls on to another fabric.

/// Runs macro `$each` on the signatures of a trait's methods, for the inside of an `impl` block:
///
/// ```text
///   impl Rails for Wrapper {
///       weft_fabric::methods!(Rails, pass_on);       // pass_on! { fn write_over(&self, rail: usize, ...) -> ...; ... }
///   }
/// ```
/// The core is in four lists, so that a wrapper can implement some lists itself and pass on the rest: `Memory`, `OneSided`,
/// `Messages`, and `Fabric`, which has all other methods except `facets`.
#[macro_export]
macro_rules! methods {
    (Fabric, $each:ident) => {
        $each! {
            fn rank(&self) -> usize;
            fn size(&self) -> usize;
            fn capabilities(&self, peer: usize) -> $crate::Capabilities;
            fn copies(&self) -> &$crate::Copies;
            fn counters(&self) -> &$crate::Counters;
            fn fault(&self) -> Option<$crate::Fault>;
            fn progress(&self) -> bool;
            fn keeps_back(&self) -> bool;
            fn idle(&self) -> bool;
            fn sleeper(&self) -> ::std::sync::Arc<dyn $crate::wait::Sleep>;
        }
    };
    (Memory, $each:ident) => {
        $each! {
            fn allocate(&self, len: usize) -> Result<$crate::Region, $crate::Fault>;
            fn expose(&self, memory: $crate::Sge) -> Result<$crate::Region, $crate::Fault>;
            fn withdraw(&self, region: $crate::Region);
            fn flag(&self, region: &$crate::Region, offset: usize, kind: $crate::FlagKind) -> $crate::Flag;
        }
    };
    (OneSided, $each:ident) => {
        $each! {
            fn write(&self, peer: usize, write: &$crate::RemoteWrite) -> Result<(), $crate::Fault>;
            fn write_flag(&self, peer: usize, write: &$crate::RemoteWrite, then: &$crate::FlagWrite) -> Result<(), $crate::Fault>;
            fn read(&self, peer: usize, read: &$crate::RemoteRead) -> Result<(), $crate::Fault>;
            fn fetch_add(&self, peer: usize, add: &$crate::FetchAdd) -> Result<(), $crate::Fault>;
            fn compare_swap(&self, peer: usize, swap: &$crate::CompareSwap) -> Result<(), $crate::Fault>;
        }
    };
    (Messages, $each:ident) => {
        $each! {
            fn send(
                &self,
                peer: usize,
                head: $crate::Head,
                payload: $crate::Sge,
                done: $crate::Completion
            ) -> $crate::PostOutcome;
            fn receive(&self, from: Option<usize>) -> Option<$crate::ArrivedMessage>;
            fn release(&self, message: $crate::ArrivedMessage);
        }
    };
    (MappedMemory, $each:ident) => {
        $each! {
            fn allocate_on_node(&self, len: usize) -> Result<$crate::Region, $crate::Fault>;
            fn allocate_spare(&self, len: usize) -> Result<$crate::Region, $crate::Fault>;
            fn lies_within(&self, memory: $crate::Sge) -> bool;
            fn mapped(
                &self,
                peer: usize,
                at: $crate::RemoteAddr,
                len: usize
            ) -> Option<$crate::Sge>;
            fn shown(
                &self,
                peer: usize,
                at: $crate::RemoteAddr,
                len: usize
            ) -> Option<$crate::Sge>;
            fn populate(&self, memory: $crate::Sge);
            fn words(
                &self,
                peer: usize,
                at: $crate::RemoteAddr,
                count: usize
            ) -> Option<$crate::PeerWords>;
        }
    };
    (Registration, $each:ident) => {
        $each! {
            fn prepare(&self, memory: $crate::Sge, way: $crate::RdmaDirection) -> Result<Option<$crate::Region>, $crate::Fault>;
            fn adopt(&self, memory: $crate::Sge) -> Result<$crate::Region, $crate::Fault>;
        }
    };
    (Rails, $each:ident) => {
        $each! {
            fn write_over(&self, rail: usize, peer: usize, write: &$crate::RemoteWrite) -> Result<(), $crate::Fault>;
            fn read_over(&self, rail: usize, peer: usize, read: &$crate::RemoteRead) -> Result<(), $crate::Fault>;
            fn write_flag_after(&self, rail: usize, peer: usize, set: &$crate::FlagWrite) -> Result<bool, $crate::Fault>;
            fn rail_works(&self, rail: usize, peer: usize) -> bool;
            fn fragment_min(&self) -> Option<usize>;
        }
    };
    (Immediates, $each:ident) => {
        $each! {
            fn write_imm(&self, peer: usize, write: &$crate::RemoteWrite, immediate: u32) -> Result<(), $crate::Fault>;
            fn immediate(&self, immediate: u32) -> $crate::Counter;
        }
    };
    (SignalSafe, $each:ident) => {
        $each! {
            fn peek(&self, look: &mut dyn FnMut(&$crate::ArrivedMessage) -> $crate::Peek) -> bool;
            fn try_read(&self, peer: usize, read: &$crate::RemoteRead) -> bool;
            fn try_write(&self, peer: usize, write: &$crate::RemoteWrite) -> bool;
            fn try_send(&self, peer: usize, head: $crate::Head) -> bool;
        }
    };
    (Helper, $each:ident) => {
        $each! {
            fn send_solicited(
                &self,
                peer: usize,
                head: $crate::Head,
                payload: $crate::Sge,
                done: $crate::Completion
            ) -> $crate::PostOutcome;
            fn helper(&self) -> ::std::sync::Arc<dyn $crate::wait::Sleep>;
            fn let_helper_sleep_at_ends(&self);
            fn moves_by_progress(&self) -> bool;
        }
    };
    (Multicast, $each:ident) => {
        $each! {
            fn join(&self, group: $crate::GroupId);
            fn leave(&self, group: $crate::GroupId);
            fn multicast(
                &self,
                group: $crate::GroupId,
                src: $crate::Sge
            ) -> Result<(), $crate::Fault>;
            fn receive_multicast(&self, into: $crate::Sge) -> Option<$crate::Datagram>;
        }
    };
    (Nodes, $each:ident) => {
        $each! {
            fn node(&self, peer: usize) -> usize;
            fn groups(&self, peer: usize) -> Option<$crate::copies::ProcessorGroups>;
            fn same_arithmetic(&self) -> bool;
        }
    };
    (Simulated, $each:ident) => {
        $each! {
            fn poll_any(
                &self,
                waits: &[($crate::Counter, u64)],
                deadline: Option<::std::time::Instant>,
                cx: &mut ::std::task::Context<'_>
            ) -> ::std::task::Poll<Result<usize, $crate::Fault>>;
            fn now(&self) -> ::std::time::Instant;
            fn poll_clock(&self, cx: &mut ::std::task::Context<'_>) -> ::std::task::Poll<()>;
            fn charge(&self, work: $crate::Work);
            fn look(&self);
            fn announce(&self, wait: &$crate::AnnouncedWait<'_>);
            fn has_quiet_messages(&self) -> bool;
            fn take_quiet_rounds(&self) -> u32;
            fn file_clock(&self) -> Option<::std::sync::Arc<dyn $crate::FileClock>>;
        }
    };
}
