//! `libmpi_mpifh.so.40`: Fortran programs of Open MPI's ABI. `libmpi_usempif08.so.40` and `libmpi_usempi_ignore_tkr.so.40` are other
//! names of this library, and so are Debian's `libmpi_mpifh-gfortran.so.40` and the like: a loader takes files that are the same for
//! the same library.

mod special;

weft_legacy_fortran::legacy_fortran_library! {
    use crate::special::{self, STATUS_NUMBERS};
    use weft_legacy_fortran::runtime::PendingDuplicates;
    use weft_legacy_fortran::runtime::peers::{CommQueries, PeerGroup};

    static DUPLICATES: PendingDuplicates<c_int> =
        PendingDuplicates::new(|handle| Comm(handle).number());
}
