//! Prints the adapters of this machine, with their names for [`VerbsOptions::devices`].
//!
//!     cargo run -p weft-fabric-verbs --example devices

use weft_fabric_verbs::{VerbsOptions, ports};

fn main() -> std::process::ExitCode {
    match ports(&VerbsOptions::default()) {
        Ok(ports) => {
            ports.iter().for_each(|port| println!("{port}"));
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
