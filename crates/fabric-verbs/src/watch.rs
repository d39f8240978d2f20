//! Periodic checks: probes to silent peers, and asynchronous events of adapters.

use crate::device::DeviceContext;
use crate::ffi::*;
use crate::state::VerbsState;
use std::mem::MaybeUninit;
use std::sync::Arc;
use weft_fabric::Fault;

impl VerbsState {
    /// Posts a probe to every peer that was silent since the last call. So a lost peer is detected even if this process only
    /// waits for its messages.
    pub fn ask_silent_peers(&mut self) {
        for peer in 0..self.peers.peers() {
            let Some(link) = self.peers[peer].as_deref_mut() else { continue };
            let silent = !std::mem::replace(&mut link.lively, false);
            // If a signaled request is in flight, the adapter reports its end anyway.
            let none = link.unsignaled as usize == link.outstanding();
            if silent && none && self.add_probe(peer) {
                self.ring(peer);
            }
        }
    }

    /// Takes the asynchronous events of the adapter of `rail`.
    pub fn hear(&mut self, rail: usize) {
        let context: Arc<DeviceContext> = self.rails[rail].context.clone();
        loop {
            let mut event = MaybeUninit::<ibv_async_event>::zeroed();
            // SAFETY: `ibv_get_async_event` needs an open context, whose descriptor does not block, and room for the event.
            let failed =
                unsafe { (context.library.ibv_get_async_event)(context.raw(), event.as_mut_ptr()) };
            if failed != 0 {
                return;
            }
            // SAFETY: `assume_init` needs initialised bytes: the library filled `event` in; before that all bytes were zero.
            let kind = unsafe { event.assume_init() }.event_type;
            // SAFETY: `ibv_ack_async_event` needs an event of `ibv_get_async_event`, acknowledged once.
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
