//! Fence (MPI 5.0, section 12.5.1): five designs, one a file. Four are those of Santhanaraman et al. 2009
//! ("Design Alternatives for Implementing Fence Synchronization"); the fifth is the usual one.
//!
//! ```text
//!                 when operations are issued    their end at the target        the next epoch begins after
//!   2S            at the fence, as messages     the last message of an origin  that
//!   1S            at once                       a flag of every other rank     a flag of every other rank
//!   1S-BARRIER    at once                       a flag of every other rank     a barrier
//!   RI            at once                       arrivals counted by target     a barrier
//!   ACK           at once                       acknowledged to the origin     the same barrier
//! ```

mod acknowledged;
mod barrier;
mod immediate;
mod pairwise;
mod two_sided;

pub(crate) use immediate::Arrivals;

use crate::Window;
use crate::assert;
use crate::epoch::Fenced;
use std::str::FromStr;
use weft_fabric::Fabric;
use weft_process::Error;

/// How fences are built. The same at all ranks of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Design {
    /// Fence-2S.
    TwoSided,
    /// Fence-1S.
    Pairwise,
    /// Fence-1S-Barrier.
    Barrier,
    /// Fence-RI.
    Immediate,
    /// Each origin waits until its own operations are acknowledged, then all meet in a barrier.
    #[default]
    Acknowledged,
}

impl Design {
    /// Each once, for settings and tests that go through them.
    pub const ALL: [Design; 5] = [
        Design::TwoSided,
        Design::Pairwise,
        Design::Barrier,
        Design::Immediate,
        Design::Acknowledged,
    ];

    /// The word by which a setting chooses it; its case does not matter there.
    pub fn name(self) -> &'static str {
        match self {
            Design::TwoSided => "2S",
            Design::Pairwise => "1S",
            Design::Barrier => "1S-BARRIER",
            Design::Immediate => "RI",
            Design::Acknowledged => "ACK",
        }
    }
}

impl FromStr for Design {
    type Err = ();

    /// By its name, in capitals or not.
    fn from_str(name: &str) -> Result<Design, ()> {
        Design::ALL.into_iter().find(|design| design.name().eq_ignore_ascii_case(name)).ok_or(())
    }
}

impl<F: Fabric> Window<F> {
    /// Whether a barrier of [`Window::comm`] is all that [`Window::fence`] has left to do. Then whoever has run one
    /// says so by [`Window::fenced`].
    #[inline]
    pub fn fence_is_a_barrier(&self, asserted: i32) -> bool {
        let before = self.epochs.fence.get();
        self.options.fence == Design::Acknowledged
            && asserted & assert::NOPRECEDE == 0
            && (before == Fenced::Used || self.open_epochs().is_none())
            && self.epochs.touched.borrow().is_empty()
    }

    /// A fence has ended.
    pub fn fenced(&self, asserted: i32) {
        let last = asserted & assert::NOSUCCEED != 0;
        self.epochs.fence.set(if last { Fenced::Closed } else { Fenced::Open });
    }

    /// Ends the epoch of the fence before, here and at all targets, and opens another.
    pub async fn fence(&self, asserted: i32) -> Result<(), Error> {
        let before = self.epochs.fence.get();
        if before != Fenced::Used
            && let Some(why) = self.open_epochs()
        {
            return Err(self.sync(format_args!("MPI_Win_fence: {why}")));
        }
        let first = asserted & assert::NOPRECEDE != 0;
        let last = asserted & assert::NOSUCCEED != 0;
        if first && before == Fenced::Used {
            let text = "MPI_Win_fence with MPI_MODE_NOPRECEDE, but operations were issued";
            return Err(self.sync(text));
        }
        // Nobody has an epoch that this one ends: all say so, or all know it.
        let opens = first || before == Fenced::Closed;
        if !(first && last) {
            match self.options.fence {
                Design::TwoSided => self.fence_two_sided(opens).await?,
                Design::Pairwise => self.fence_pairwise(opens).await?,
                Design::Barrier => self.fence_barrier(opens).await?,
                Design::Immediate => self.fence_immediate(opens).await?,
                Design::Acknowledged => self.fence_acknowledged().await?,
            }
        }
        self.fenced(asserted);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designs_have_names() {
        for design in Design::ALL {
            assert_eq!(design.name().parse(), Ok(design));
        }
        assert_eq!("ri".parse(), Ok(Design::Immediate));
        assert!("3S".parse::<Design>().is_err());
    }
}
