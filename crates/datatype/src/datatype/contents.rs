//! Records of type construction, for `MPI_Type_get_envelope` and `MPI_Type_get_contents`.

use crate::Type;

/// The constructor of a type. Values are the ABI's `MPI_COMBINER_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Combiner {
    /// A predefined type, which no constructor has made.
    Named = 101,
    /// `MPI_Type_dup`: another handle for an equal type.
    Dup = 102,
    /// `MPI_Type_contiguous`: elements one after another.
    Contiguous = 103,
    /// `MPI_Type_vector`: equal blocks, their stride in elements.
    Vector = 104,
    /// `MPI_Type_create_hvector`: equal blocks, their stride in bytes.
    Hvector = 105,
    /// `MPI_Type_indexed`: blocks of any length, displacements in elements.
    Indexed = 106,
    /// `MPI_Type_create_hindexed`: blocks of any length, displacements in bytes.
    Hindexed = 107,
    /// `MPI_Type_create_indexed_block`: blocks of one length, displacements in elements.
    IndexedBlock = 108,
    /// `MPI_Type_create_hindexed_block`: blocks of one length, displacements in bytes.
    HindexedBlock = 109,
    /// `MPI_Type_create_struct`: blocks of different types, displacements in bytes.
    Struct = 110,
    /// `MPI_Type_create_subarray`: a rectangular part of an array.
    Subarray = 111,
    /// `MPI_Type_create_darray`: one process's part of a distributed array.
    Darray = 112,
    /// `MPI_Type_create_f90_real`: a real number of a precision and range.
    F90Real = 113,
    /// `MPI_Type_create_f90_complex`: a complex number of a precision and range.
    F90Complex = 114,
    /// `MPI_Type_create_f90_integer`: an integer of a range.
    F90Integer = 115,
    /// `MPI_Type_create_resized`: other bounds around the data.
    Resized = 116,
    /// `MPI_Type_get_value_index`: a value with its index.
    ValueIndex = 117,
}

/// Form of a constructor's call: the `int` form or the `..._c` form. `MPI_Type_get_contents` returns the arguments of the two forms
/// in different arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// The `int` form: counts are `int`s, and addresses are in a separate array.
    Int,
    /// The `..._c` form: counts and displacements are `MPI_Count`s.
    Large,
}

/// The arguments of a constructor in the standard's order (MPI 5.0, 5.1.13).
#[derive(Clone, Default)]
pub struct Contents {
    /// `array_of_integers`. Each value fits in an `int` if the type was made by the `int` form.
    pub integers: Vec<i64>,
    /// `array_of_addresses`; empty for `..._c` constructors.
    pub addresses: Vec<i64>,
    /// `array_of_large_counts`; empty for `int` constructors.
    pub counts: Vec<i64>,
    /// `array_of_datatypes`.
    pub types: Vec<Type>,
}

impl Contents {
    /// Makes contents of arguments that are plain integers in the `int` form and counts in the large form.
    pub(crate) fn sized(width: Width, arguments: impl IntoIterator<Item = i64>) -> Contents {
        let mut contents = Contents::default();
        match width {
            Width::Int => contents.integers.extend(arguments),
            Width::Large => contents.counts.extend(arguments),
        }
        contents
    }

    /// Adds arguments that are addresses in the `int` form and counts in the large form.
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
