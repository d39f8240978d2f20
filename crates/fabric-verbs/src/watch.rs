//! What is looked at now and then: peers of whom nothing is heard, and what adapters say besides completions.

use crate::device::DeviceContext;
use crate::ffi::*;
use crate::state::VerbsState;
use std::mem::MaybeUninit;
use std::sync::Arc;
use weft_fabric::Fault;

impl VerbsState {
    /// Posts a probe to every peer of whom nothing was heard since the last time, so that a lost one
    /// is found out even if only its messages are waited for.
    pub fn ask_silent_peers(&mut self) {
        for peer in 0..self.peers.peers() {
            let Some(link) = self.peers[peer].as_deref_mut() else { continue };
            let silent = !std::mem::replace(&mut link.lively, false);
            // If one is under way, the adapter will say what becomes of it.
            let none = link.unsignaled as usize == link.outstanding();
            if silent && none && self.add_probe(peer) {
                self.ring(peer);
            }
        }
    }

    /// Takes what the adapter of `rail` has to say besides completions.
    pub fn hear(&mut self, rail: usize) {
        let context: Arc<DeviceContext> = self.rails[rail].context.clone();
        loop {
            let mut event = MaybeUninit::<ibv_async_event>::zeroed();
            // SAFETY: fills in `event`; the descriptor does not block.
            let failed =
                unsafe { (context.library.ibv_get_async_event)(context.raw(), event.as_mut_ptr()) };
            if failed != 0 {
                return;
            }
            // SAFETY: filled in, or still zero.
            let kind = unsafe { event.assume_init() }.event_type;
            // SAFETY: from `ibv_get_async_event`, once.
            unsafe { (context.library.ibv_ack_async_event)(event.as_mut_ptr()) };
            let port = self.rails[rail].port.name();
            match kind {
                IBV_EVENT_DEVICE_FATAL => {
                    let fault = Fault::system("the adapter failed", libc::EIO);
                    self.fail(fault, format!("the adapter of {port} failed"));
                }
                IBV_EVENT_PORT_ERR => self.notes.push(format!("{port} went down")),
                IBV_EVENT_PORT_ACTIVE => self.notes.push(format!("{port} came up again")),
                _ => {}
            }
        }
    }
}
