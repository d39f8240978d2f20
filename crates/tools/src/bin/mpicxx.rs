//! Compiles and links C++ programs that use MPI.

use std::process::ExitCode;
use weft_tools::wrapper::{self, Language};

fn main() -> ExitCode {
    wrapper::main(Language::Cxx)
}
