//! Predefined datatypes, of which messages are made.

use std::fmt;

/// Meaning of the bytes, for reductions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Signed,
    Unsigned,
    Float,
    Complex,
    Byte,
    Logical,
    /// Characters and wide characters, which no reduction accepts.
    Text,
}

struct ElementInfo {
    name: &'static str,
    handle: usize,
    size: usize,
    class: Class,
}

const fn info(name: &'static str, handle: usize, size: usize, class: Class) -> ElementInfo {
    ElementInfo { name, handle, size, class }
}

// Without long double: a copy may leave out 6 of its 16 bytes.
const BASICS: &[ElementInfo] = &[
    info("CHAR", 0x243, 1, Class::Text),
    info("SIGNED_CHAR", 0x244, 1, Class::Signed),
    info("UNSIGNED_CHAR", 0x245, 1, Class::Unsigned),
    info("BYTE", 0x247, 1, Class::Byte),
    info("WCHAR", 0x23c, 4, Class::Text),
    info("SHORT", 0x208, 2, Class::Signed),
    info("INT", 0x209, 4, Class::Signed),
    info("LONG", 0x20a, 8, Class::Signed),
    info("LONG_LONG", 0x20b, 8, Class::Signed),
    info("UNSIGNED_SHORT", 0x20c, 2, Class::Unsigned),
    info("UNSIGNED", 0x20d, 4, Class::Unsigned),
    info("UNSIGNED_LONG", 0x20e, 8, Class::Unsigned),
    info("UNSIGNED_LONG_LONG", 0x20f, 8, Class::Unsigned),
    info("INT8_T", 0x240, 1, Class::Signed),
    info("UINT8_T", 0x241, 1, Class::Unsigned),
    info("INT16_T", 0x248, 2, Class::Signed),
    info("UINT16_T", 0x249, 2, Class::Unsigned),
    info("INT32_T", 0x250, 4, Class::Signed),
    info("UINT32_T", 0x251, 4, Class::Unsigned),
    info("INT64_T", 0x258, 8, Class::Signed),
    info("UINT64_T", 0x259, 8, Class::Unsigned),
    info("AINT", 0x201, 8, Class::Signed),
    info("COUNT", 0x202, 8, Class::Signed),
    info("OFFSET", 0x203, 8, Class::Signed),
    info("FLOAT", 0x210, 4, Class::Float),
    info("DOUBLE", 0x214, 8, Class::Float),
    info("C_FLOAT_COMPLEX", 0x212, 8, Class::Complex),
    info("C_DOUBLE_COMPLEX", 0x216, 16, Class::Complex),
    info("C_BOOL", 0x238, 1, Class::Logical),
];

/// A predefined datatype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementType(u8);

/// Returns all predefined datatypes.
pub fn all() -> impl Iterator<Item = ElementType> {
    (0..BASICS.len()).map(|i| ElementType(i as u8))
}

impl ElementType {
    /// Returns the datatype with this name, without `MPI_`.
    pub fn named(name: &str) -> ElementType {
        all().find(|b| b.name() == name).unwrap_or_else(|| panic!("no basic datatype {name}"))
    }

    fn info(self) -> &'static ElementInfo {
        &BASICS[usize::from(self.0)]
    }

    pub fn name(self) -> &'static str {
        self.info().name
    }

    pub fn handle(self) -> usize {
        self.info().handle
    }

    pub fn size(self) -> usize {
        self.info().size
    }

    pub fn class(self) -> Class {
        self.info().class
    }

    /// Returns its alignment in C.
    pub fn align(self) -> usize {
        if self.class() == Class::Complex { self.size() / 2 } else { self.size() }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A predefined pair of a value and an `int`, as C lays out the structure of both.
pub struct PairType {
    pub name: &'static str,
    pub handle: usize,
    pub first: &'static str,
    /// Displacement of the `int`, in bytes.
    pub second_at: i64,
    pub extent: i64,
}

pub const PAIRS: &[PairType] = &[
    PairType { name: "FLOAT_INT", handle: 0x228, first: "FLOAT", second_at: 4, extent: 8 },
    PairType { name: "DOUBLE_INT", handle: 0x229, first: "DOUBLE", second_at: 8, extent: 16 },
    PairType { name: "LONG_INT", handle: 0x22a, first: "LONG", second_at: 8, extent: 16 },
    PairType { name: "2INT", handle: 0x22b, first: "INT", second_at: 4, extent: 8 },
    PairType { name: "SHORT_INT", handle: 0x22c, first: "SHORT", second_at: 4, extent: 8 },
];
