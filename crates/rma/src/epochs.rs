//! Epochs of active target communication: their beginning and end (MPI 5.0, sections 12.5.1 and 12.5.2). Locks begin and end the
//! epochs of passive target communication ([`crate::locks`]).
//!
//! ```text
//!   fence.rs                      MPI_Win_fence: five designs, one per file in fence/
//!   post_start_complete_wait.rs   MPI_Win_post, start, complete, wait, test
//!   flags.rs                      "posted" and "completed" between two ranks: counted, sent, received
//!   ordered_flag.rs               "completed" behind the data under way, on each rail
//! ```
//! Contract: [`crate::core::epoch_state`] has the state and refuses wrong calls. This part moves data and flags. When the call that
//! ends an epoch returns, the operations issued in the epoch are complete at both sides.

pub mod fence;
mod flags;
pub mod ordered_flag;
pub mod post_start_complete_wait;

use self::fence::WindowFences;
use self::flags::PairFlags;
use crate::access::WindowAccess;
use crate::control::WindowControl;
use crate::core::WindowCore;
use crate::memory::WindowMemory;
use std::rc::Rc;
use weft_fabric::Fabric;

/// The active target epochs of one window.
pub struct Epochs<F: Fabric> {
    core: Rc<WindowCore<F>>,
    memory: Rc<WindowMemory<F>>,
    access: Rc<WindowAccess<F>>,
    flags: Rc<PairFlags<F>>,
    fence: WindowFences<F>,
}

impl<F: Fabric> Epochs<F> {
    /// Creates the active target epochs of a window. No epoch is open.
    pub fn new(
        core: Rc<WindowCore<F>>,
        control: Rc<WindowControl<F>>,
        memory: Rc<WindowMemory<F>>,
        access: Rc<WindowAccess<F>>,
    ) -> Epochs<F> {
        let flags = Rc::new(PairFlags::new(core.clone(), control.clone()));
        let first = memory.exposed(core.rank()).immediate;
        let fence = WindowFences::new(core.clone(), control, access.clone(), flags.clone(), first);
        Epochs { core, memory, access, flags, fence }
    }

    /// Returns the fences of the window.
    pub fn fence(&self) -> &WindowFences<F> {
        &self.fence
    }
}
