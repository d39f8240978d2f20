//! Checks that every fabric must pass. A fabric runs all of them by
//!
//! ```text
//! mod two_ranks {
//!     weft_fabric_testing::tests!(|| makers(2));
//! }
//! ```
//! where `makers(n)` returns `n` closures. Each closure makes the fabric of one rank in its own thread. Each check becomes a
//! `#[test]`.

mod memory;
mod messages;
mod multicast;
mod rank;
mod waiting;

pub use memory::{
    allocated_memory_is_zero_and_used_again, atomics_are_atomic, bad_addresses_are_refused,
    flags_come_after_their_data, immediates_are_counted_even_before_they_are_asked_for,
    reads_and_writes_reach_exposed_memory,
};
pub use messages::{
    every_length_arrives, messages_of_a_peer_keep_their_order, nobody_is_starved,
    ranks_know_who_they_are, short_payloads_are_taken_at_once,
    what_has_no_room_is_kept_and_delivered,
};
pub use multicast::{datagrams_reach_members_only, datagrams_survive_a_flood_whole};
pub use rank::{ConformanceRank, run, run_check};
pub use waiting::{
    a_deadline_ends_a_wait, a_sleep_without_limit_lasts, helpers_are_woken_by_what_is_theirs,
    sleepers_are_woken_by_everything,
};

/// Makes the fabric of one rank, in the thread that will use it.
pub type Maker<F> = Box<dyn FnOnce() -> F + Send>;

/// Makes tests of all checks, or of the named checks. The argument makes the [`Maker`]s of one world. It may return `None` if this
/// machine has nothing to test, and must have printed a notice then. `ignored_flags "reason",` before the argument leaves
/// [`flags_come_after_their_data`] to `--ignored`.
#[macro_export]
macro_rules! tests {
    (@all [$($attribute:tt)*] $makers:expr) => {
        $crate::core_tests!(@all [$($attribute)*] $makers);
        $crate::tests!($makers;
            immediates_are_counted_even_before_they_are_asked_for
            datagrams_reach_members_only
            datagrams_survive_a_flood_whole
            helpers_are_woken_by_what_is_theirs
            a_sleep_without_limit_lasts
        );
    };
    (@one [$($attribute:tt)*] $makers:expr; $check:ident) => {
        #[test]
        $($attribute)*
        fn $check() {
            if let Some(makers) = Option::from(($makers)()) {
                $crate::conformance::run_check(makers, $crate::conformance::$check);
            }
        }
    };
    (ignored_flags $why:literal, $makers:expr) => {
        $crate::tests!(@all [#[ignore = $why]] $makers);
    };
    ($makers:expr) => {
        $crate::tests!(@all [] $makers);
    };
    ($makers:expr; $($check:ident)*) => {
        $($crate::tests!(@one [] $makers; $check);)*
    };
}

/// Makes tests of the checks of the core, for a fabric that has none of the optional parts.
#[macro_export]
macro_rules! core_tests {
    (@all $attributes:tt $makers:expr) => {
        $crate::tests!(@one $attributes $makers; flags_come_after_their_data);
        $crate::tests!($makers;
            ranks_know_who_they_are
            every_length_arrives
            messages_of_a_peer_keep_their_order
            nobody_is_starved
            short_payloads_are_taken_at_once
            what_has_no_room_is_kept_and_delivered
            allocated_memory_is_zero_and_used_again
            atomics_are_atomic
            reads_and_writes_reach_exposed_memory
            bad_addresses_are_refused
            a_deadline_ends_a_wait
            sleepers_are_woken_by_everything
        );
    };
    ($makers:expr) => {
        $crate::core_tests!(@all [] $makers);
    };
}
