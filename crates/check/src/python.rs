//! Call sites in Python: the function, file and line of the Python code that calls an extension such as mpi4py.
//!
//! The interpreter's functions are looked up by name when MPI begins, so programs without Python pay nothing. A place has a call site of
//! its own: a hash of its words, which travels to other ranks. The words are in shared memory for the ranks of the host.

use crate::call_site::{CallSite, INTERPRETER, hash};
use crate::shared_reports;
use rustc_hash::FxHashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Module of the call sites in Python. No module of the loader has this hash.
const MODULE: u64 = 0x7079_7468_6f6e_2020;

/// Pointer to an object, a frame or a thread of the interpreter.
type PyPointer = *mut c_void;

/// Functions of the interpreter.
struct PythonApi {
    is_initialized: unsafe extern "C" fn() -> c_int,
    is_finalizing: unsafe extern "C" fn() -> c_int,
    this_thread: unsafe extern "C" fn() -> PyPointer,
    ensure: unsafe extern "C" fn() -> c_int,
    release: unsafe extern "C" fn(c_int),
    error: unsafe extern "C" fn() -> PyPointer,
    clear: unsafe extern "C" fn(),
    frame: unsafe extern "C" fn() -> PyPointer,
    line: unsafe extern "C" fn(PyPointer) -> c_int,
    code: unsafe extern "C" fn(PyPointer) -> PyPointer,
    attribute: unsafe extern "C" fn(PyPointer, *const c_char) -> PyPointer,
    text: unsafe extern "C" fn(PyPointer) -> *const c_char,
    forget: unsafe extern "C" fn(PyPointer),
}

/// Returns the address of a symbol of any module.
fn symbol(name: &CStr) -> Option<PyPointer> {
    // SAFETY: the name is a string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Looks up a function of the interpreter by its names, with its type.
macro_rules! function {
    ($name:expr, ($($argument:ty),*) $(-> $result:ty)?) => {
        // SAFETY: the interpreter's function has this type in all versions.
        unsafe {
            std::mem::transmute::<PyPointer, unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                $name.into_iter().find_map(symbol)?,
            )
        }
    };
}

impl PythonApi {
    fn find() -> Option<PythonApi> {
        Some(PythonApi {
            is_initialized: function!([c"Py_IsInitialized"], () -> c_int),
            is_finalizing: function!([c"Py_IsFinalizing", c"_Py_IsFinalizing"], () -> c_int),
            this_thread: function!([c"PyGILState_GetThisThreadState"], () -> PyPointer),
            ensure: function!([c"PyGILState_Ensure"], () -> c_int),
            release: function!([c"PyGILState_Release"], (c_int)),
            error: function!([c"PyErr_Occurred"], () -> PyPointer),
            clear: function!([c"PyErr_Clear"], ()),
            frame: function!([c"PyEval_GetFrame"], () -> PyPointer),
            line: function!([c"PyFrame_GetLineNumber"], (PyPointer) -> c_int),
            code: function!([c"PyFrame_GetCode"], (PyPointer) -> PyPointer),
            attribute: function!([c"PyObject_GetAttrString"], (PyPointer, *const c_char) -> PyPointer),
            text: function!([c"PyUnicode_AsUTF8"], (PyPointer) -> *const c_char),
            forget: function!([c"Py_DecRef"], (PyPointer)),
        })
    }

    /// Returns a copy of an attribute that is a string.
    ///
    /// # Safety
    /// This thread has the interpreter's lock, and `object` is an object.
    unsafe fn string(&self, object: PyPointer, name: &CStr) -> Option<String> {
        // SAFETY: the caller promises it. The text lives as long as the attribute.
        unsafe {
            let attribute = (self.attribute)(object, name.as_ptr());
            if attribute.is_null() {
                (self.clear)();
                return None;
            }
            let text = (self.text)(attribute);
            let copy =
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned());
            if copy.is_none() {
                (self.clear)();
            }
            (self.forget)(attribute);
            copy
        }
    }
}

/// The interpreter, if the process has one when MPI begins.
static PYTHON: OnceLock<Option<PythonApi>> = OnceLock::new();

/// A line of a code object, by the object's address.
type CodeLine = (usize, c_int);

/// Places that were seen.
#[derive(Default)]
struct PythonPlaces {
    /// Call sites by code object. The objects are never freed, so no other object gets the address.
    sites: FxHashMap<CodeLine, CallSite>,
    /// Words by the hash of a call site.
    words: FxHashMap<u64, String>,
    /// Return addresses, with true for those in an extension of the interpreter.
    extensions: FxHashMap<u64, bool>,
}

static PLACES: Mutex<Option<PythonPlaces>> = Mutex::new(None);

fn with<R>(f: impl FnOnce(&mut PythonPlaces) -> R) -> R {
    f(PLACES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// Looks for the interpreter. Returns true if there is one.
pub fn begin() -> bool {
    INTERPRETER.get_or_init(|| words);
    PYTHON.get_or_init(PythonApi::find).is_some()
}

/// Returns true if an address is in a module that the interpreter imports: one with an initialization of its name.
fn is_extension(address: u64) -> bool {
    // SAFETY: a description that is all zero is valid.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the result is a local variable. The name is a string of the loader, if there is one.
    let path = unsafe {
        if libc::dladdr(address as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return false;
        }
        CStr::from_ptr(info.dli_fname)
    };
    let path_text = path.to_string_lossy();
    let name = Path::new(&*path_text).file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default();
    let Ok(start) = CString::new(format!("PyInit_{stem}")) else { return false };
    // SAFETY: the module is loaded already, and both names are strings.
    unsafe {
        let module = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if module.is_null() {
            return false;
        }
        let is_there = !libc::dlsym(module, start.as_ptr()).is_null();
        libc::dlclose(module);
        is_there
    }
}

/// Returns the place in Python of the call with a return address, if an extension has made it.
pub fn site(address: u64) -> Option<CallSite> {
    let python = PYTHON.get()?.as_ref()?;
    let known = with(|places| places.extensions.get(&address).copied());
    let is_python = known.unwrap_or_else(|| {
        let is_python = is_extension(address);
        with(|places| places.extensions.insert(address, is_python));
        is_python
    });
    if !is_python {
        return None;
    }
    // SAFETY: the interpreter runs, and this thread is one of its threads. mpi4py has released the interpreter's lock. This thread has no
    // lock of ours while it waits for the interpreter's.
    unsafe {
        let is_ready = (python.is_initialized)() != 0
            && (python.is_finalizing)() == 0
            && !(python.this_thread)().is_null();
        if !is_ready {
            return None;
        }
        let state = (python.ensure)();
        let site = present_site(python);
        (python.release)(state);
        site
    }
}

/// Returns the place of the Python code that runs now.
///
/// # Safety
/// This thread has the interpreter's lock.
unsafe fn present_site(python: &PythonApi) -> Option<CallSite> {
    // SAFETY: the caller promises it. The frame is that of a function which runs.
    unsafe {
        let frame = (python.frame)();
        if frame.is_null() || !(python.error)().is_null() {
            return None;
        }
        let (code, line) = ((python.code)(frame), (python.line)(frame));
        let key = (code as usize, line);
        if let Some(site) = with(|places| places.sites.get(&key).copied()) {
            (python.forget)(code);
            return Some(site);
        }
        let name = [c"co_qualname", c"co_name"].into_iter().find_map(|n| python.string(code, n));
        let Some((name, file)) = name.zip(python.string(code, c"co_filename")) else {
            (python.forget)(code);
            return None;
        };
        let file =
            Path::new(&file).file_name().map_or(file.clone().into(), |f| f.to_string_lossy());
        let words = format!("{name} ({file}:{line})");
        let site = CallSite { module: MODULE, offset: hash(words.replace('/', " ").as_bytes()) };
        shared_reports::share_name(site.offset, &words);
        with(|places| {
            places.words.insert(site.offset, words);
            places.sites.insert(key, site);
        });
        Some(site)
    }
}

/// Returns the words for a call site in Python; `None` for any other call site.
pub fn words(site: &CallSite) -> Option<String> {
    if site.module != MODULE {
        return None;
    }
    let own = with(|places| places.words.get(&site.offset).cloned());
    let words = own.or_else(|| shared_reports::shared_name(site.offset));
    Some(words.unwrap_or_else(|| "a line of Python on another host".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_python_has_no_places() {
        assert!(!begin());
        assert_eq!(site(words as fn(&CallSite) -> Option<String> as usize as u64), None);
        assert_eq!(words(&CallSite { module: 1, offset: 2 }), None);
        let there = CallSite { module: MODULE, offset: 2 };
        assert_eq!(words(&there).as_deref(), Some("a line of Python on another host"));
    }
}
