//! `libmpifort.so.12`, which Debian calls `libmpichfort.so.12`: Fortran programs of MPICH's ABI.

mod special;

weft_legacy_fortran::legacy_fortran_library! {
    use crate::special::{self, STATUS_NUMBERS};
    use weft_legacy_fortran::runtime::sections::{
        ArrayDescriptor, BufferElements, SectionCopies, DatatypeFunctions, SectionUse, SectionView,
    };
}
