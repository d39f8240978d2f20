//! Privileged programs: programs with more rights than the user who started them (set-user-ID, set-group-ID, capabilities of the
//! file). They take no names of files, folders and commands from the environment, because a library loaded by such a name would
//! have the rights of the program.

use std::env;
use std::ffi::OsString;

/// Returns true if this program must not trust its environment, as reported by the system (AT_SECURE).
pub fn is_privileged() -> bool {
    // SAFETY: the call reads a value that the kernel has left for the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns the file, folder or command that a variable names, or `None` if the program is privileged.
pub fn path_of(variable: &str) -> Option<OsString> {
    admitted(env::var_os(variable), is_privileged())
}

fn admitted(named: Option<OsString>, is_privileged: bool) -> Option<OsString> {
    named.filter(|name| !is_privileged && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_privileged_take_no_names() {
        let named = |name: &str| Some(OsString::from(name));
        assert_eq!(admitted(named("/tmp/lib.so"), true), None);
        assert_eq!(admitted(named("/tmp/lib.so"), false), named("/tmp/lib.so"));
        assert_eq!((admitted(named(""), false), admitted(None, false)), (None, None));
        assert!(!is_privileged(), "tests have the rights of who runs them");
    }
}
