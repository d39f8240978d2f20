//! A library of MPI's standard ABI as a program sees it: loaded when the program runs, with its functions found by name. It serves
//! programs that test or tune an MPI library, Weft or another library.

#![warn(missing_docs)]

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function of a library, by its name, which is looked up once.
pub struct ClientFunction {
    name: &'static CStr,
    address: AtomicUsize,
}

impl ClientFunction {
    /// Names a function.
    pub const fn new(name: &'static CStr) -> ClientFunction {
        ClientFunction { name, address: AtomicUsize::new(0) }
    }

    /// Returns the address of the function. The first call finds it with `find`, which does not return 0.
    #[inline]
    pub fn address(&self, find: impl FnOnce(&CStr) -> usize) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => {
                let found = find(self.name);
                self.address.store(found, Ordering::Relaxed);
                found
            }
            address => address,
        }
    }
}

/// A loaded library.
pub struct ClientLibrary(libloading::Library);

impl ClientLibrary {
    /// Loads the library. `name` is a path, or a name for the loader to look for.
    ///
    /// # Errors
    /// A text with the reason why the library could not be loaded, and advice.
    pub fn load(name: &str) -> Result<ClientLibrary, String> {
        // SAFETY: `Library::new` runs the initialisers of the library. Those of an MPI library have no preconditions.
        let library = unsafe { libloading::Library::new(name) }.map_err(|e| {
            format!(
                "cannot load the MPI library '{name}': {e}; give its path with --library, or its \
                 directory in LD_LIBRARY_PATH"
            )
        })?;
        Ok(ClientLibrary(library))
    }

    /// Returns the address of a function.
    ///
    /// # Errors
    /// A text that says that the library lacks the function.
    pub fn address(&self, name: &str) -> Result<usize, String> {
        // SAFETY: `get` needs the right type of the symbol if it is called. It is not called here: only its address is taken, and
        // the caller of [`call`] answers for its use.
        let symbol = unsafe { self.0.get::<unsafe extern "C" fn()>(name.as_bytes()) };
        let symbol = symbol.map_err(|e| format!("the MPI library has no {name}: {e}"))?;
        Ok(*symbol as usize)
    }
}

/// Calls the function at an address. Returns its result, of which the low half is an `int`.
///
/// An `int` parameter is given as 64 bits, of which the callee reads the low half. This is how x86-64 and AArch64 pass integers.
///
/// # Safety
/// There is a function at `address`, with as many parameters as `a` has, all of class INTEGER: integers, handles, pointers. The
/// values meet the preconditions of that function.
///
/// # Panics
/// Panics with more parameters than any function of MPI has.
pub unsafe fn call(address: usize, a: &[usize]) -> usize {
    macro_rules! call {
        ($($n:literal: $($i:literal)*;)*) => {
            match a.len() {
                $($n => {
                    type F = unsafe extern "C" fn($(call!(@ $i)),*) -> usize;
                    // SAFETY: `address` is a function with this number of INTEGER parameters, and their values meet its
                    // preconditions: the caller of `call` promises both.
                    unsafe { std::mem::transmute::<usize, F>(address)($(a[$i]),*) }
                })*
                n => panic!("no call with {n} parameters"),
            }
        };
        (@ $i:literal) => { usize };
    }
    call! {
        0: ; 1: 0; 2: 0 1; 3: 0 1 2; 4: 0 1 2 3; 5: 0 1 2 3 4; 6: 0 1 2 3 4 5;
        7: 0 1 2 3 4 5 6; 8: 0 1 2 3 4 5 6 7; 9: 0 1 2 3 4 5 6 7 8; 10: 0 1 2 3 4 5 6 7 8 9;
        11: 0 1 2 3 4 5 6 7 8 9 10; 12: 0 1 2 3 4 5 6 7 8 9 10 11;
        13: 0 1 2 3 4 5 6 7 8 9 10 11 12; 14: 0 1 2 3 4 5 6 7 8 9 10 11 12 13;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn digits(a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i32, h: i32) -> i32 {
        [a, b, c, d, e, f, g, h].into_iter().fold(0, |sum, digit| 10 * sum + digit)
    }

    #[test]
    fn parameters_arrive_in_their_order_in_registers_and_beyond() {
        type F = extern "C" fn(i32, i32, i32, i32, i32, i32, i32, i32) -> i32;
        // SAFETY: `call` needs a function with as many INTEGER parameters as values. `digits` has eight, and no preconditions.
        let result = unsafe { call(digits as F as usize, &[1, 2, 3, 4, 5, 6, 7, 8]) };
        assert_eq!(result as i32, 12_345_678);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = ClientLibrary::load("libno_such_mpi.so").err().unwrap_or_default();
        assert!(error.contains("libno_such_mpi.so") && error.contains("--library"), "{error}");
        let library = ClientLibrary::load("libc.so.6").expect("every Linux has it");
        assert!(library.address("getpid").is_ok());
        let error = library.address("MPI_No_such").expect_err("no function of C");
        assert!(error.contains("MPI_No_such"), "{error}");
    }
}
