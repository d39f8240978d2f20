//! The lines about verbs in `weft info`.

use crate::job::VerbsCore;
use crate::sizes::{BUFFER, DEPTH, SEND_MAX};
use crate::state::VerbsState;

/// Describes rails, limits and usage, line by line.
pub fn describe(core: &VerbsCore, state: &VerbsState) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, rail) in state.rails.iter().enumerate() {
        lines.push(format!("rail {number}: {}", rail.port));
    }
    let bounds = core.bounds;
    lines.push(format!(
        "connections: {} of at most {}, and {} on secondary rails, made when first needed; each costs {} receive buffers of {} \
         bytes ({} KiB) and {DEPTH} requests",
        state.connections.connected(),
        bounds.all_connections(),
        state.connections.secondary_open(),
        bounds.buffers(),
        BUFFER,
        (bounds.buffers() * BUFFER) >> 10,
    ));
    lines.push(format!(
        "credits of a peer: {} messages of up to {SEND_MAX} bytes, {} immediates",
        bounds.messages, bounds.events
    ));
    let totals = state.memories.totals;
    lines.push(format!(
        "registered memory: {} KiB in {} pieces; {} made, {} found again",
        totals.registered >> 10,
        totals.entries,
        totals.made,
        totals.found
    ));
    if let Some(multicast) = &state.multicast {
        let (max, lost) = (multicast.max, multicast.lost);
        lines.push(format!("multicast: datagrams of up to {max} bytes; {lost} lost here"));
    }
    lines.extend(state.trouble.notes().iter().cloned());
    lines
}
