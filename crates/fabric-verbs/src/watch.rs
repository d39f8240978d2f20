//! Times of periodic checks, and asynchronous events of adapters.

use crate::ffi::*;
use crate::rail::VerbsRail;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};
use weft_fabric::{FabricTrouble, Fault};

/// Number of calls of `progress` between two readings of the clock.
const TURNS_PER_LOOK: u32 = 16;

/// Times of periodic checks.
#[derive(Default)]
pub struct PeriodicChecks {
    /// Number of calls of `progress`. Some work is done only at every Nth call.
    turns: u32,
    next_keepalive: Option<Instant>,
}

impl PeriodicChecks {
    /// Counts a call of `progress`. Returns true every Nth time.
    #[inline]
    pub fn count_turn(&mut self) -> bool {
        self.turns = self.turns.wrapping_add(1);
        self.turns.is_multiple_of(TURNS_PER_LOOK)
    }

    /// Returns true if silent peers must be probed. Returns true at most once in each interval `look`.
    pub fn is_keepalive_due(&mut self, now: Instant, look: Duration) -> bool {
        let due = self.next_keepalive.is_none_or(|next| now >= next);
        if due {
            self.next_keepalive = Some(now + look);
        }
        due
    }
}

/// Takes the asynchronous events of the adapter of `rail`.
pub fn hear(rail: &VerbsRail, trouble: &mut FabricTrouble) {
    let context = &rail.context;
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
        let port = rail.port.name();
        match kind {
            IBV_EVENT_DEVICE_FATAL => {
                let fault = Fault::system("the adapter failed", libc::EIO);
                trouble.fail(fault, format!("the adapter of {port} failed"));
            }
            IBV_EVENT_PORT_ERR => trouble.note(format!("{port} went down")),
            IBV_EVENT_PORT_ACTIVE => trouble.note(format!("{port} came up again")),
            _ => {}
        }
    }
}
