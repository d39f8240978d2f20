//! How to wait without burning the machine: the adaptive policy, and the doorbell to sleep on.

mod doorbell;
mod policy;

pub use doorbell::{Doorbell, Sleep, Token};
pub use policy::{Step, WaitPolicy, Waiter};
