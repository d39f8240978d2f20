//! How to wait without burning the machine: the adaptive policy, and the doorbell to sleep on.

mod doorbell;
mod handover;
mod policy;

pub use doorbell::{Doorbell, Sleep, Token};
pub use handover::{HELPER_ROUND, Handover, Help, Inside};
pub use policy::{Step, WaitPolicy, Waiter};
