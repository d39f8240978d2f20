//! The Fortran bindings, as sources: `mpif.h`, the modules `mpi` and `mpi_f08`, and the C entry points behind them.
//!
//! Modules belong to a compiler and its version, so the sources are installed and `mpifort` builds them for the available
//! compiler. They use only the standard ABI, so any library that has this ABI works with them. All sources are generated from
//! the standard's data (`data`). One table (`kinds`) describes the conversion of parameters between the languages.

mod calls;
mod constants;
pub mod data;
mod entries;
mod interfaces;
mod kinds;
pub mod record;
mod sections;

pub use calls::{BindingForm, calls};
use entries::file;
use kinds::CallVariant;

/// A source file: its name and its text.
pub type FortranSource = (&'static str, String);

/// Returns all sources that `mpifort` builds, and `mpif.h`.
pub fn sources() -> Vec<FortranSource> {
    let procedures = data::procedures();
    let fixed = |text: &str| text.to_owned();
    vec![
        ("weft_fortran.h", fixed(include_str!("../runtime/weft_fortran.h"))),
        ("weft_weak.h", entries::weak(&procedures)),
        ("requests.c", fixed(include_str!("../runtime/requests.c"))),
        ("sections.c", fixed(include_str!("../runtime/sections.c"))),
        ("callbacks.c", fixed(include_str!("../runtime/callbacks.c"))),
        ("values.c", fixed(include_str!("../runtime/values.c"))),
        ("attributes.c", fixed(include_str!("../runtime/attributes.c"))),
        ("logicals.f90", fixed(include_str!("../runtime/logicals.f90"))),
        ("mpi.c", file(&procedures, CallVariant::Old)),
        ("mpi_f08.c", file(&procedures, CallVariant::New)),
        ("mpi_f08_large.c", file(&procedures, CallVariant::Large)),
        ("pmpi.c", entries::profiled("mpi.c")),
        ("pmpi_f08.c", entries::profiled("mpi_f08.c")),
        ("pmpi_f08_large.c", entries::profiled("mpi_f08_large.c")),
        ("mpif.h", constants::mpif(&procedures)),
        ("mpi_f08_types.f90", constants::types_module()),
        ("mpi_f08_callbacks.f90", interfaces::callbacks_module(&procedures)),
        ("mpi_f08.f90", interfaces::module(&procedures, CallVariant::New)),
        ("mpi.f90", interfaces::module(&procedures, CallVariant::Old)),
    ]
}

#[cfg(test)]
mod tests;
