//! The MPI library as any program sees it: `libmpi_abi.so.1`, its functions found by name, the handles and constants of the
//! standard ABI as numbers.

use fastrand::Rng;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use weft_client::ClientLibrary;

/// Handles and constants of the standard ABI (a test compares them with the standard's data).
pub const COMM_NULL: usize = 0x100;
pub const COMM_WORLD: usize = 0x101;
pub const COMM_SELF: usize = 0x102;
pub const MESSAGE_NULL: usize = 0x128;
pub const GROUP_EMPTY: usize = 0x109;
pub const UNWEIGHTED: usize = 10;
pub const INFO_NULL: usize = 0x130;
pub const ERRORS_RETURN: usize = 0x143;
pub const REQUEST_NULL: usize = 0x180;
pub const PACKED: usize = 0x207;
pub const IN_PLACE: usize = 1;
pub const SUCCESS: c_int = 0;
pub const BSEND_OVERHEAD: i64 = 512;
pub const ANY_SOURCE: i64 = -1;
pub const ANY_TAG: i64 = -2;
pub const PROC_NULL: i64 = -3;
pub const ROOT: i64 = -4;
pub const UNDEFINED: i64 = -32766;
pub const ORDER_C: i64 = 0xC;
pub const ORDER_FORTRAN: i64 = 0xF;
pub const DISTRIBUTE_NONE: i64 = 16;
pub const DISTRIBUTE_BLOCK: i64 = 17;
pub const DISTRIBUTE_CYCLIC: i64 = 18;
pub const DISTRIBUTE_DFLT_DARG: i64 = 19;
pub const REPLACE: usize = 0x3c;
pub const NO_OP: usize = 0x3d;
pub const COMM_TYPE_SHARED: i64 = 221;
pub const LOCK_EXCLUSIVE: i64 = 301;
pub const LOCK_SHARED: i64 = 302;
pub const MODE_NOCHECK: i64 = 1024;
pub const MODE_NOPRECEDE: i64 = 2048;
pub const MODE_NOPUT: i64 = 4096;
pub const MODE_NOSTORE: i64 = 8192;
pub const MODE_NOSUCCEED: i64 = 16384;

/// Names of the constants above, for the test.
#[cfg(test)]
const NAMED: &[(&str, i64)] = &[
    ("MPI_COMM_NULL", COMM_NULL as i64),
    ("MPI_COMM_WORLD", COMM_WORLD as i64),
    ("MPI_COMM_SELF", COMM_SELF as i64),
    ("MPI_MESSAGE_NULL", MESSAGE_NULL as i64),
    ("MPI_INFO_NULL", INFO_NULL as i64),
    ("MPI_GROUP_EMPTY", GROUP_EMPTY as i64),
    ("MPI_UNWEIGHTED", UNWEIGHTED as i64),
    ("MPI_ERRORS_RETURN", ERRORS_RETURN as i64),
    ("MPI_REQUEST_NULL", REQUEST_NULL as i64),
    ("MPI_PACKED", PACKED as i64),
    ("MPI_IN_PLACE", IN_PLACE as i64),
    ("MPI_SUCCESS", SUCCESS as i64),
    ("MPI_BSEND_OVERHEAD", BSEND_OVERHEAD),
    ("MPI_ANY_SOURCE", ANY_SOURCE),
    ("MPI_ANY_TAG", ANY_TAG),
    ("MPI_PROC_NULL", PROC_NULL),
    ("MPI_ROOT", ROOT),
    ("MPI_UNDEFINED", UNDEFINED),
    ("MPI_ORDER_C", ORDER_C),
    ("MPI_ORDER_FORTRAN", ORDER_FORTRAN),
    ("MPI_DISTRIBUTE_NONE", DISTRIBUTE_NONE),
    ("MPI_DISTRIBUTE_BLOCK", DISTRIBUTE_BLOCK),
    ("MPI_DISTRIBUTE_CYCLIC", DISTRIBUTE_CYCLIC),
    ("MPI_DISTRIBUTE_DFLT_DARG", DISTRIBUTE_DFLT_DARG),
    ("MPI_REPLACE", REPLACE as i64),
    ("MPI_NO_OP", NO_OP as i64),
    ("MPI_COMM_TYPE_SHARED", COMM_TYPE_SHARED),
    ("MPI_LOCK_EXCLUSIVE", LOCK_EXCLUSIVE),
    ("MPI_LOCK_SHARED", LOCK_SHARED),
    ("MPI_MODE_NOCHECK", MODE_NOCHECK),
    ("MPI_MODE_NOPRECEDE", MODE_NOPRECEDE),
    ("MPI_MODE_NOPUT", MODE_NOPUT),
    ("MPI_MODE_NOSTORE", MODE_NOSTORE),
    ("MPI_MODE_NOSUCCEED", MODE_NOSUCCEED),
];

/// `MPI_Status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CStatus {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
    internal: [c_int; 5],
}

impl CStatus {
    pub fn address(&mut self) -> usize {
        std::ptr::from_mut(self) as usize
    }
}

/// Type of the counts in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CountWidth {
    /// `int`.
    Int,
    /// `MPI_Count`: the form of the function with large counts (`_c`).
    Large,
}

impl CountWidth {
    /// Returns the end of the function's name.
    pub fn suffix(self) -> &'static str {
        match self {
            CountWidth::Int => "",
            CountWidth::Large => "_c",
        }
    }

    /// Chooses one of both forms, which are equally likely.
    pub fn any(rng: &mut Rng) -> CountWidth {
        if rng.bool() { CountWidth::Large } else { CountWidth::Int }
    }

    /// Chooses one of both forms, of which large counts are less likely.
    pub fn mostly_int(rng: &mut Rng) -> CountWidth {
        if rng.u32(..3) == 0 { CountWidth::Large } else { CountWidth::Int }
    }
}

/// An array of integers in the type of a function: `int` without large counts, 64 bits with large counts. The address of the
/// integers does not change when the array is moved, as nonblocking calls need.
pub enum Array {
    Small(Box<[c_int]>),
    Large(Box<[i64]>),
}

impl Array {
    /// Makes an array of `int`.
    pub fn ints(values: impl IntoIterator<Item = i64>) -> Array {
        Array::new(CountWidth::Int, values)
    }

    pub fn new(width: CountWidth, values: impl IntoIterator<Item = i64>) -> Array {
        let values = values.into_iter();
        match width {
            CountWidth::Large => Array::Large(values.collect()),
            CountWidth::Int => {
                let small = |v| c_int::try_from(v).expect("the generator keeps counts under 2^31");
                Array::Small(values.map(small).collect())
            }
        }
    }

    pub fn address(&self) -> usize {
        match self {
            Array::Small(a) => a.as_ptr() as usize,
            Array::Large(a) => a.as_ptr() as usize,
        }
    }
}

/// A function of the library: its address, and the number of its calls.
struct Function {
    address: usize,
    calls: u64,
}

pub struct Mpi {
    library: ClientLibrary,
    functions: RefCell<BTreeMap<String, Function>>,
    /// Number of parameters of each function, by the standard's data.
    arity: BTreeMap<&'static str, usize>,
}

impl Mpi {
    /// Loads the library. `name` is a path, or a name for the loader to search.
    pub fn load(name: &str) -> Result<Mpi, String> {
        let library = ClientLibrary::load(name)?;
        let arity = weft_abi_tests::functions().map(|f| (f.name, f.parameters.len())).collect();
        Ok(Mpi { library, functions: RefCell::default(), arity })
    }

    fn find(&self, name: &str) -> Result<usize, String> {
        let mut functions = self.functions.borrow_mut();
        if let Some(function) = functions.get_mut(name) {
            function.calls += 1;
            return Ok(function.address);
        }
        let address = self.library.address(name)?;
        functions.insert(name.to_owned(), Function { address, calls: 1 });
        Ok(address)
    }

    /// Returns the number of calls of each function.
    pub fn tally(&self) -> Vec<(String, u64)> {
        self.functions.borrow().iter().map(|(name, f)| (name.clone(), f.calls)).collect()
    }

    /// Calls an MPI function whose parameters are integers, handles and pointers.
    ///
    /// # Errors
    /// Returns the library's text of the function's error code.
    pub fn call(&self, name: &str, a: &[usize]) -> Result<(), String> {
        let arity = self.arity.get(name).copied();
        assert_eq!(arity, Some(a.len()), "{name}: parameters by the standard and given");
        let address = self.find(name)?;
        // SAFETY: the function has this many parameters (checked above), all of class INTEGER. The callers give pointers that are
        // valid for the call and, if the call is nonblocking, until its completion.
        let code = unsafe { weft_client::call(address, a) } as c_int;
        if code == SUCCESS { Ok(()) } else { Err(format!("{name}: {}", self.words(code))) }
    }

    /// Calls the form of an MPI function with counts of `width`.
    pub fn call_c(&self, name: &str, width: CountWidth, a: &[usize]) -> Result<(), String> {
        match width {
            CountWidth::Int => self.call(name, a),
            CountWidth::Large => self.call(&format!("{name}_c"), a),
        }
    }

    fn words(&self, code: c_int) -> String {
        let mut text = [0u8; 512];
        let mut len: c_int = 0;
        let args =
            [code as usize, text.as_mut_ptr() as usize, std::ptr::from_mut(&mut len) as usize];
        if self.call("MPI_Error_string", &args).is_err() {
            return format!("error {code}");
        }
        let len = usize::try_from(len).unwrap_or(0).min(text.len());
        format!("error {code}: {}", String::from_utf8_lossy(&text[..len]))
    }

    /// Calls a function whose last parameter is a handle that the function makes.
    pub fn make(&self, name: &str, a: &[usize]) -> Result<usize, String> {
        self.make_c(name, CountWidth::Int, a)
    }

    /// Calls the form with counts of `width` of a function whose last parameter is a handle that the function makes.
    pub fn make_c(&self, name: &str, width: CountWidth, a: &[usize]) -> Result<usize, String> {
        let mut made = 0usize;
        let mut args = a.to_vec();
        args.push(std::ptr::from_mut(&mut made) as usize);
        self.call_c(name, width, &args)?;
        Ok(made)
    }

    /// Calls a function whose last parameter is an `int` that the function writes.
    pub fn int(&self, name: &str, a: &[usize]) -> Result<i64, String> {
        let mut value: c_int = 0;
        let mut args = a.to_vec();
        args.push(std::ptr::from_mut(&mut value) as usize);
        self.call(name, &args)?;
        Ok(i64::from(value))
    }

    /// Calls a function whose last parameter is an `int`, or an `MPI_Count` in the form with large counts.
    pub fn count(&self, name: &str, width: CountWidth, a: &[usize]) -> Result<i64, String> {
        let mut value = 0i64;
        let mut args = a.to_vec();
        args.push(std::ptr::from_mut(&mut value) as usize);
        self.call_c(name, width, &args)?;
        Ok(if width == CountWidth::Large { value } else { i64::from(value as c_int) })
    }

    /// Calls a function whose only parameter is a handle that the function frees.
    pub fn free(&self, name: &str, mut handle: usize) -> Result<(), String> {
        self.call(name, &[std::ptr::from_mut(&mut handle) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_abi_tests::constant;

    #[test]
    fn constants_are_the_standards() {
        for (name, number) in NAMED {
            assert_eq!(constant(name), *number, "{name}");
        }
        for basic in crate::basic::all() {
            assert_eq!(
                constant(&format!("MPI_{}", basic.name())),
                basic.handle() as i64,
                "{basic}"
            );
        }
        for pair in crate::basic::PAIRS {
            assert_eq!(
                constant(&format!("MPI_{}", pair.name)),
                pair.handle as i64,
                "{}",
                pair.name
            );
        }
        for op in crate::reduce::PREDEFINED {
            assert_eq!(
                constant(&format!("MPI_{}", op.name())),
                op.handle() as i64,
                "{}",
                op.name()
            );
        }
    }

    #[test]
    fn a_status_has_the_standards_size() {
        assert_eq!(size_of::<CStatus>(), 32);
    }
}
