//! Which way messages move while the program computes: `WEFT_PROGRESS` and what belongs to it.
//!
//! | design | who moves them | its price |
//! |---|---|---|
//! | none | nobody | |
//! | locked | the helper thread under the lock that every call takes; also woken by ends of transfers | locks, three interrupts |
//! | signal | the program's thread, in the handler of a signal that the helper sends | interrupts the program |
//! | handover | the helper thread, while the program's is outside of the library | a store and a load a call |
//!
//! The first three are those of Kumar et al. 2008 (sections 3 and 4). Under `auto` it is handover, from when something
//! asks for it: a window that its process must serve, a multicast that it may have to repeat, a large nonblocking
//! operation with another node.
//!
//! Where the program may have several threads, handover goes by the lock; signal cannot be had there.

use crate::node::NodeFabric;
use crate::settings;
use std::io;
use weft_fabric::Fabric;
use weft_p2p::{ProtocolLimits, Rendezvous};

/// Who moves messages while the program computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressDesign {
    Auto,
    None,
    Locked,
    Signal,
    Handover,
}

/// What the settings say, understood.
#[derive(Debug, Clone, Copy)]
pub struct ProgressSettings {
    /// Who moves messages while the program computes.
    pub design: ProgressDesign,
    /// The end of a transfer wakes its receiver's helper.
    pub ends: bool,
    /// Of the signal design.
    pub signal: i32,
    /// Of the helper thread.
    pub policy: HelperPolicy,
}

/// How the kernel schedules the helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperPolicy {
    Default,
    Fifo,
    RoundRobin,
}

impl ProgressSettings {
    /// What the settings say. An error is in words.
    pub fn read() -> Result<ProgressSettings, String> {
        let design = match settings::choice("WEFT_PROGRESS")? {
            0 => ProgressDesign::Auto,
            1 => ProgressDesign::None,
            2 => ProgressDesign::Locked,
            3 => ProgressDesign::Signal,
            _ => ProgressDesign::Handover,
        };
        let ends = match settings::choice("WEFT_PROGRESS_ENDS")? {
            0 => design != ProgressDesign::Signal,
            choice => choice == 2,
        };
        let policy = match settings::choice("WEFT_PROGRESS_POLICY")? {
            0 => HelperPolicy::Default,
            1 => HelperPolicy::Fifo,
            _ => HelperPolicy::RoundRobin,
        };
        let signal = settings::number("WEFT_PROGRESS_SIGNAL")? as i32;
        Ok(ProgressSettings { design, ends, signal, policy })
    }

    /// What the protocols need to know of it.
    pub fn limits(&self, limits: ProtocolLimits) -> Result<ProtocolLimits, String> {
        let rendezvous = match settings::choice("WEFT_RENDEZVOUS")? {
            0 => Rendezvous::Read,
            _ => Rendezvous::Write,
        };
        Ok(ProtocolLimits {
            rendezvous,
            prepares: self.design == ProgressDesign::Signal,
            notifies_at_end: self.design == ProgressDesign::Locked,
            ends_by_helper: self.ends,
            ..limits
        })
    }

    /// Whether `auto` overlaps large messages: among ranks of one node a processor would have to copy them, too.
    pub fn overlaps(node: &NodeFabric) -> bool {
        (0..node.size()).any(|peer| !node.capabilities(peer).synchronous)
    }
}

impl HelperPolicy {
    /// Schedules the calling thread so, at the highest priority that is permitted. Where it is not permitted, nothing
    /// changes.
    pub fn apply(self) {
        let policy = match self {
            HelperPolicy::Default => return,
            HelperPolicy::Fifo => libc::SCHED_FIFO,
            HelperPolicy::RoundRobin => libc::SCHED_RR,
        };
        // SAFETY: no pointers.
        let (least, most) =
            unsafe { (libc::sched_get_priority_min(policy), libc::sched_get_priority_max(policy)) };
        // SAFETY: all fields are numbers.
        let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
        for priority in [most, limit().min(most), least] {
            parameters.sched_priority = priority;
            // SAFETY: reads `parameters`; 0 is the calling thread.
            if priority >= least && unsafe { libc::sched_setscheduler(0, policy, &parameters) } == 0
            {
                return;
            }
        }
    }
}

/// The highest real-time priority that the user may have (RLIMIT_RTPRIO).
fn limit() -> i32 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes `limit`.
    unsafe { libc::getrlimit(libc::RLIMIT_RTPRIO, &mut limit) };
    limit.rlim_cur.min(99) as i32
}

/// A line for the user, once a process.
pub fn say(what: &str) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        use io::Write;
        let _ = writeln!(io::stderr(), "weft: {what}");
    });
}
