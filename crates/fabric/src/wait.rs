//! Waiting at little cost to the machine: the adaptive policy, and the doorbell at which threads sleep.

mod affinity;
mod biased_lock;
mod doorbell;
mod handover;
mod helper_thread;
mod policy;
mod processor_turns;
mod random_yields;

pub use affinity::{Affinity, place};
pub use biased_lock::BiasedLock;
pub use doorbell::{Doorbell, Sleep, Token};
pub use handover::{Handover, Help, MainThreadInside};
pub use helper_thread::{HelperCounts, HelperHandle, HelperTurn};
pub use policy::{WaitPolicy, WaitStep, Waiter};
pub use processor_turns::ProcessorTurns;
pub use random_yields::RandomYields;
