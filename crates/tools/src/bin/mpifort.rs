//! Compiles and links Fortran programs that use MPI.

use std::process::ExitCode;
use weft_tools::wrapper::{self, Language};

fn main() -> ExitCode {
    wrapper::main(Language::Fortran)
}
