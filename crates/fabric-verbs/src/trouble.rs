//! Faults of the fabric, and explanations of failed completions in words.

use crate::ffi::*;
use crate::job::VerbsCore;
use crate::rail::VerbsRail;
use crate::sizes::RETRIES;
use std::ffi::CStr;
use weft_fabric::{FabricTrouble, Fault};

/// Handles the loss of `peer`. The loss is a fault unless this process does not need `peer` any more.
#[cold]
pub fn lose(trouble: &mut FabricTrouble, core: &VerbsCore, peer: usize, why: String) {
    if core.misses(peer) {
        trouble.fail(Fault::lost(peer), why);
    }
}

/// Records that the adapter has refused requests to `peer`.
#[cold]
pub fn refuse_post(trouble: &mut FabricTrouble, peer: usize, errno: i32) {
    let fault = Fault::system("posting to the adapter", errno.abs());
    trouble.fail(fault, format!("posting to process {peer} failed"));
}

/// Returns the minimum time in milliseconds for which the adapter retries before it gives up a peer.
fn tried(core: &VerbsCore) -> u64 {
    let once_ns = 4096u64 << core.options.timeout.min(31);
    once_ns * (u64::from(RETRIES) + 1) / 1_000_000
}

/// Describes a failure: the location of the peer, the adapter's status, the time for which the adapter tried, and likely causes.
pub fn explain(
    core: &VerbsCore,
    rails: &[VerbsRail],
    number: usize,
    peer: usize,
    status: i32,
) -> String {
    let rail = &rails[number];
    // SAFETY: `from_ptr` needs a valid C string: `ibv_wc_status_str` returns a constant string for every number.
    let name = unsafe { CStr::from_ptr((rail.context.library.ibv_wc_status_str)(status)) };
    let name = name.to_string_lossy();
    let host = core.host_of(peer);
    let port = rail.port.name();
    let causes = match status {
        IBV_WC_RETRY_EXC_ERR => format!(
            "it did not acknowledge for at least {} ms ({} transmissions); the process or its host \
             has ended, or the network between is broken, or, if short messages came through, lets \
             no packets of {} bytes pass (compare the MTUs of interfaces and switches)",
            tried(core),
            RETRIES + 1,
            rail.port.mtu.min(core.address_of(peer, number).mtu as usize)
        ),
        IBV_WC_RNR_RETRY_EXC_ERR => {
            "it had no receive buffer for a message within its credits, which should not be"
                .to_owned()
        }
        IBV_WC_REM_ACCESS_ERR => {
            "a key or an address is wrong, or the memory was withdrawn before the operation"
                .to_owned()
        }
        IBV_WC_WR_FLUSH_ERR => {
            "the connection had failed before: the peer was refused an operation, or has failed"
                .to_owned()
        }
        _ => "the adapter's log (`dmesg`) may say more".to_owned(),
    };
    format!("it is on {host}, reached through {port}: {name}: {causes}")
}
