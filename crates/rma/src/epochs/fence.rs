//! Fence (MPI 5.0, section 12.5.1): five designs, each in a separate file, and a variant of the first design. Four designs are from
//! Santhanaraman et al. 2009 ("Design Alternatives for Implementing Fence Synchronization"). The fifth is the usual design.
//!
//! ```text
//!                 when operations are issued    their end at the target        the next epoch begins after
//!   2S            at the fence, as messages     the last message of an origin  the last message of each origin
//!   2S-APART      the same                      a message behind the last      this message of each origin
//!   1S            at once                       a flag of every other rank     a flag of every other rank
//!   1S-BARRIER    at once                       a flag of every other rank     a barrier
//!   RI            at once                       arrivals counted by target     a barrier
//!   ACK           at once                       acknowledged to the origin     the same barrier
//! ```

mod acknowledged;
mod barrier;
mod expected;
mod immediate;
mod pairwise;
mod two_sided;

use self::immediate::ImmediateArrivals;
use super::flags::PairFlags;
use crate::access::WindowAccess;
use crate::control::WindowControl;
use crate::core::{WindowCore, assert};
use crate::options::FenceDesign;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_process::Error;

/// The fences of one window.
pub struct WindowFences<F: Fabric> {
    core: Rc<WindowCore<F>>,
    control: Rc<WindowControl<F>>,
    access: Rc<WindowAccess<F>>,
    flags: Rc<PairFlags<F>>,
    arrivals: ImmediateArrivals,
}

impl<F: Fabric> WindowFences<F> {
    /// Creates the fences. `first`: the first of this rank's two immediates.
    pub fn new(
        core: Rc<WindowCore<F>>,
        control: Rc<WindowControl<F>>,
        access: Rc<WindowAccess<F>>,
        flags: Rc<PairFlags<F>>,
        first: u32,
    ) -> WindowFences<F> {
        WindowFences { core, control, access, flags, arrivals: ImmediateArrivals::new(first) }
    }

    /// Returns true if [`WindowFences::run`] would only run a barrier of the window's communicator. The caller may then run the
    /// barrier itself and call [`WindowFences::ended`].
    #[inline]
    pub fn is_a_barrier(&self, asserted: i32) -> bool {
        self.core.options.fence == FenceDesign::Acknowledged
            && asserted & assert::NOPRECEDE == 0
            && self.core.epochs.may_fence()
            && self.access.in_flight().is_untouched()
    }

    /// Notes that a fence has ended.
    pub fn ended(&self, asserted: i32) {
        self.core.epochs.fenced(asserted);
    }

    /// Ends the epoch of the previous fence, here and at all targets, and opens another epoch.
    pub async fn run(&self, asserted: i32) -> Result<(), Error> {
        if let Some(work) = self.core.allow(self.core.epochs.fence(asserted))? {
            match self.core.options.fence {
                FenceDesign::TwoSided | FenceDesign::TwoSidedApart => {
                    self.fence_two_sided(work).await?
                }
                FenceDesign::Pairwise => self.fence_pairwise(work).await?,
                FenceDesign::Barrier => self.fence_barrier(work).await?,
                FenceDesign::Immediate => self.fence_immediate(work).await?,
                FenceDesign::Acknowledged => self.fence_acknowledged().await?,
            }
        }
        self.ended(asserted);
        Ok(())
    }
}
