//! The object to which a handle of the tool interface is bound (MPI 5.0, section 15.3.2): the address of a handle, whose kind is
//! that of the variable.

use super::standard::{constants, standard};
use super::{LegacyAbi, LegacyHandle};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Kinds of things that handles of the tool interface are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToolKind {
    Control,
    Performance,
    Event,
}

/// The address of an object's handle, as an argument.
pub struct ToolObject {
    standard: usize,
    /// The program's pointer, if it is passed as it is.
    user: Option<*mut c_void>,
}

impl ToolObject {
    /// Converts the handle behind `user`. A variable that does not exist, or that is bound to no object, gets the pointer as it is.
    ///
    /// # Safety
    /// `user` is NULL or points to a handle of the kind of the variable.
    pub unsafe fn new<A: LegacyAbi>(kind: ToolKind, index: c_int, user: *mut c_void) -> ToolObject {
        let as_it_is = ToolObject { standard: 0, user: Some(user) };
        if user.is_null() {
            return as_it_is;
        }
        // SAFETY: the handle is of the kind to which the variable is bound: the caller promises it.
        let standard = unsafe {
            match i64::from(binding(kind, index)) {
                constants::MPI_T_BIND_MPI_COMM => (*user.cast::<A::Comm>()).to_standard(),
                constants::MPI_T_BIND_MPI_DATATYPE => (*user.cast::<A::Datatype>()).to_standard(),
                constants::MPI_T_BIND_MPI_WIN => (*user.cast::<A::Win>()).to_standard(),
                constants::MPI_T_BIND_MPI_FILE => (*user.cast::<A::File>()).to_standard(),
                constants::MPI_T_BIND_MPI_SESSION => (*user.cast::<A::Session>()).to_standard(),
                // The library has no variables of other objects.
                _ => return as_it_is,
            }
        };
        ToolObject { standard, user: None }
    }

    /// Returns the address for the library.
    pub fn pass(&mut self) -> *mut c_void {
        self.user.unwrap_or((&raw mut self.standard).cast())
    }
}

/// Returns the kind of object to which a variable is bound, or 0 if there is no such variable.
fn binding(kind: ToolKind, index: c_int) -> c_int {
    let (mut bind, none, text) = (0, null_mut(), null_mut());
    let to = &raw mut bind;
    let standard = standard();
    // SAFETY: the library stores nothing where an argument is NULL (MPI 5.0, section 15.3.6).
    unsafe {
        match kind {
            ToolKind::Control => (standard.MPI_T_cvar_get_info)(
                index,
                text,
                none,
                none,
                null_mut(),
                null_mut(),
                text,
                none,
                to,
                none,
            ),
            ToolKind::Performance => (standard.MPI_T_pvar_get_info)(
                index,
                text,
                none,
                none,
                none,
                null_mut(),
                null_mut(),
                text,
                none,
                to,
                none,
                none,
                none,
            ),
            ToolKind::Event => (standard.MPI_T_event_get_info)(
                index,
                text,
                none,
                none,
                null_mut(),
                null_mut(),
                none,
                null_mut(),
                null_mut(),
                text,
                none,
                to,
            ),
        };
    }
    bind
}
