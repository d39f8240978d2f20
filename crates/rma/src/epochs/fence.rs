//! Fence (MPI 5.0, section 12.5.1): five designs, one per file, and a variant of the first. Four are those of
//! Santhanaraman et al. 2009 ("Design Alternatives for Implementing Fence Synchronization"); the fifth is the usual
//! design.
//!
//! ```text
//!                 when operations are issued    their end at the target        the next epoch begins after
//!   2S            at the fence, as messages     the last message of an origin  that
//!   2S-APART      the same                      a message behind the last      that
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
use crate::core::open_epochs::Fenced;
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

    /// Returns true if [`WindowFences::run`] would only have to run a barrier of the window's communicator. A caller that runs the
    /// barrier itself then calls [`WindowFences::ended`].
    #[inline]
    pub fn is_a_barrier(&self, asserted: i32) -> bool {
        let before = self.core.open.fence.get();
        self.core.options.fence == FenceDesign::Acknowledged
            && asserted & assert::NOPRECEDE == 0
            && (before == Fenced::Used || self.core.open.in_words().is_none())
            && self.access.in_flight().is_untouched()
    }

    /// Notes that a fence has ended.
    pub fn ended(&self, asserted: i32) {
        let last = asserted & assert::NOSUCCEED != 0;
        self.core.open.fence.set(if last { Fenced::Closed } else { Fenced::Open });
    }

    /// Ends the epoch of the fence before, here and at all targets, and opens another.
    pub async fn run(&self, asserted: i32) -> Result<(), Error> {
        let before = self.core.open.fence.get();
        if before != Fenced::Used
            && let Some(why) = self.core.open.in_words()
        {
            return Err(self.core.sync(format_args!("MPI_Win_fence: {why}")));
        }
        let first = asserted & assert::NOPRECEDE != 0;
        let last = asserted & assert::NOSUCCEED != 0;
        if first && before == Fenced::Used {
            let text = "MPI_Win_fence with MPI_MODE_NOPRECEDE, but operations were issued";
            return Err(self.core.sync(text));
        }
        // No epoch is open on any rank: every rank asserts it (MPI_MODE_NOPRECEDE), or no fence has opened an epoch.
        let opens = first || before == Fenced::Closed;
        if !(first && last) {
            match self.core.options.fence {
                FenceDesign::TwoSided | FenceDesign::TwoSidedApart => {
                    self.fence_two_sided(opens).await?
                }
                FenceDesign::Pairwise => self.fence_pairwise(opens).await?,
                FenceDesign::Barrier => self.fence_barrier(opens).await?,
                FenceDesign::Immediate => self.fence_immediate(opens).await?,
                FenceDesign::Acknowledged => self.fence_acknowledged().await?,
            }
        }
        self.ended(asserted);
        Ok(())
    }
}
