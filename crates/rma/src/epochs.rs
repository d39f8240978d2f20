//! Epochs of active target communication: how they begin and end (MPI 5.0, sections 12.5.1 and 12.5.2). Those of passive
//! target are begun and ended by locks ([`crate::locks`]).
//!
//! ```text
//!   fence.rs                      MPI_Win_fence: five designs, one a file in fence/
//!   post_start_complete_wait.rs   MPI_Win_post, start, complete, wait, test
//!   flags.rs                      "posted" and "completed" between two ranks: counted, told, heard
//!   ordered_flag.rs               "completed" behind the data on their way, on each rail
//! ```
//! Contract: an epoch is open from the moment that [`crate::core::open_epochs`] says so; when the call that ends it returns,
//! what was issued in it is over at both sides.

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
    /// None is open.
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

    /// Fences.
    pub fn fence(&self) -> &WindowFences<F> {
        &self.fence
    }
}
