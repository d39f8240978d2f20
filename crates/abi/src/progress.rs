//! Designs by which messages progress while the program computes: `WEFT_PROGRESS` and the settings that belong to it.
//!
//! | design | thread that moves the messages | cost |
//! |---|---|---|
//! | none | none | none |
//! | locked | the helper thread under the lock that every call takes; also woken by ends of transfers | locks, three interrupts |
//! | signal | the program's thread, in the handler of a signal that the helper sends | interrupts the program |
//! | handover | the helper thread, while the program's thread is outside of the library | a store and a load per call |
//!
//! The first three are the designs of Kumar et al. 2008 (sections 3 and 4). Under `auto` the design is none, until the process has
//! a window that it must serve, a multicast that it may have to repeat, or a large nonblocking operation with another node. From
//! then on the design is handover.
//!
//! If the program may have several threads, handover takes the lock, and signal is not available.

use crate::engine::JobFabric;
use crate::settings;
use std::io;
use weft_fabric::Fabric;
use weft_p2p::{ProtocolLimits, Rendezvous};

/// Design by which messages progress while the program computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressDesign {
    Auto,
    None,
    Locked,
    Signal,
    Handover,
}

/// Parsed settings of progress.
#[derive(Debug, Clone, Copy)]
pub struct ProgressSettings {
    /// Design by which messages progress while the program computes.
    pub design: ProgressDesign,
    /// True if the end of a transfer wakes its receiver's helper.
    pub ends: bool,
    /// Number of the signal, for the signal design.
    pub signal: i32,
}

impl ProgressSettings {
    /// Reads the settings. An error is a text for the user.
    pub fn read() -> Result<ProgressSettings, String> {
        let design = match settings::choice("WEFT_PROGRESS")? {
            0 => ProgressDesign::Auto,
            1 => ProgressDesign::None,
            2 => ProgressDesign::Locked,
            3 => ProgressDesign::Signal,
            _ => ProgressDesign::Handover,
        };
        let signal = settings::number("WEFT_PROGRESS_SIGNAL")? as i32;
        Ok(ProgressSettings { design, ends: design != ProgressDesign::Signal, signal })
    }

    /// Returns `limits` with the values that protocols need for the design.
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

    /// Returns true if the design `auto` moves large messages while the program computes. This is false if all ranks are on one
    /// node, because there a processor would have to copy the messages.
    pub fn overlaps(node: &JobFabric) -> bool {
        (0..node.size()).any(|peer| !node.capabilities(peer).synchronous)
    }
}

/// Prints a line for the user, once per process.
pub fn say(what: &str) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        use io::Write;
        let _ = writeln!(io::stderr(), "weft: {what}");
    });
}
