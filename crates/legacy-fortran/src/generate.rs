//! Writes the entry points of one older ABI as Rust.

mod argument;
mod entry;
mod entry_point;
mod handles;
mod modern;
mod removed;
mod sizes;

use std::path::Path;
use std::process::Command;
use weft_abi_data::rows;
use weft_fortran::data::{Procedure, procedures};

/// An older ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OlderBinding {
    /// MPICH's: handles are the same numbers in both languages, except those of files.
    Mpich,
    /// Open MPI's: handles are numbers in Fortran and addresses in C.
    OpenMpi,
}

/// A constant of the older ABI in C and in Fortran.
struct BindingConstant {
    name: String,
    c: Option<i64>,
    fortran: Option<i64>,
}

/// The data from which the entry points of one older ABI are generated.
struct BindingSource {
    target: OlderBinding,
    procedures: Vec<Procedure>,
    constants: Vec<BindingConstant>,
}

impl BindingSource {
    fn read(target: OlderBinding, crates: &Path) -> BindingSource {
        let all = rows::<7>(&crates.join("legacy/data/legacy.csv"));
        let constants =
            all.into_iter().map(|[name, _, mpich, mpich_fortran, open, _, open_fortran]| {
                let (c, fortran) = match target {
                    OlderBinding::Mpich => (mpich, mpich_fortran),
                    OlderBinding::OpenMpi => (open, open_fortran),
                };
                BindingConstant { name, c: c.parse().ok(), fortran: fortran.parse().ok() }
            });
        BindingSource { target, constants: constants.collect(), procedures: procedures() }
    }

    fn constant(&self, name: &str) -> &BindingConstant {
        self.constants
            .iter()
            .find(|c| c.name == name)
            .unwrap_or_else(|| panic!("no constant {name}"))
    }

    /// Returns a constant's value in C.
    fn c(&self, name: &str) -> i64 {
        self.constant(name).c.unwrap_or_else(|| panic!("{name} is no number in C"))
    }

    /// Returns true if C has Fortran's numbers as handles of a class.
    fn is_number(&self, class: &str) -> bool {
        self.target == OlderBinding::Mpich && class != "File"
    }
}

/// Returns the text of a library's generated module. `crates` is the folder of all crates.
pub fn library(target: OlderBinding, crates: &Path) -> String {
    let source = BindingSource::read(target, crates);
    let mut out = handles::write(&source);
    out += &entry::write(&source);
    out += &removed::write(&source);
    out += &modern::write(&source);
    out + &sizes::write(&source)
}

/// Tells the linker the library's name, and that the library needs `face`. The library is linked with an empty library of that name:
/// the loader resolves the C functions.
pub fn link(out: &Path, name: &str, face: &str) {
    let (code, empty) = (out.join("empty.c"), out.join(face));
    std::fs::write(&code, "").expect("writing empty.c");
    let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    compiler.args(["-shared", "-nostdlib"]).arg(format!("-Wl,-soname,{face}"));
    let status = compiler.arg("-o").arg(&empty).arg(&code).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "the C compiler cannot link {face}; set CC to a C compiler"
    );
    let empty = empty.display();
    for argument in [
        format!("-Wl,-soname,{name}"),
        "-Wl,--no-as-needed".into(),
        format!("{empty}"),
        "-Wl,-rpath,$ORIGIN".into(),
    ] {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}
