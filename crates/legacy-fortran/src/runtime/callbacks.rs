//! Functions of Fortran that have a state: those of generalized requests and of data representations.

use super::NumberedHandle;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use weft_legacy::runtime::function_state::FunctionState;

/// The extra state of Fortran's functions.
pub struct ExtraState {
    pub value: isize,
    /// The program's variable, if the functions may change it.
    variable: Option<*mut isize>,
}

/// Fortran's functions with their state.
pub type VariableState = FunctionState<ExtraState>;

/// Makes a state with a value that the functions cannot change.
pub fn with_value(functions: [usize; 3], value: isize) -> *mut c_void {
    VariableState::leak(functions, ExtraState { value, variable: None })
}

/// Makes a state whose functions change the program's variable.
///
/// # Safety
/// `variable` may be read now, and written whenever a function is called.
pub unsafe fn with_variable(functions: [usize; 3], variable: *mut isize) -> *mut c_void {
    // SAFETY: the caller promises it.
    let value = unsafe { *variable };
    VariableState::leak(functions, ExtraState { value, variable: Some(variable) })
}

impl ExtraState {
    /// Runs a function with the state, which the function may change. If the state was an expression, its memory may be in other use:
    /// the variable is changed only if it still holds the state.
    ///
    /// # Safety
    /// The program's variable may be written.
    unsafe fn run(&mut self, function: impl FnOnce(*mut isize)) {
        let before = self.value;
        function(&raw mut self.value);
        let changed = self.variable.filter(|_| self.value != before);
        // SAFETY: the caller promises it.
        if let Some(variable) = changed.filter(|&variable| unsafe { *variable } == before) {
            // SAFETY: the program's variable may be written: the caller promises it.
            unsafe { variable.write(self.value) }
        }
    }
}

type Query = unsafe extern "C" fn(*mut isize, *mut c_int, *mut c_int);
type Free = unsafe extern "C" fn(*mut isize, *mut c_int);
type Cancel = unsafe extern "C" fn(*mut isize, *mut c_int, *mut c_int);
type Extent = unsafe extern "C" fn(*mut c_int, *mut isize, *mut isize, *mut c_int);
type ConvertRoutine = unsafe extern "C" fn(
    *mut c_void,
    *mut c_int,
    *mut c_int,
    *mut c_void,
    *mut i64,
    *mut isize,
    *mut c_int,
);

/// Calls Fortran's function that fills in the status of a generalized request.
///
/// # Safety
/// `state` is a [`VariableState`] with the functions of a generalized request.
pub unsafe extern "C" fn queried(state: *mut c_void, status: *mut c_int) -> c_int {
    let mut code = 0;
    // SAFETY: the caller promises it. A status has the same numbers in both languages.
    unsafe {
        let state = &mut *state.cast::<VariableState>();
        let query = transmute::<usize, Query>(state.functions[0]);
        state.extra.run(|extra| query(extra, status, &raw mut code));
    }
    code
}

/// Calls Fortran's function that frees a generalized request.
///
/// # Safety
/// As for [`queried`].
pub unsafe extern "C" fn freed(state: *mut c_void) -> c_int {
    let mut code = 0;
    // SAFETY: the caller promises it.
    unsafe {
        let state = &mut *state.cast::<VariableState>();
        let free = transmute::<usize, Free>(state.functions[1]);
        state.extra.run(|extra| free(extra, &raw mut code));
    }
    code
}

/// Calls Fortran's function that cancels a generalized request.
///
/// # Safety
/// As for [`queried`].
pub unsafe extern "C" fn cancelled(state: *mut c_void, mut complete: c_int) -> c_int {
    let mut code = 0;
    // SAFETY: the caller promises it.
    unsafe {
        let state = &mut *state.cast::<VariableState>();
        let cancel = transmute::<usize, Cancel>(state.functions[2]);
        state.extra.run(|extra| cancel(extra, &raw mut complete, &raw mut code));
    }
    code
}

/// Calls Fortran's function that returns the extent of a datatype in a file.
///
/// # Safety
/// `state` is a [`VariableState`] with the functions of a data representation; `extent` may be written.
pub unsafe extern "C" fn extended<D: NumberedHandle>(
    datatype: D,
    extent: *mut isize,
    state: *mut c_void,
) -> c_int {
    let (mut number, mut code) = (datatype.number(), 0);
    // SAFETY: the caller promises it.
    unsafe {
        let state = &mut *state.cast::<VariableState>();
        let function = transmute::<usize, Extent>(state.functions[2]);
        state.extra.run(|extra| function(&raw mut number, extent, extra, &raw mut code));
    }
    code
}

/// Calls Fortran's function that converts data: `WHICH` is 0 for reading and 1 for writing.
///
/// # Safety
/// As for [`extended`].
pub unsafe extern "C" fn converted<D: NumberedHandle, const WHICH: usize>(
    user: *mut c_void,
    datatype: D,
    mut count: c_int,
    file: *mut c_void,
    mut position: i64,
    state: *mut c_void,
) -> c_int {
    let (mut number, mut code) = (datatype.number(), 0);
    // SAFETY: the caller promises it.
    unsafe {
        let state = &mut *state.cast::<VariableState>();
        let convert = transmute::<usize, ConvertRoutine>(state.functions[WHICH]);
        let (number, count, position) = (&raw mut number, &raw mut count, &raw mut position);
        state.extra.run(|extra| convert(user, number, count, file, position, extra, &raw mut code));
    }
    code
}
