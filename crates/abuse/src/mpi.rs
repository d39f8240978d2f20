//! The MPI library as any program meets it: functions found by name, arguments of one register each.

use std::ffi::c_int;

pub struct Mpi(libloading::Library);

impl Mpi {
    /// Loads the library; `name` is a path, or a name for the loader to look for.
    pub fn load(name: &str) -> Result<Mpi, String> {
        // SAFETY: an MPI library's initialisers have no conditions.
        let library = unsafe { libloading::Library::new(name) }.map_err(|e| {
            format!(
                "cannot load the MPI library '{name}': {e}; give its path with --library, or its \
                 directory in LD_LIBRARY_PATH"
            )
        })?;
        Ok(Mpi(library))
    }

    fn find(&self, name: &str) -> usize {
        // SAFETY: only the address is taken here.
        let symbol = unsafe { self.0.get::<unsafe extern "C" fn()>(name.as_bytes()) };
        *symbol.unwrap_or_else(|e| panic!("the MPI library has no {name}: {e}")) as usize
    }

    /// Calls a function by name; what it returned, of which the low half is an `int`.
    ///
    /// An `int` is given as 64 bits, of which the callee reads the low half: so x86-64 and AArch64
    /// pass integers.
    pub fn raw(&self, name: &str, a: &[usize]) -> usize {
        let address = crate::plant::address(name).unwrap_or_else(|| self.find(name));
        macro_rules! call {
            ($($n:literal: $($i:literal)*;)*) => {
                match a.len() {
                    $($n => {
                        type F = unsafe extern "C" fn($(call!(@ $i)),*) -> usize;
                        // SAFETY: the function has this many parameters, all of class INTEGER
                        // (the callers take them from the standard's data). That bad values do no
                        // harm is what is tested, in a process of its own.
                        unsafe { std::mem::transmute::<usize, F>(address)($(a[$i]),*) }
                    })*
                    n => panic!("{name}: no call with {n} parameters"),
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

    /// Calls a function that returns an error code.
    pub fn code(&self, name: &str, a: &[usize]) -> c_int {
        self.raw(name, a) as c_int
    }

    /// Calls a function that must succeed.
    pub fn must(&self, name: &str, a: &[usize]) {
        let code = self.code(name, a);
        assert!(code == 0, "{name}: {}", self.words(code));
    }

    /// A call whose last parameter is a handle or number that it makes.
    pub fn make(&self, name: &str, a: &[usize]) -> usize {
        let mut made = 0usize;
        let mut args = a.to_vec();
        args.push(&raw mut made as usize);
        self.must(name, &args);
        std::hint::black_box(made)
    }

    /// A code in the library's words.
    pub fn words(&self, code: c_int) -> String {
        let (mut text, mut len) = ([0u8; 4096], 0);
        let args = [code as usize, text.as_mut_ptr() as usize, &raw mut len as usize];
        if self.code("MPI_Error_string", &args) != 0 {
            return format!("error {code}, which MPI_Error_string does not know");
        }
        let len = std::hint::black_box::<c_int>(len) as usize;
        String::from_utf8_lossy(&text[..len.min(text.len())]).into_owned()
    }
}
