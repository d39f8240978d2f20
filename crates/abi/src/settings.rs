//! Every setting, declared once.

use std::ffi::CString;

/// A setting: read from the environment at MPI_Init.
pub struct Setting {
    pub name: &'static str,
    pub default: &'static str,
    pub doc: &'static str,
}

/// All settings.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "WEFT_EAGER",
        default: "16384",
        doc: "largest payload in bytes that is sent at once; above it, rendezvous",
    },
    Setting {
        name: "WEFT_CREDIT",
        default: "1048576",
        doc: "eager payload in bytes that one sender may have unreceived at one receiver",
    },
    Setting {
        name: "WEFT_CMA",
        default: "1",
        doc: "0: never read another process's memory directly, copy through shared cells",
    },
    Setting {
        name: "WEFT_BARRIER",
        default: "auto",
        doc: "barrier algorithm: CENTRAL (counter in shared memory), MPI-DS (dissemination), MPI-PE \
              (pairwise exchange), or auto",
    },
    Setting {
        name: "WEFT_ALLREDUCE",
        default: "auto",
        doc: "allreduce algorithm: CENTRAL (slots in shared memory, up to 64 bytes), MPI-PE \
              (pairwise exchange), MPI-GB (gather, broadcast), or auto",
    },
    Setting {
        name: "WEFT_SPIN_US",
        default: "20",
        doc: "microseconds to spin before yielding, where the ranks fit the processors",
    },
];

/// The value of a setting: from the environment, or its default.
pub fn value(name: &str) -> String {
    let setting = SETTINGS.iter().find(|s| s.name == name).expect("a declared setting");
    std::env::var(name).unwrap_or_else(|_| setting.default.to_owned())
}

/// A number; an error in words if it is none.
pub fn number(name: &str) -> Result<u64, String> {
    let text = value(name);
    text.trim().parse().map_err(|_| format!("{name}={text}: not a number"))
}

/// One of `choices`, by its place.
pub fn choice(name: &str, choices: &[&str]) -> Result<usize, String> {
    let text = value(name);
    let place = choices.iter().position(|c| c.eq_ignore_ascii_case(text.trim()));
    place.ok_or_else(|| format!("{name}={text}: not one of {}", choices.join(", ")))
}

/// A table for `weft info`: name, default and doc, separated by tabs, a line each.
#[unsafe(no_mangle)]
pub extern "C" fn weft_settings() -> *const std::ffi::c_char {
    use std::sync::OnceLock;
    static TEXT: OnceLock<CString> = OnceLock::new();
    let build = || {
        let line = |s: &Setting| format!("{}\t{}\t{}\n", s.name, s.default, s.doc);
        CString::new(SETTINGS.iter().map(line).collect::<String>()).expect("no NUL in the texts")
    };
    TEXT.get_or_init(build).as_ptr()
}
