//! Test for libfabric on this machine. Without libfabric, the tests print a notice.

use crate::not_run;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use weft_bootstrap::threads;
use weft_fabric_ofi::{Ofi, OfiOptions};

/// Variable that is set on a machine that has libfabric.
const OFI: &str = "WEFT_TEST_OFI";

/// Returns true if this machine lacks the provider, or all of libfabric. This is tested and printed once.
pub fn missing(provider: Option<&str>) -> bool {
    static MISSING: Mutex<Option<HashMap<Option<String>, bool>>> = Mutex::new(None);
    let mut known = MISSING.lock().unwrap_or_else(PoisonError::into_inner);
    let provider = provider.map(str::to_owned);
    *known.get_or_insert_default().entry(provider).or_insert_with_key(|provider| {
        let options = OfiOptions { provider: provider.clone(), ..OfiOptions::default() };
        let error = Ofi::connect(&mut threads(1)[0], options).err();
        if let Some(error) = &error {
            let of = provider.as_ref().map_or(String::new(), |name| format!("'s {name}"));
            let must = match provider.as_deref() {
                // Later versions of the library have this provider under the name `tcp`.
                Some("net") => "WEFT_TEST_OFI_NET",
                // This provider needs an adapter, or soft-RoCE.
                Some("verbs;ofi_rxm") => "WEFT_TEST_OFI_VERBS",
                _ => OFI,
            };
            not_run(&format!("tests of libfabric{of}"), error, must);
        }
        error.is_some()
    })
}
