//! How a window works, where there is a choice: each with the word by which a setting or a hint asks for it.

use std::str::FromStr;

/// How a window works; the same at all its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowOptions {
    /// How [`crate::Window::fence`] learns that operations are over.
    pub fence: FenceDesign,
    /// When puts and gets are issued to the fabric.
    pub order: IssueOrder,
    /// How a target learns that an access epoch (MPI_Win_start to MPI_Win_complete) is over.
    pub ending: Ending,
    /// Whether adapters or the target's guard make accumulates exclude each other.
    pub atomics: Atomics,
}

/// How fences are built (`epochs/fence.rs`). The same at all ranks of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum FenceDesign {
    /// Fence-2S.
    TwoSided,
    /// Fence-2S whose last operation is not joined with its synchronization: the end of an epoch is a message of its own.
    TwoSidedApart,
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

impl FenceDesign {
    /// Each once, for settings and tests that go through them.
    pub const ALL: [FenceDesign; 6] = [
        FenceDesign::TwoSided,
        FenceDesign::TwoSidedApart,
        FenceDesign::Pairwise,
        FenceDesign::Barrier,
        FenceDesign::Immediate,
        FenceDesign::Acknowledged,
    ];

    /// Checks that operations wait for the fence that ends their epoch.
    #[inline]
    pub fn defers(self) -> bool {
        matches!(self, FenceDesign::TwoSided | FenceDesign::TwoSidedApart)
    }

    /// The word by which a setting chooses it; its case does not matter there.
    pub fn name(self) -> &'static str {
        match self {
            FenceDesign::TwoSided => "2S",
            FenceDesign::TwoSidedApart => "2S-APART",
            FenceDesign::Pairwise => "1S",
            FenceDesign::Barrier => "1S-BARRIER",
            FenceDesign::Immediate => "RI",
            FenceDesign::Acknowledged => "ACK",
        }
    }
}

/// When puts and gets are issued (`access/deferred.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum IssueOrder {
    /// As they are called.
    #[default]
    Called,
    /// Puts and gets in turns, when the epoch is synchronized.
    Turns,
}

impl IssueOrder {
    /// Each once, for settings and tests that go through them.
    pub const ALL: [IssueOrder; 2] = [IssueOrder::Called, IssueOrder::Turns];

    /// The word by which a setting chooses it; its case does not matter there.
    pub fn name(self) -> &'static str {
        match self {
            IssueOrder::Called => "called",
            IssueOrder::Turns => "turns",
        }
    }
}

/// By what an access epoch ends at its targets (`epochs/ordered_flag.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Ending {
    /// Flags on the rails that were used.
    #[default]
    Used,
    /// Flags on every rail.
    Every,
    /// One flag after all acknowledgements.
    Acknowledged,
}

impl Ending {
    /// Each once, for settings and tests that go through them.
    pub const ALL: [Ending; 3] = [Ending::Used, Ending::Every, Ending::Acknowledged];

    /// The word by which a setting chooses it; its case does not matter there.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Used => "used",
            Ending::Every => "every",
            Ending::Acknowledged => "acknowledged",
        }
    }
}

/// How elements are updated that adapters can update (`access/adapter_atomics.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Atomics {
    /// By adapters where a rank's part of the window is short (4 KiB or less): counters, locks, queues.
    #[default]
    Auto,
    /// Under the target's guard, as all others.
    Guarded,
    /// By the adapters' atomics.
    Adapter,
}

/// Bytes of a part of a window in which no accumulate is so long that the guard would be much better.
pub const SHORT: usize = 4 << 10;

impl Atomics {
    /// Each once, for settings and tests that go through them.
    pub const ALL: [Atomics; 3] = [Atomics::Auto, Atomics::Guarded, Atomics::Adapter];

    /// Whether adapters update the words of a part of a window of `len` bytes.
    pub fn by_adapters(self, len: usize) -> bool {
        match self {
            Atomics::Auto => len <= SHORT,
            Atomics::Guarded => false,
            Atomics::Adapter => true,
        }
    }

    /// The word by which a setting chooses it; its case does not matter there.
    pub fn name(self) -> &'static str {
        match self {
            Atomics::Auto => "auto",
            Atomics::Guarded => "guarded",
            Atomics::Adapter => "adapter",
        }
    }
}

macro_rules! by_name {
    ($($option:ident)*) => {
        $(impl FromStr for $option {
            type Err = ();

            /// By its name, in capitals or not.
            fn from_str(name: &str) -> Result<$option, ()> {
                $option::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(name)).ok_or(())
            }
        })*
    };
}
by_name!(FenceDesign IssueOrder Ending Atomics);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_names() {
        for design in FenceDesign::ALL {
            assert_eq!(design.name().parse(), Ok(design));
        }
        for order in IssueOrder::ALL {
            assert_eq!(order.name().parse(), Ok(order));
        }
        for ending in Ending::ALL {
            assert_eq!(ending.name().parse(), Ok(ending));
        }
        for atomics in Atomics::ALL {
            assert_eq!(atomics.name().parse(), Ok(atomics));
        }
        assert_eq!(
            ("ri".parse(), "Called".parse()),
            (Ok(FenceDesign::Immediate), Ok(IssueOrder::Called))
        );
        assert_eq!("Guarded".parse(), Ok(Atomics::Guarded));
        assert!("3S".parse::<FenceDesign>().is_err() && "never".parse::<IssueOrder>().is_err());
        assert!("some".parse::<Ending>().is_err() && "lock".parse::<Atomics>().is_err());
    }

    #[test]
    fn adapters_update_short_parts() {
        assert!(Atomics::Auto.by_adapters(SHORT) && !Atomics::Auto.by_adapters(SHORT + 1));
    }
}
