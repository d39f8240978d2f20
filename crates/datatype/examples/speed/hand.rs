//! The loops of `hand.c`, compiled by the C compiler of this machine for this machine.

use libloading::{Library, Symbol};
use std::process::Command;

/// Loops written by hand, in a shared library.
pub struct Hand(Library);

/// Packed, memory, n, s, k, t, x: see `hand.c`.
pub type Copy = unsafe extern "C" fn(*mut u8, *mut u8, i64, i64, i64, i64, *const i32);
/// Inout, input, length.
pub type Reduce = unsafe extern "C" fn(*mut u8, *const u8, i64);

impl Hand {
    /// Compiles `hand.c` with `cc` and these flags.
    pub fn compile(flags: &str) -> Result<Hand, String> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/speed/hand.c");
        let place = std::env::temp_dir().join(format!("weft-speed-{}.so", std::process::id()));
        let mut command = Command::new("cc");
        command.args(flags.split_whitespace()).args(["-shared", "-fPIC", "-o"]).arg(&place);
        let status = command.arg(source).status();
        if !status.as_ref().is_ok_and(|s| s.success()) {
            return Err(format!("cc {flags} {source}: {status:?}"));
        }
        // SAFETY: loading runs the library's initialisers: `hand.c`, from which it was just made, has none.
        let library = unsafe { Library::new(&place) };
        let _ = std::fs::remove_file(&place);
        library.map(Hand).map_err(|e| format!("{}: {e}", place.display()))
    }

    /// # Panics
    /// If `hand.c` has no such function.
    pub fn copy(&self, name: &str) -> Symbol<'_, Copy> {
        // SAFETY: `get` needs the right type: all functions of this name pattern in `hand.c` have this signature.
        unsafe { self.0.get(name.as_bytes()) }.unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Returns a reduction; `None` if `hand.c` has no such function, since it has only defined combinations.
    pub fn reduce(&self, name: &str) -> Option<Symbol<'_, Reduce>> {
        // SAFETY: `get` needs the right type: all reductions in `hand.c` have this signature.
        unsafe { self.0.get(name.as_bytes()) }.ok()
    }
}
