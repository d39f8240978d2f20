//! Contents of `MPI_INFO_ENV`.

use crate::constants::*;
use crate::state::state;
use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use weft_fabric::Fabric;
use weft_process::VALUE_MAX;

/// Returns information about the start of this process (MPI 5.0, section 11.2.3), for `MPI_INFO_ENV`. Keys without a value (`soft`,
/// `file`) and values that are too long are left out.
pub fn environment() -> weft_process::Info {
    let mut info = weft_process::Info::default();
    let mut set = |key: &str, value: &[u8]| {
        if !value.is_empty() && value.len() <= VALUE_MAX {
            info.set(key, value);
        }
    };
    let mut arguments = std::env::args_os();
    set("command", arguments.next().unwrap_or_default().as_bytes());
    set("argv", arguments.collect::<Vec<_>>().join(OsStr::new(" ")).as_bytes());
    // Until this process has joined its job, the size is the number that the launcher has announced.
    let joined = state().engine.get().map(|engine| engine.endpoint().fabric().size());
    if let Some(size) = joined.or_else(weft_bootstrap::announced_size) {
        set("maxprocs", size.to_string().as_bytes());
    }
    set("host", &system_name(|names| &names.nodename));
    set("arch", &system_name(|names| &names.machine));
    let here = std::env::current_dir().unwrap_or_default();
    set("wdir", here.as_os_str().as_bytes());
    let level = match state().thread_level.get() {
        MPI_THREAD_FUNNELED => "MPI_THREAD_FUNNELED",
        MPI_THREAD_SERIALIZED => "MPI_THREAD_SERIALIZED",
        MPI_THREAD_MULTIPLE => "MPI_THREAD_MULTIPLE",
        _ => "MPI_THREAD_SINGLE",
    };
    set("thread_level", level.as_bytes());
    info
}

/// Returns a field of the answer of `uname`.
fn system_name(field: impl Fn(&libc::utsname) -> &[c_char; 65]) -> Vec<u8> {
    // SAFETY: zeros are a valid `utsname`: all fields are arrays of characters.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: `names` is valid for writes of a `utsname`.
    if unsafe { libc::uname(&mut names) } != 0 {
        return Vec::new();
    }
    field(&names).iter().map(|&c| c as u8).take_while(|&b| b != 0).collect()
}
