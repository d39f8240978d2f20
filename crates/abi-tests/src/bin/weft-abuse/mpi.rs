//! The MPI library as any program sees it: functions found by name, arguments of one register each.

use std::ffi::c_int;
use weft_client::ClientLibrary;

pub struct AbusedLibrary(ClientLibrary);

impl AbusedLibrary {
    /// Loads the library. `name` is a path, or a name for the loader to search.
    pub fn load(name: &str) -> Result<AbusedLibrary, String> {
        ClientLibrary::load(name).map(AbusedLibrary)
    }

    /// Calls a function by name. Returns its result, whose low half is an `int`.
    pub fn raw(&self, name: &str, a: &[usize]) -> usize {
        let find = || self.0.address(name).unwrap_or_else(|e| panic!("{e}"));
        let address = crate::plant::address(name).unwrap_or_else(find);
        // SAFETY: the function has this many parameters, all of class INTEGER (the callers take them from the standard's data).
        // That bad values do no harm is the subject of the test, in a separate process.
        unsafe { weft_client::call(address, a) }
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

    /// Calls a function whose last parameter is a handle or number that the function makes.
    pub fn make(&self, name: &str, a: &[usize]) -> usize {
        let mut made = 0usize;
        let mut args = a.to_vec();
        args.push(&raw mut made as usize);
        self.must(name, &args);
        std::hint::black_box(made)
    }

    /// Returns the library's text of a code.
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
