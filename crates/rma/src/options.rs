//! Options of a window, with their names in settings and hints.

use std::str::FromStr;

/// Options of a window; the same at all its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowOptions {
    /// Design of [`crate::Window::fence`]: the way in which a fence learns that operations are complete.
    pub fence: FenceDesign,
    /// Order in which puts and gets are issued to the fabric.
    pub order: IssueOrder,
    /// Way in which a target learns that an access epoch (MPI_Win_start to MPI_Win_complete) has ended. Programs cannot choose the
    /// way. The ways other than the default exist only for comparisons.
    pub ending: EpochEnding,
    /// Choice between adapters and the target's guard for the mutual exclusion of accumulates.
    pub atomics: Atomics,
}

/// Designs of fences (`epochs/fence.rs`). The same at all ranks of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum FenceDesign {
    /// Fence-2S.
    TwoSided,
    /// Fence-2S in which a separate message ends an epoch, instead of a mark in the last operation.
    TwoSidedApart,
    /// Fence-1S.
    Pairwise,
    /// Fence-1S-Barrier.
    Barrier,
    /// Fence-RI.
    Immediate,
    /// ACK: each origin waits until its own operations are acknowledged, then all ranks meet in a barrier.
    #[default]
    Acknowledged,
}

impl FenceDesign {
    /// Returns true if operations are deferred until the fence that ends their epoch.
    #[inline]
    pub fn defers(self) -> bool {
        matches!(self, FenceDesign::TwoSided | FenceDesign::TwoSidedApart)
    }
}

/// Order in which puts and gets are issued (`access/deferred.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum IssueOrder {
    /// In the order of the calls.
    #[default]
    Called,
    /// A put and a get in turn. All are issued when the epoch is synchronized.
    Turns,
}

/// Way in which an access epoch ends at its targets (`epochs/ordered_flag.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum EpochEnding {
    /// Flags on the rails that were used.
    #[default]
    Used,
    /// Flags on every rail.
    Every,
    /// One flag after all acknowledgements.
    Acknowledged,
}

/// Ways to update elements that adapters can update (`access/adapter_atomics.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Atomics {
    /// By adapters if a rank's part of the window is short (4 KiB or less): counters, locks, queues.
    #[default]
    Auto,
    /// Under the target's guard, as all other elements.
    Guarded,
    /// By the adapters' atomics.
    Adapter,
}

/// Maximum length, in bytes, of a part whose words adapters update by default. Accumulates in such a part are so short that the
/// guard would not be much faster.
pub const SHORT: usize = 4 << 10;

impl Atomics {
    /// Returns true if adapters update the words of a rank's part, which has `len` bytes.
    pub fn by_adapters(self, len: usize) -> bool {
        match self {
            Atomics::Auto => len <= SHORT,
            Atomics::Guarded => false,
            Atomics::Adapter => true,
        }
    }
}

/// Gives the values of an option their names in settings.
macro_rules! names {
    ($option:ident: $($value:ident $name:literal),+) => {
        impl $option {
            /// All values.
            pub const ALL: [$option; [$($name),+].len()] = [$($option::$value),+];

            /// Returns the name in settings.
            pub fn name(self) -> &'static str {
                match self {
                    $($option::$value => $name),+
                }
            }
        }

        impl FromStr for $option {
            type Err = ();

            fn from_str(name: &str) -> Result<$option, ()> {
                $option::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(name)).ok_or(())
            }
        }
    };
}
names!(FenceDesign: TwoSided "2S", TwoSidedApart "2S-APART", Pairwise "1S", Barrier "1S-BARRIER", Immediate "RI", Acknowledged "ACK");
names!(IssueOrder: Called "called", Turns "turns");
names!(EpochEnding: Used "used", Every "every", Acknowledged "acknowledged");
names!(Atomics: Auto "auto", Guarded "guarded", Adapter "adapter");

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
        for atomics in Atomics::ALL {
            assert_eq!(atomics.name().parse(), Ok(atomics));
        }
        assert_eq!(
            ("ri".parse(), "Called".parse()),
            (Ok(FenceDesign::Immediate), Ok(IssueOrder::Called))
        );
        assert_eq!("Guarded".parse(), Ok(Atomics::Guarded));
        assert!("3S".parse::<FenceDesign>().is_err() && "never".parse::<IssueOrder>().is_err());
        assert!("lock".parse::<Atomics>().is_err());
    }

    #[test]
    fn adapters_update_short_parts() {
        assert!(Atomics::Auto.by_adapters(SHORT) && !Atomics::Auto.by_adapters(SHORT + 1));
    }
}
