//! libpmix, loaded at run time: the functions and structures of PMIx that a client needs, as in the standard (PMIx 4.1, chapters 3,
//! 5, 6 and 8; unchanged since version 2).

use std::ffi::{CStr, CString, OsString, c_char, c_int};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::{fs, ptr};

use libloading::Library;

use crate::BootstrapError;
use crate::privileged::path_of;

/// Setting that names the file of the library, for machines where the library is not found automatically.
pub const SETTING: &str = "WEFT_PMIX";

pub const SUCCESS: c_int = 0;
/// Value in place of a rank that means all processes of a job.
pub const RANK_WILDCARD: u32 = u32::MAX - 1;
/// Scope of a value that all processes may read.
pub const GLOBAL: u8 = 3;

// Kinds of values.
pub const BOOL: u16 = 1;
pub const STRING: u16 = 3;
pub const UINT32: u16 = 14;
pub const BYTE_OBJECT: u16 = 27;

// Names of attributes.
pub const JOB_SIZE: &CStr = c"pmix.job.size";
pub const APPNUM: &CStr = c"pmix.appnum";
pub const NODEID: &CStr = c"pmix.nodeid";
pub const COLLECT_DATA: &CStr = c"pmix.collect";
pub const IMMEDIATE: &CStr = c"pmix.immediate";
pub const OPTIONAL: &CStr = c"pmix.optional";

/// `pmix_proc_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Proc {
    pub nspace: [c_char; 256],
    pub rank: u32,
}

/// `pmix_byte_object_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ByteObject {
    pub bytes: *mut c_char,
    pub size: usize,
}

/// `pmix_envar_t`, the largest member of the union. It has no other use here.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Envar {
    envar: *mut c_char,
    value: *mut c_char,
    separator: c_char,
}

/// The union in `pmix_value_t`.
#[repr(C)]
pub union PmixData {
    pub flag: bool,
    pub uint32: u32,
    pub string: *mut c_char,
    pub bo: ByteObject,
    envar: Envar,
}

/// `pmix_value_t`.
#[repr(C)]
pub struct PmixValue {
    pub kind: u16,
    pub data: PmixData,
}

impl PmixValue {
    /// Makes a value of a kind; all other bytes are 0.
    fn of(kind: u16) -> PmixValue {
        let envar = Envar { envar: ptr::null_mut(), value: ptr::null_mut(), separator: 0 };
        PmixValue { kind, data: PmixData { envar } }
    }

    /// Makes a value that points to `bytes`.
    pub fn bytes(bytes: &[u8]) -> PmixValue {
        let mut value = PmixValue::of(BYTE_OBJECT);
        value.data.bo = ByteObject { bytes: bytes.as_ptr().cast_mut().cast(), size: bytes.len() };
        value
    }
}

/// `pmix_info_t`.
#[repr(C)]
pub struct PmixInfo {
    key: [c_char; 512],
    flags: u32,
    value: PmixValue,
}

impl PmixInfo {
    /// Makes a directive with the value true.
    pub fn on(name: &CStr) -> PmixInfo {
        let mut key = [0; 512];
        for (to, &from) in key.iter_mut().zip(name.to_bytes()) {
            *to = from as c_char;
        }
        let mut value = PmixValue::of(BOOL);
        value.data.flag = true;
        PmixInfo { key, flags: 0, value }
    }
}

/// Functions of the loaded library.
pub struct Api {
    pub init: unsafe extern "C" fn(*mut Proc, *mut PmixInfo, usize) -> c_int,
    pub put: unsafe extern "C" fn(u8, *const c_char, *mut PmixValue) -> c_int,
    pub commit: unsafe extern "C" fn() -> c_int,
    pub fence: unsafe extern "C" fn(*const Proc, usize, *const PmixInfo, usize) -> c_int,
    pub get: unsafe extern "C" fn(
        *const Proc,
        *const c_char,
        *const PmixInfo,
        usize,
        *mut *mut PmixValue,
    ) -> c_int,
    pub abort: unsafe extern "C" fn(c_int, *const c_char, *mut Proc, usize) -> c_int,
    pub finalize: unsafe extern "C" fn(*const PmixInfo, usize) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    /// The library. It is never unloaded, because it has threads.
    _library: ManuallyDrop<Library>,
}

impl Api {
    /// Loads the library. An error names the places that were searched.
    pub fn load() -> Result<Api, BootstrapError> {
        let set = path_of(SETTING);
        let places = set.map_or_else(places, |path| vec![path]);
        let mut tried = Vec::new();
        for place in &places {
            // SAFETY: `Library::new` runs the initialisers of libpmix. The user is responsible for a file that the setting names.
            match unsafe { Library::new(place) } {
                Ok(library) => return Api::new(library, place),
                Err(error) => tried.push(format!("{}: {error}", place.display())),
            }
        }
        Err(BootstrapError(format!(
            "the launcher speaks PMIx, and libpmix was not found. Install it (Debian: libpmix2), or \
             set {SETTING} to the file. Tried: {}",
            tried.join("; ")
        )))
    }

    fn new(library: Library, place: &OsString) -> Result<Api, BootstrapError> {
        /// Returns the function `name`. `T` must be its type.
        unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, libloading::Error> {
            // SAFETY: `get` needs the function's type, which the caller of `symbol` promises.
            unsafe { library.get::<T>(name.as_bytes()).map(|symbol| *symbol) }
        }
        let load = || -> Result<Api, libloading::Error> {
            // SAFETY: `symbol` needs the functions' types. The fields have the types of pmix.h.
            unsafe {
                Ok(Api {
                    init: symbol(&library, "PMIx_Init")?,
                    put: symbol(&library, "PMIx_Put")?,
                    commit: symbol(&library, "PMIx_Commit")?,
                    fence: symbol(&library, "PMIx_Fence")?,
                    get: symbol(&library, "PMIx_Get")?,
                    abort: symbol(&library, "PMIx_Abort")?,
                    finalize: symbol(&library, "PMIx_Finalize")?,
                    error_string: symbol(&library, "PMIx_Error_string")?,
                    _library: ManuallyDrop::new(library),
                })
            }
        };
        load().map_err(|error| {
            BootstrapError(format!(
                "{} is not a libpmix that Weft can use: {error}",
                place.display()
            ))
        })
    }

    /// Returns the library's text for an error.
    pub fn words(&self, code: c_int) -> String {
        // SAFETY: PMIx_Error_string accepts any number, and returns a static text or null.
        let text = unsafe { (self.error_string)(code) };
        if text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: the pointer is not null here, so it leads to a static text with a NUL.
        let text = unsafe { CStr::from_ptr(text) };
        format!("{} ({code})", text.to_string_lossy())
    }
}

/// Returns the places where the library may be, the best first.
fn places() -> Vec<OsString> {
    // The launcher's own library has the launcher's version, and needs no search path.
    let mut places: Vec<OsString> = of_a_launcher().map(Into::into).into_iter().collect();
    places.extend(["libpmix.so.2", "libpmix.so"].map(OsString::from));
    for name in ["PMIX_PREFIX", "PRTE_PREFIX", "OPAL_PREFIX"] {
        let Some(prefix) = path_of(name) else { continue };
        for folder in ["lib", "lib64", "lib/openmpi"] {
            places.push(PathBuf::from(&prefix).join(folder).join("libpmix.so.2").into());
        }
    }
    places
}

/// Returns the libpmix that an ancestor of this process uses, if its mappings are readable.
fn of_a_launcher() -> Option<PathBuf> {
    let mut pid = crate::launched_by_rank::parent(std::process::id() as i32)?;
    while pid > 1 {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
        let is_pmix =
            |path: &&str| path.rsplit('/').next().is_some_and(|n| n.starts_with("libpmix.so"));
        if let Some(path) = paths.into_iter().find(is_pmix) {
            return Some(path.into()).filter(|path: &PathBuf| path.exists());
        }
        pid = crate::launched_by_rank::parent(pid)?;
    }
    None
}

/// Converts a text for C, without its NULs.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::mem::{align_of, offset_of, size_of};
    use std::process::{Command, Stdio};

    /// Returns the sizes and offsets of this file, in the order in which the C program below prints them.
    fn ours() -> Vec<usize> {
        vec![
            size_of::<Proc>(),
            offset_of!(Proc, rank),
            size_of::<ByteObject>(),
            size_of::<PmixValue>(),
            offset_of!(PmixValue, data),
            align_of::<PmixValue>(),
            size_of::<PmixInfo>(),
            offset_of!(PmixInfo, flags),
            offset_of!(PmixInfo, value),
            RANK_WILDCARD as usize,
            usize::from(GLOBAL),
            usize::from(BOOL),
            usize::from(STRING),
            usize::from(UINT32),
            usize::from(BYTE_OBJECT),
        ]
    }

    const PROGRAM: &str = r#"
        #include <pmix.h>
        #include <stddef.h>
        #include <stdio.h>
        #define P(x) printf("%zu\n", (size_t)(x))
        int main(void) {
            P(sizeof(pmix_proc_t)); P(offsetof(pmix_proc_t, rank)); P(sizeof(pmix_byte_object_t));
            P(sizeof(pmix_value_t)); P(offsetof(pmix_value_t, data)); P(_Alignof(pmix_value_t));
            P(sizeof(pmix_info_t)); P(offsetof(pmix_info_t, flags)); P(offsetof(pmix_info_t, value));
            P((pmix_rank_t)(PMIX_RANK_WILDCARD)); P(PMIX_GLOBAL);
            P(PMIX_BOOL); P(PMIX_STRING); P(PMIX_UINT32); P(PMIX_BYTE_OBJECT);
            puts(PMIX_JOB_SIZE); puts(PMIX_APPNUM); puts(PMIX_NODEID);
            puts(PMIX_COLLECT_DATA); puts(PMIX_IMMEDIATE); puts(PMIX_OPTIONAL);
            (void)(pmix_status_t (*)(pmix_proc_t *, pmix_info_t *, size_t))PMIx_Init;
            return 0;
        }"#;

    #[test]
    fn layouts_and_numbers_are_those_of_the_header() {
        let folders = ["/usr/include", "/usr/lib/x86_64-linux-gnu/pmix2/include"];
        let Some(folder) = folders.iter().find(|f| PathBuf::from(f).join("pmix.h").exists()) else {
            println!("NOT RUN: no pmix.h (Debian: libpmix-dev)");
            return;
        };
        let program = std::env::temp_dir().join(format!("weft-pmix-{}", std::process::id()));
        let mut cc = Command::new("cc")
            .args(["-x", "c", "-", "-Wl,--unresolved-symbols=ignore-all", "-I", folder, "-o"])
            .arg(&program)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a C compiler");
        cc.stdin.take().unwrap().write_all(PROGRAM.as_bytes()).unwrap();
        assert!(cc.wait().unwrap().success());
        let output = Command::new(&program).output().unwrap();
        let _ = fs::remove_file(&program);
        let said = String::from_utf8(output.stdout).unwrap();
        let mut expected: Vec<String> = ours().iter().map(usize::to_string).collect();
        let names = [JOB_SIZE, APPNUM, NODEID, COLLECT_DATA, IMMEDIATE, OPTIONAL];
        expected.extend(names.map(|name| name.to_str().unwrap().to_owned()));
        assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_directive_has_its_name_and_is_on() {
        let info = PmixInfo::on(COLLECT_DATA);
        // SAFETY: the key is shorter than its array, so it ends with a zero.
        let name = unsafe { CStr::from_ptr(info.key.as_ptr()) };
        // SAFETY: the kind says which member was written.
        let on = unsafe { info.value.data.flag };
        assert_eq!((name, info.flags, info.value.kind, on), (COLLECT_DATA, 0, BOOL, true));
    }
}
