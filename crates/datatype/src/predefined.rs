//! Table of the predefined types of one process.

use crate::{Basic, Datatype, Type};

/// All predefined types. Finds a type by its handle in constant time.
pub struct Predefined {
    types: Vec<Option<Type>>,
}

impl Predefined {
    /// Makes all predefined types. A type of one table is never shared with another table.
    pub fn new() -> Predefined {
        let of = |handle| Basic::of_handle(handle).map(Datatype::named);
        Predefined { types: (0x200..0x300).map(of).collect() }
    }

    /// Makes a separate type that belongs to no table, for code of this library.
    pub fn only(basic: Basic) -> Type {
        Datatype::named(basic)
    }

    /// Returns the type of an ABI handle; `None` for `MPI_DATATYPE_NULL` and for any other value.
    pub fn get(&self, handle: u32) -> Option<&Type> {
        self.types.get(handle.checked_sub(0x200)? as usize)?.as_ref()
    }

    /// Returns the type of `basic`.
    pub fn of(&self, basic: Basic) -> &Type {
        self.get(basic.handle()).expect("every basic type has an entry")
    }
}

impl Default for Predefined {
    fn default() -> Predefined {
        Predefined::new()
    }
}
