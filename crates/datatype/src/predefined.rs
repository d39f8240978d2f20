//! The table of predefined types of one process.

use crate::{Basic, Datatype, Type};

/// Every predefined type, found by handle in constant time.
pub struct Predefined {
    types: Vec<Option<Type>>,
}

impl Predefined {
    /// Makes all predefined types; types of one table are never shared with another.
    pub fn new() -> Predefined {
        let of = |handle| Basic::of_handle(handle).map(Datatype::named);
        Predefined { types: (0x200..0x300).map(of).collect() }
    }

    /// A type of its own, of no table: what code of this library uses that needs one.
    pub fn only(basic: Basic) -> Type {
        Datatype::named(basic)
    }

    /// The type of an ABI handle value; none for `MPI_DATATYPE_NULL` and for any other value.
    pub fn get(&self, handle: u32) -> Option<&Type> {
        self.types.get(handle.checked_sub(0x200)? as usize)?.as_ref()
    }

    /// The type of `basic`.
    pub fn of(&self, basic: Basic) -> &Type {
        self.get(basic.handle()).expect("every basic type has an entry")
    }
}

impl Default for Predefined {
    fn default() -> Predefined {
        Predefined::new()
    }
}
