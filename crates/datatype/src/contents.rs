//! How a type was made: what `MPI_Type_get_envelope` and `MPI_Type_get_contents` give back.

use crate::Type;

/// The constructor. Values are the ABI's `MPI_COMBINER_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Combiner {
    Named = 101,
    Dup = 102,
    Contiguous = 103,
    Vector = 104,
    Hvector = 105,
    Indexed = 106,
    Hindexed = 107,
    IndexedBlock = 108,
    HindexedBlock = 109,
    Struct = 110,
    Subarray = 111,
    Darray = 112,
    F90Real = 113,
    F90Complex = 114,
    F90Integer = 115,
    Resized = 116,
    ValueIndex = 117,
}

/// Whether a constructor was called in its `int` form or as `..._c`: the two give their arguments
/// back in different arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Int,
    Large,
}

/// The arguments of a constructor in the standard's order (MPI 5.0, 5.1.13).
#[derive(Clone, Default)]
pub struct Contents {
    /// `array_of_integers`. Each fits in an `int` when the type was made by the `int` form.
    pub integers: Vec<i64>,
    /// `array_of_addresses`; empty for `..._c` constructors.
    pub addresses: Vec<i64>,
    /// `array_of_large_counts`; empty for `int` constructors.
    pub counts: Vec<i64>,
    /// `array_of_datatypes`.
    pub types: Vec<Type>,
}

impl Contents {
    /// Arguments that are plain integers in the `int` form and counts in the large one.
    pub(crate) fn sized(width: Width, arguments: impl IntoIterator<Item = i64>) -> Contents {
        let mut contents = Contents::default();
        match width {
            Width::Int => contents.integers.extend(arguments),
            Width::Large => contents.counts.extend(arguments),
        }
        contents
    }

    /// Arguments that are addresses in the `int` form and counts in the large one.
    pub(crate) fn placed(mut self, width: Width, places: impl IntoIterator<Item = i64>) -> Self {
        match width {
            Width::Int => self.addresses.extend(places),
            Width::Large => self.counts.extend(places),
        }
        self
    }

    pub(crate) fn of(mut self, types: &[Type]) -> Contents {
        self.types = types.to_vec();
        self
    }
}
