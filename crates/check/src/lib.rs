//! `libweft_check.so`: a layer between a program and the MPI library that names errors in the program's MPI calls.
//!
//! `mpiexec --check` loads it before the program's libraries, so each call `MPI_X` of the program comes here first and goes on as
//! `PMPI_X`. Without the option nothing of it is loaded, so it costs nothing. It uses the standard's C interface alone, and sends what
//! ranks compare on communicators of its own (`shadow`).
//!
//! The entry points, and what is known of their parameters, are generated from the standard's tables. A call is described by a
//! `CheckedCall`; its function has a `CallRole`, and the checks of a role are in `checker`.

mod call_site;
mod checker;
mod collective;
mod datatype;
mod finding;
mod function;
mod library;
mod marks;
mod memory_use;
mod objects;
mod poison;
mod poison_switch;
mod python;
mod report;
mod requests;
mod role;
mod shadow;
mod shared_reports;
mod signature;
mod slow;
mod suppress;
mod wait_clock;
mod window;

use call_site::call_site_entry;
use function::{ArgumentDirection, CheckedCall, Form, FunctionDescription, ParameterDescription};
use std::ffi::c_int;
use std::sync::OnceLock;

include!(concat!(env!("OUT_DIR"), "/functions.rs"));

/// Returns the role of a function.
fn role_of(index: usize) -> role::CallRole {
    static ROLES: OnceLock<Vec<role::CallRole>> = OnceLock::new();
    ROLES.get_or_init(|| FUNCTIONS.iter().map(role::role).collect())[index]
}

/// Calls the library's function.
///
/// # Safety
/// The arguments meet the function's preconditions.
unsafe fn forward(index: usize, arguments: &[usize]) -> c_int {
    static FORWARD: OnceLock<Vec<library::LibraryFunction>> = OnceLock::new();
    let all = FORWARD.get_or_init(|| {
        FUNCTIONS.iter().map(|function| library::LibraryFunction::new(function.name)).collect()
    });
    // SAFETY: the caller promises it.
    unsafe { all[index].call(arguments) }
}

/// Checks a call of the program, and passes it to the library.
///
/// # Safety
/// The program keeps MPI's rules for the arguments of function `index`.
unsafe fn intercept(index: usize, arguments: &[usize]) -> c_int {
    let address = call_site::return_address();
    // SAFETY: the caller promises it.
    if let Some(code) = unsafe { checker::fast_path::run(index, arguments, address) } {
        return code;
    }
    let function = &FUNCTIONS[index];
    let python = if checker::is_running() { python::site(address) } else { None };
    let site = python.unwrap_or_else(|| call_site::of(address));
    let call = CheckedCall { function, arguments, site };
    // SAFETY: the caller promises it.
    unsafe { checker::run(index, &call, role_of(index)) }
}
