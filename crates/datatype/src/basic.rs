//! The predefined datatypes of the MPI 5.0 ABI: handle, name, size, alignment and class.
//!
//! Handle values come from the standard's appendix "Predefined handles"; a handle is 0x200 to 0x2ff. Sizes of C types are the sizes
//! that the platform's C compiler uses. Fortran's default INTEGER, REAL and LOGICAL have 4 bytes and DOUBLE PRECISION has 8, as
//! with every current compiler without options.

/// A predefined datatype: its ABI handle minus 0x200.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Basic(u8);

/// Groups of types on which MPI defines reduction operators (MPI 5.0, 6.9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandClass {
    /// C integers, and also `MPI_CHAR`, as in all libraries.
    CInteger,
    /// `MPI_INTEGER` and its kinds of a fixed size.
    FortranInteger,
    /// Real numbers of C and of Fortran.
    Floating,
    /// Truth values of C, C++ and Fortran.
    Logical,
    /// Complex numbers of C, C++ and Fortran.
    Complex,
    /// `MPI_BYTE`: only bitwise operators reduce it.
    Byte,
    /// `MPI_AINT`, `MPI_COUNT`, `MPI_OFFSET`.
    MultiLanguage,
    /// Value and index, for `MPI_MINLOC` and `MPI_MAXLOC`.
    Pair,
    /// Types without reductions: characters and `MPI_PACKED`.
    Opaque,
}

/// Machine representation of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repr {
    /// Signed, 1 byte.
    I8,
    /// Signed, 2 bytes.
    I16,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 8 bytes.
    I64,
    /// Signed, 16 bytes.
    I128,
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Unsigned, 8 bytes.
    U64,
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// x87 extended precision: 10 bytes of 16 are used.
    F80,
    /// IEEE binary128.
    F128,
    /// A real and an imaginary part in IEEE binary16, 2 bytes each.
    ComplexF16,
    /// A real and an imaginary part of 4 bytes each.
    ComplexF32,
    /// A real and an imaginary part of 8 bytes each.
    ComplexF64,
    /// A real and an imaginary part in x87 extended, 16 bytes each.
    ComplexF80,
    /// A real and an imaginary part in IEEE binary128, 16 bytes each.
    ComplexF128,
    /// A truth value of 1 byte. Zero is false, as for the longer truth values.
    Bool8,
    /// A truth value of 2 bytes.
    Bool16,
    /// A truth value of 4 bytes.
    Bool32,
    /// A truth value of 8 bytes.
    Bool64,
    /// A truth value of 16 bytes.
    Bool128,
    /// Value and index, by their handles minus 0x200.
    Pair(u8, u8),
    /// Bytes on which no arithmetic is defined.
    Bytes,
}

#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    size: u8,
    align: u8,
    class: OperandClass,
    repr: Repr,
}

#[cfg(target_arch = "x86_64")]
const LONG_DOUBLE: (Repr, Repr) = (Repr::F80, Repr::ComplexF80);
#[cfg(not(target_arch = "x86_64"))]
const LONG_DOUBLE: (Repr, Repr) = (Repr::F128, Repr::ComplexF128);

const CHAR: Repr = if std::ffi::c_char::MIN == 0 { Repr::U8 } else { Repr::I8 };

const fn e(name: &'static str, size: u8, class: OperandClass, repr: Repr) -> Option<Entry> {
    Some(Entry { name, size, align: size, class, repr })
}

/// Makes an entry whose alignment is given separately. A complex number is aligned like its parts, and a pair is aligned like a C
/// struct of its members.
const fn parts(
    name: &'static str,
    size: u8,
    align: u8,
    class: OperandClass,
    repr: Repr,
) -> Option<Entry> {
    Some(Entry { name, size, align, class, repr })
}

#[rustfmt::skip]
const TABLE: [Option<Entry>; 256] = {
    use OperandClass::*;
    use Repr::*;
    let mut t = [None; 256];
    t[0x01] = e("MPI_AINT", 8, MultiLanguage, I64);
    t[0x02] = e("MPI_COUNT", 8, MultiLanguage, I64);
    t[0x03] = e("MPI_OFFSET", 8, MultiLanguage, I64);
    t[0x07] = e("MPI_PACKED", 1, Opaque, Bytes);
    t[0x08] = e("MPI_SHORT", 2, CInteger, I16);
    t[0x09] = e("MPI_INT", 4, CInteger, I32);
    t[0x0a] = e("MPI_LONG", 8, CInteger, I64);
    t[0x0b] = e("MPI_LONG_LONG_INT", 8, CInteger, I64);
    t[0x0c] = e("MPI_UNSIGNED_SHORT", 2, CInteger, U16);
    t[0x0d] = e("MPI_UNSIGNED", 4, CInteger, U32);
    t[0x0e] = e("MPI_UNSIGNED_LONG", 8, CInteger, U64);
    t[0x0f] = e("MPI_UNSIGNED_LONG_LONG", 8, CInteger, U64);
    t[0x10] = e("MPI_FLOAT", 4, Floating, F32);
    t[0x12] = parts("MPI_C_COMPLEX", 8, 4, Complex, ComplexF32);
    t[0x13] = parts("MPI_CXX_FLOAT_COMPLEX", 8, 4, Complex, ComplexF32);
    t[0x14] = e("MPI_DOUBLE", 8, Floating, F64);
    t[0x16] = parts("MPI_C_DOUBLE_COMPLEX", 16, 8, Complex, ComplexF64);
    t[0x17] = parts("MPI_CXX_DOUBLE_COMPLEX", 16, 8, Complex, ComplexF64);
    t[0x18] = e("MPI_LOGICAL", 4, Logical, Bool32);
    t[0x19] = e("MPI_INTEGER", 4, FortranInteger, I32);
    t[0x1a] = e("MPI_REAL", 4, Floating, F32);
    t[0x1b] = parts("MPI_COMPLEX", 8, 4, Complex, ComplexF32);
    t[0x1c] = e("MPI_DOUBLE_PRECISION", 8, Floating, F64);
    t[0x1d] = parts("MPI_DOUBLE_COMPLEX", 16, 8, Complex, ComplexF64);
    t[0x1e] = e("MPI_CHARACTER", 1, Opaque, Bytes);
    t[0x20] = e("MPI_LONG_DOUBLE", 16, Floating, LONG_DOUBLE.0);
    t[0x24] = parts("MPI_C_LONG_DOUBLE_COMPLEX", 32, 16, Complex, LONG_DOUBLE.1);
    t[0x25] = parts("MPI_CXX_LONG_DOUBLE_COMPLEX", 32, 16, Complex, LONG_DOUBLE.1);
    t[0x28] = parts("MPI_FLOAT_INT", 8, 4, OperandClass::Pair, Repr::Pair(0x10, 0x09));
    t[0x29] = parts("MPI_DOUBLE_INT", 12, 8, OperandClass::Pair, Repr::Pair(0x14, 0x09));
    t[0x2a] = parts("MPI_LONG_INT", 12, 8, OperandClass::Pair, Repr::Pair(0x0a, 0x09));
    t[0x2b] = parts("MPI_2INT", 8, 4, OperandClass::Pair, Repr::Pair(0x09, 0x09));
    t[0x2c] = parts("MPI_SHORT_INT", 6, 4, OperandClass::Pair, Repr::Pair(0x08, 0x09));
    t[0x2d] = parts("MPI_LONG_DOUBLE_INT", 20, 16, OperandClass::Pair, Repr::Pair(0x20, 0x09));
    t[0x30] = parts("MPI_2REAL", 8, 4, OperandClass::Pair, Repr::Pair(0x1a, 0x1a));
    t[0x31] = parts("MPI_2DOUBLE_PRECISION", 16, 8, OperandClass::Pair, Repr::Pair(0x1c, 0x1c));
    t[0x32] = parts("MPI_2INTEGER", 8, 4, OperandClass::Pair, Repr::Pair(0x19, 0x19));
    t[0x38] = e("MPI_C_BOOL", 1, Logical, Bool8);
    t[0x39] = e("MPI_CXX_BOOL", 1, Logical, Bool8);
    t[0x3c] = e("MPI_WCHAR", 4, Opaque, Bytes);
    t[0x40] = e("MPI_INT8_T", 1, CInteger, I8);
    t[0x41] = e("MPI_UINT8_T", 1, CInteger, U8);
    t[0x43] = e("MPI_CHAR", 1, CInteger, CHAR);
    t[0x44] = e("MPI_SIGNED_CHAR", 1, CInteger, I8);
    t[0x45] = e("MPI_UNSIGNED_CHAR", 1, CInteger, U8);
    t[0x47] = e("MPI_BYTE", 1, Byte, U8);
    t[0x48] = e("MPI_INT16_T", 2, CInteger, I16);
    t[0x49] = e("MPI_UINT16_T", 2, CInteger, U16);
    t[0x50] = e("MPI_INT32_T", 4, CInteger, I32);
    t[0x51] = e("MPI_UINT32_T", 4, CInteger, U32);
    t[0x58] = e("MPI_INT64_T", 8, CInteger, I64);
    t[0x59] = e("MPI_UINT64_T", 8, CInteger, U64);
    t[0xc0] = e("MPI_LOGICAL1", 1, Logical, Bool8);
    t[0xc1] = e("MPI_INTEGER1", 1, FortranInteger, I8);
    t[0xc8] = e("MPI_LOGICAL2", 2, Logical, Bool16);
    t[0xc9] = e("MPI_INTEGER2", 2, FortranInteger, I16);
    t[0xca] = e("MPI_REAL2", 2, Floating, F16);
    t[0xd0] = e("MPI_LOGICAL4", 4, Logical, Bool32);
    t[0xd1] = e("MPI_INTEGER4", 4, FortranInteger, I32);
    t[0xd2] = e("MPI_REAL4", 4, Floating, F32);
    t[0xd3] = parts("MPI_COMPLEX4", 4, 2, Complex, ComplexF16);
    t[0xd8] = e("MPI_LOGICAL8", 8, Logical, Bool64);
    t[0xd9] = e("MPI_INTEGER8", 8, FortranInteger, I64);
    t[0xda] = e("MPI_REAL8", 8, Floating, F64);
    t[0xdb] = parts("MPI_COMPLEX8", 8, 4, Complex, ComplexF32);
    t[0xe0] = e("MPI_LOGICAL16", 16, Logical, Bool128);
    t[0xe1] = e("MPI_INTEGER16", 16, FortranInteger, I128);
    t[0xe2] = e("MPI_REAL16", 16, Floating, F128);
    t[0xe3] = parts("MPI_COMPLEX16", 16, 8, Complex, ComplexF64);
    t[0xeb] = parts("MPI_COMPLEX32", 32, 16, Complex, ComplexF128);
    t
};

impl Basic {
    /// `MPI_BYTE`: 8 bits that are never converted.
    pub const BYTE: Basic = Basic(0x47);
    /// `MPI_CHAR`: a C character, which this library reduces as an integer.
    pub const CHAR: Basic = Basic(0x43);
    /// `MPI_INT`: C's `int`, 4 bytes.
    pub const INT: Basic = Basic(0x09);
    /// `MPI_FLOAT`: C's `float`, 4 bytes.
    pub const FLOAT: Basic = Basic(0x10);
    /// `MPI_DOUBLE`: C's `double`, 8 bytes.
    pub const DOUBLE: Basic = Basic(0x14);
    /// `MPI_PACKED`: bytes that `MPI_Pack` has written.
    pub const PACKED: Basic = Basic(0x07);

    /// Returns the predefined type of an ABI handle. `None` for `MPI_DATATYPE_NULL` and for values that the standard leaves
    /// free.
    #[inline]
    pub const fn of_handle(handle: u32) -> Option<Basic> {
        if handle >> 8 != 2 || TABLE[(handle & 0xff) as usize].is_none() {
            return None;
        }
        Some(Basic((handle & 0xff) as u8))
    }

    /// Returns all predefined types, in the order of handles.
    pub fn all() -> impl Iterator<Item = Basic> {
        (0x200..0x300).filter_map(Basic::of_handle)
    }

    #[inline]
    const fn entry(self) -> &'static Entry {
        const ENTRIES: &[Option<Entry>; 256] = &TABLE;
        match &ENTRIES[self.0 as usize] {
            Some(entry) => entry,
            None => unreachable!(),
        }
    }

    /// Returns the ABI handle.
    pub const fn handle(self) -> u32 {
        0x200 + self.0 as u32
    }

    /// Returns the name that `MPI_Type_get_name` gives, such as `"MPI_INT"`. If a handle has two names, returns the first name in
    /// the standard's table (3.2.2), which calls the second name a synonym. So the results are `MPI_LONG_LONG_INT` and
    /// `MPI_C_COMPLEX`.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the number of bytes of data (`MPI_Type_size`), for example 12 for `MPI_DOUBLE_INT`.
    #[inline]
    pub const fn size(self) -> usize {
        self.entry().size as usize
    }

    /// Returns the alignment, in bytes, that the C or Fortran compiler gives this type.
    pub const fn align(self) -> usize {
        self.entry().align as usize
    }

    /// Returns the number of bytes from one element of an array to the next, for example 16 for `MPI_DOUBLE_INT`.
    #[inline]
    pub const fn extent(self) -> usize {
        match self.index_offset() {
            Some((offset, index)) => (offset + index.size()).next_multiple_of(self.align()),
            None => self.size(),
        }
    }

    /// Returns the class of this type. The class decides which operators are defined for the type.
    #[inline]
    pub const fn class(self) -> OperandClass {
        self.entry().class
    }

    /// Returns the representation of a value. Arithmetic and conversion depend on the representation.
    #[inline]
    pub const fn repr(self) -> Repr {
        self.entry().repr
    }

    /// Returns the two members of a pair type.
    #[inline]
    pub const fn pair(self) -> Option<(Basic, Basic)> {
        match self.entry().repr {
            Repr::Pair(value, index) => Some((Basic(value), Basic(index))),
            _ => None,
        }
    }

    /// Returns the predefined pair type of these members, if there is one (`MPI_Type_get_value_index`).
    pub fn value_index(value: Basic, index: Basic) -> Option<Basic> {
        Basic::all().find(|basic| basic.pair() == Some((value, index)))
    }

    /// Returns the offset of a pair's index in memory, in bytes, and the index's type.
    #[inline]
    pub const fn index_offset(self) -> Option<(usize, Basic)> {
        match self.pair() {
            Some((value, index)) => Some((value.size().next_multiple_of(index.align()), index)),
            None => None,
        }
    }

    /// Returns the number of bytes from the start of an element to the end of its data.
    pub const fn true_extent(self) -> usize {
        match self.index_offset() {
            Some((offset, index)) => offset + index.size(),
            None => self.size(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Basic {
        Basic::all().find(|b| b.name() == name).expect(name)
    }

    #[test]
    fn handles_of_fixed_size_types_say_their_size() {
        // MPI 5.0, appendix A: in the handle of a fixed-size type, bits 3 to 5 are the binary logarithm of the size of the type.
        for basic in Basic::all().filter(|b| b.handle() & 0x2c0 >= 0x240) {
            assert_eq!(basic.size(), 1 << (basic.handle() >> 3 & 7), "{}", basic.name());
        }
    }

    #[test]
    fn pairs_are_placed_as_c_structs() {
        #[repr(C)]
        struct P<A, B>(A, B);
        let cases = [
            ("MPI_FLOAT_INT", size_of::<P<f32, i32>>(), 8, 4),
            ("MPI_DOUBLE_INT", size_of::<P<f64, i32>>(), 12, 8),
            ("MPI_LONG_INT", size_of::<P<i64, i32>>(), 12, 8),
            ("MPI_2INT", size_of::<P<i32, i32>>(), 8, 4),
            ("MPI_SHORT_INT", size_of::<P<i16, i32>>(), 6, 4),
            ("MPI_LONG_DOUBLE_INT", 32, 20, 16),
            ("MPI_2DOUBLE_PRECISION", 16, 16, 8),
        ];
        for (name, extent, size, index) in cases {
            let basic = of(name);
            assert_eq!((basic.extent(), basic.size()), (extent, size), "{name}");
            assert_eq!(basic.index_offset().map(|x| x.0), Some(index), "{name}");
            let (value, index) = basic.pair().unwrap();
            assert_eq!(Basic::value_index(value, index), Some(basic), "{name}");
        }
        assert_eq!(Basic::value_index(Basic::INT, Basic::DOUBLE), None);
    }

    #[test]
    fn values_that_are_no_predefined_type_are_refused() {
        for handle in [0, 0x200, 0x204, 0x211, 0x1ff, 0x300, 0x1209, u32::MAX] {
            assert_eq!(Basic::of_handle(handle), None, "{handle:#x}");
        }
        assert_eq!(Basic::of_handle(0x209), Some(Basic::INT));
        assert_eq!(Basic::all().count(), 70);
    }
}
