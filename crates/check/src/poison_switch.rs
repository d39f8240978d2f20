//! The setting that asks for poison, see [`crate::poison`].

use std::sync::OnceLock;

/// Setting that asks for poison.
const SETTING: &str = "WEFT_CHECK_POISON";

/// Returns true if the user asks for poison.
pub fn is_on() -> bool {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    let is_wanted = || std::env::var_os(SETTING).is_some_and(|v| !v.is_empty() && v != "0");
    *IS_ON.get_or_init(is_wanted)
}
