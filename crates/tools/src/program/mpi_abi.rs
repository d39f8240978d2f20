//! ABIs of MPI libraries, and symbols of MPI.

use std::fmt;

/// An ABI of MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MpiAbi {
    /// The ABI of MPI 5.0.
    Standard,
    /// MPICH's ABI, which Intel MPI, MVAPICH and Cray MPICH also have.
    Mpich,
    /// The ABI of Open MPI 2 to 5.
    OpenMpi,
    /// An ABI that Weft does not have.
    Other,
}

/// Names of the ABIs.
const NAMES: [(MpiAbi, &str); 4] = [
    (MpiAbi::Standard, "the standard ABI of MPI 5.0"),
    (MpiAbi::Mpich, "MPICH's ABI (also of Intel MPI, MVAPICH and Cray MPICH)"),
    (MpiAbi::OpenMpi, "Open MPI's ABI"),
    (MpiAbi::Other, "an ABI that Weft does not have"),
];

/// Beginning and end of the file names of libraries, with the ABI. The first entry that fits a name counts.
const LIBRARIES: [(&str, &str, MpiAbi); 11] = [
    ("libmpi_abi.so.", "", MpiAbi::Standard),
    ("libmpi", ".so.12", MpiAbi::Mpich),
    ("libpmpi", ".so.12", MpiAbi::Mpich),
    ("libmpi", ".so.40", MpiAbi::OpenMpi),
    ("libmpi.so", "", MpiAbi::Other),
    ("libmpich.so", "", MpiAbi::Other),
    ("libmpifort.so", "", MpiAbi::Other),
    ("libmpi_mpifh.so", "", MpiAbi::Other),
    ("libmpi_cxx.so", "", MpiAbi::Other),
    ("libmpi_f77.so", "", MpiAbi::Other),
    ("libmpi_f90.so", "", MpiAbi::Other),
];

/// Beginnings of the names that MPI libraries define.
const SYMBOLS: [&str; 24] = [
    "MPI_", "PMPI_", "MPIX_", "PMPIX_", "QMPI_", "mpi_", "pmpi_", "mpix_", "ompi_", "OMPI_",
    "MPIR_", "MPII_", "MPID_", "MPIO_", "MPIOI_", "ADIO_", "ADIOI_", "opal_", "orte_", "prte_",
    "PMIx_", "pmix_", "_ZN3MPI", "_ZNK3MPI",
];

/// Beginnings of the names of MPI functions in C and Fortran.
const FUNCTIONS: [&str; 6] = ["MPI_", "PMPI_", "MPIX_", "PMPIX_", "mpi_", "pmpi_"];

impl MpiAbi {
    /// Returns the ABI of a library with this file name. Returns `None` if the library is not MPI's.
    pub fn of(soname: &str) -> Option<MpiAbi> {
        let name = soname.rsplit('/').next().unwrap_or_default();
        let fits =
            |(begin, end, _): &&(&str, &str, _)| name.starts_with(begin) && name.ends_with(end);
        LIBRARIES.iter().find(fits).map(|&(_, _, abi)| abi)
    }
}

impl fmt::Display for MpiAbi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(abi, _)| abi == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

/// Returns true if the name may be a symbol of an MPI library.
pub fn is_symbol(name: &str) -> bool {
    SYMBOLS.iter().any(|begin| name.starts_with(begin))
}

/// Returns true if the name may be a function that the MPI standard or an extension defines.
pub fn is_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_their_file_names() {
        for (name, abi) in [
            ("libmpi_abi.so.1", Some(MpiAbi::Standard)),
            ("libmpi.so.12", Some(MpiAbi::Mpich)),
            ("libmpifort.so.12", Some(MpiAbi::Mpich)),
            ("/opt/x/libmpi.so.12", Some(MpiAbi::Mpich)),
            ("libmpi_usempi_ignore_tkr.so.40", Some(MpiAbi::OpenMpi)),
            ("libmpi_mpifh-gfortran.so.40", Some(MpiAbi::OpenMpi)),
            ("libmpi_cxx.so.40", Some(MpiAbi::OpenMpi)),
            ("libmpicxx.so.12", Some(MpiAbi::Mpich)),
            ("libmpi.so.20", Some(MpiAbi::Other)),
            ("libmpir.so.23", None),
            ("libc.so.6", None),
        ] {
            assert_eq!(MpiAbi::of(name), abi, "{name}");
        }
    }
}
