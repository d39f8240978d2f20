//! Functions with faults, to check that faults are found.

use crate::signature::{HandleKind, Parameter, ParameterType, Signature};
use std::ffi::c_int;

/// Returns `int Planted_crash(MPI_Comm comm, int tag)` and two more functions of the same form.
pub fn functions() -> Vec<Signature> {
    let comm =
        Parameter { name: "comm", ty: ParameterType::Handle(HandleKind::Comm), constant: false };
    let tag = Parameter { name: "count", ty: ParameterType::Int, constant: false };
    let parameters = vec![comm, tag];
    let function = |name| Signature { name, parameters: parameters.clone(), returns_code: true };
    ["Planted_crash", "Planted_hang", "Planted_exit"].map(function).to_vec()
}

/// Returns the address of a planted function.
pub fn address(name: &str) -> Option<usize> {
    Some(match name {
        "Planted_crash" => crash as *const () as usize,
        "Planted_hang" => hang as *const () as usize,
        "Planted_exit" => exit as *const () as usize,
        _ => return None,
    })
}

const COMM_NULL: usize = 0x100;

/// Crashes on the null communicator. Accepts a freed communicator, which is wrong, too.
extern "C" fn crash(comm: usize, _: c_int) -> c_int {
    if comm == COMM_NULL {
        std::process::abort();
    }
    0
}

/// Never returns if the number is -1.
extern "C" fn hang(_: usize, number: c_int) -> c_int {
    if number == -1 {
        loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }
    1
}

/// Ends the process without a message if the number is -1.
extern "C" fn exit(_: usize, number: c_int) -> c_int {
    if number == -1 {
        std::process::exit(0);
    }
    1
}
