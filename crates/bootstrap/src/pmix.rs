//! PMIx, the interface of PRRTE's `prterun`, of Open MPI's `mpirun`, and of `srun --mpi=pmix`,
//! through libpmix.

mod library;

use std::ffi::{CStr, c_char};
use std::{ptr, slice};

use crate::BootstrapError;
use crate::member::{Facts, LauncherMember, Space};

pub use library::SETTING;
use library::{Api, PmixInfo, PmixValue, Proc, c_text};

/// A process of a job whose launcher speaks PMIx.
pub(crate) struct Pmix {
    api: Api,
    me: Proc,
}

/// A value that the library has allocated. Dropping it frees the value as PMIX_VALUE_RELEASE does.
struct Received(*mut PmixValue);

impl Received {
    fn number(&self) -> Option<u32> {
        // SAFETY: the library filled in the value, and `kind` names the member that is read.
        unsafe { ((*self.0).kind == library::UINT32).then(|| (*self.0).data.uint32) }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        // SAFETY: the library filled in the value, and `kind` names the member that is read.
        let object =
            unsafe { ((*self.0).kind == library::BYTE_OBJECT).then(|| (*self.0).data.bo)? };
        if object.bytes.is_null() || object.size == 0 {
            return Some(Vec::new());
        }
        // SAFETY: the library reports `size` bytes at `bytes`, which live as long as the value.
        Some(unsafe { slice::from_raw_parts(object.bytes.cast::<u8>(), object.size) }.to_vec())
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // SAFETY: `free` needs memory of malloc. The library allocated the value and its bytes by malloc, and passed on the
        // ownership.
        unsafe {
            match (*self.0).kind {
                library::BYTE_OBJECT => libc::free((*self.0).data.bo.bytes.cast()),
                library::STRING => libc::free((*self.0).data.string.cast()),
                // Values of other kinds are not requested. Memory that they point to is not freed.
                _ => {}
            }
            libc::free(self.0.cast());
        }
    }
}

/// Joins the job that libpmix finds in the environment.
pub(crate) fn join() -> Result<LauncherMember<Pmix>, BootstrapError> {
    let api = Api::load()?;
    let mut me = Proc { nspace: [0; 256], rank: 0 };
    // SAFETY: PMIx_Init writes `me`, and reads no directives.
    let code = unsafe { (api.init)(&mut me, ptr::null_mut(), 0) };
    if code != library::SUCCESS {
        return Err(BootstrapError(format!(
            "joining the job (PMIx): PMIx_Init says {}. If the launcher has ended, unset PMIX_RANK \
             and PMIX_NAMESPACE to run the program without a launcher",
            api.words(code)
        )));
    }
    let pmix = Pmix { api, me };
    let size = pmix.value(library::RANK_WILDCARD, library::JOB_SIZE, None)?;
    let size = size.and_then(|size| size.number()).ok_or_else(|| {
        BootstrapError("joining the job (PMIx): the launcher sent no number of processes".into())
    })? as usize;
    let optional = PmixInfo::on(library::OPTIONAL);
    let number = |rank: u32, name: &CStr| {
        let value = pmix.value(rank, name, Some(&optional)).ok().flatten();
        value.and_then(|value| value.number()).map(|number| number as usize)
    };
    let placed: Option<Vec<usize>> =
        (0..size as u32).map(|rank| number(rank, library::NODEID)).collect();
    let app = number(me.rank, library::APPNUM);
    // SAFETY: the library ends the name with a zero: it fits 255 bytes and the zero.
    let job = unsafe { CStr::from_ptr(me.nspace.as_ptr()) }.to_string_lossy().into_owned();
    LauncherMember::join(pmix, Facts { rank: me.rank as usize, size, job, app }, placed)
}

impl Pmix {
    /// Returns a value of `rank`; `None` if the library does not have the value.
    fn value(
        &self,
        rank: u32,
        key: &CStr,
        directive: Option<&PmixInfo>,
    ) -> Result<Option<Received>, BootstrapError> {
        /// PMIX_ERR_NOT_FOUND, and the codes of PMIx 3 and 4 for a process without values.
        const UNKNOWN: [i32; 3] = [-46, -49, -13];
        let owner = Proc { rank, ..self.me };
        let mut value = ptr::null_mut();
        let (info, count) = directive.map_or((ptr::null(), 0), |info| (ptr::from_ref(info), 1));
        // SAFETY: PMIx_Get reads `owner`, the key and `count` directives, and writes `value`. All of them are alive.
        let code = unsafe { (self.api.get)(&owner, key.as_ptr(), info, count, &mut value) };
        if code == library::SUCCESS && !value.is_null() {
            return Ok(Some(Received(value)));
        }
        if UNKNOWN.contains(&code) {
            return Ok(None);
        }
        self.check(&format!("get of {key:?} of rank {rank}"), code).map(|()| None)
    }

    fn check(&self, doing: &str, code: i32) -> Result<(), BootstrapError> {
        if code == library::SUCCESS {
            return Ok(());
        }
        Err(BootstrapError(format!("{doing}: PMIx says {}", self.api.words(code))))
    }
}

impl Space for Pmix {
    fn put(&mut self, _rank: usize, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        let name = c_text(&format!("weft.{key}"));
        let mut value = PmixValue::bytes(value);
        // SAFETY: the library copies the value.
        let code = unsafe { (self.api.put)(library::GLOBAL, name.as_ptr(), &mut value) };
        self.check(&format!("put of {key:?}"), code)
    }

    fn get(&mut self, rank: usize, key: &str) -> Result<Option<Vec<u8>>, BootstrapError> {
        let name = c_text(&format!("weft.{key}"));
        // The fence has brought all data, so a missing value will not come later.
        let immediate = PmixInfo::on(library::IMMEDIATE);
        let value = self.value(rank as u32, &name, Some(&immediate))?;
        Ok(value.and_then(|value| value.bytes()))
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        // SAFETY: PMIx_Commit has no arguments and may be called after PMIx_Init.
        let code = unsafe { (self.api.commit)() };
        self.check("fence (PMIx_Commit)", code)?;
        let collect = PmixInfo::on(library::COLLECT_DATA);
        // SAFETY: PMIx_Fence reads one directive, which is alive. No list of processes means all of the job.
        let code = unsafe { (self.api.fence)(ptr::null(), 0, &collect, 1) };
        self.check("fence", code)
    }

    fn finalize(&mut self) -> Result<(), BootstrapError> {
        // SAFETY: PMIx_Finalize reads no directives. The library is not used afterwards.
        let code = unsafe { (self.api.finalize)(ptr::null(), 0) };
        self.check("finalize", code)
    }

    fn abort(&mut self, code: i32, _message: &str) {
        let nobody: *const c_char = ptr::null();
        // SAFETY: PMIx_Abort accepts no message, and no list of processes, which means all of the job.
        unsafe { (self.api.abort)(code, nobody, ptr::null_mut(), 0) };
    }
}

// SAFETY: the pointers are functions of a library that any thread may call.
unsafe impl Send for Pmix {}
