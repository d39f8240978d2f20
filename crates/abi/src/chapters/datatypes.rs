//! Constructors of datatypes (MPI 5.0, sections 5.1.2 to 5.1.4 and 5.1.7).
//!
//! Each constructor has two forms, because `MPI_Type_get_contents` returns the arguments as they were given: as `int`, or as
//! large counts.

use crate::arguments::{count, named_datatype, not_null, store};
use crate::arrays::list;
use crate::calls::*;
use crate::constants::MPI_DATATYPE_NULL;
use crate::elements::Arguments;
use crate::error::Error;
use crate::objects::TypeObject;
use crate::state::state;
use crate::types::Datatype;
use crate::widen_counts::Counts;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weft_datatype::{Datatype as Map, Distributed, Type, Width};

/// Makes a handle for a type.
pub fn keep(ty: Type) -> Datatype {
    let handle = Cell::new(MPI_DATATYPE_NULL);
    let object = TypeObject { ty, handle, predefined: false, attributes: RefCell::default() };
    let object = Rc::new(object);
    let handle = Datatype(state().types.borrow_mut().insert(object.clone()));
    object.handle.set(handle);
    handle
}

fn old(handle: Datatype) -> Result<Type, Error> {
    Ok(named_datatype(handle, "oldtype")?.ty.clone())
}

/// A constructor of datatypes. A type remembers the form of its constructor, for `MPI_Type_get_contents`.
pub(crate) trait Constructor: Arguments {
    fn make(self, width: Width) -> Result<Type, Error>;

    /// # Safety
    /// `newtype` is NULL or may be written.
    unsafe fn small(self, newtype: *mut Datatype) -> Result<(), Error> {
        // SAFETY: `give` needs a `newtype` that is NULL or may be written; the contract of this function says so.
        unsafe { give(newtype, || self.make(Width::Int)) }
    }

    /// # Safety
    /// `newtype` is NULL or may be written.
    unsafe fn large(self, newtype: *mut Datatype) -> Result<(), Error> {
        // SAFETY: `give` needs a `newtype` that is NULL or may be written; the contract of this function says so.
        unsafe { give(newtype, || self.make(Width::Large)) }
    }
}

/// # Safety
/// `to` is NULL or may be written.
unsafe fn give(to: *mut Datatype, make: impl FnOnce() -> Result<Type, Error>) -> Result<(), Error> {
    not_null(to, "newtype")?;
    let made = make()?;
    state().types.borrow_mut().room()?;
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store(to, keep(made), "newtype") }
}

const LENGTHS: &str = "array_of_blocklengths";
const PLACES: &str = "array_of_displacements";

/// MPI_Type_contiguous, MPI_Type_contiguous_c.
impl Constructor for TypeContiguous {
    fn make(self, width: Width) -> Result<Type, Error> {
        Ok(Map::contiguous_of(width, self.count, &old(self.oldtype)?)?)
    }
}

/// MPI_Type_vector, MPI_Type_vector_c.
impl Constructor for TypeVector {
    fn make(self, width: Width) -> Result<Type, Error> {
        let Self { count, blocklength, stride, oldtype } = self;
        Ok(Map::vector(width, count, blocklength, stride, &old(oldtype)?)?)
    }
}

/// MPI_Type_create_hvector, MPI_Type_create_hvector_c.
impl Constructor for TypeCreateHvector {
    fn make(self, width: Width) -> Result<Type, Error> {
        let Self { count, blocklength, stride, oldtype } = self;
        Ok(Map::hvector(width, count, blocklength, stride, &old(oldtype)?)?)
    }
}

/// MPI_Type_create_resized, MPI_Type_create_resized_c.
impl Constructor for TypeCreateResized {
    fn make(self, width: Width) -> Result<Type, Error> {
        Ok(Map::resized(width, &old(self.oldtype)?, self.lb, self.extent)?)
    }
}

/// MPI_Type_indexed, MPI_Type_indexed_c.
impl Constructor for TypeIndexed {
    fn make(self, width: Width) -> Result<Type, Error> {
        let n = count(self.count, "count")?;
        // SAFETY: each array is NULL or has `n` elements, as MPI requires of the program.
        let (lengths, places) = unsafe {
            let lengths = self.array_of_blocklengths.to_vec(n, LENGTHS)?;
            (lengths, self.array_of_displacements.to_vec(n, PLACES)?)
        };
        Ok(Map::indexed(width, &lengths, &places, &old(self.oldtype)?)?)
    }
}

/// MPI_Type_create_hindexed, MPI_Type_create_hindexed_c.
impl Constructor for TypeCreateHindexed {
    fn make(self, width: Width) -> Result<Type, Error> {
        let n = count(self.count, "count")?;
        // SAFETY: each array is NULL or has `n` elements, as MPI requires of the program.
        let (lengths, places) = unsafe {
            let lengths = self.array_of_blocklengths.to_vec(n, LENGTHS)?;
            (lengths, self.array_of_displacements.to_vec(n, PLACES)?)
        };
        Ok(Map::hindexed(width, &lengths, &places, &old(self.oldtype)?)?)
    }
}

/// MPI_Type_create_indexed_block, MPI_Type_create_indexed_block_c.
impl Constructor for TypeCreateIndexedBlock {
    fn make(self, width: Width) -> Result<Type, Error> {
        let n = count(self.count, "count")?;
        // SAFETY: the array is NULL or has `n` elements, as MPI requires of the program.
        let places = unsafe { self.array_of_displacements.to_vec(n, PLACES) }?;
        Ok(Map::indexed_block(width, self.blocklength, &places, &old(self.oldtype)?)?)
    }
}

/// MPI_Type_create_hindexed_block, MPI_Type_create_hindexed_block_c.
impl Constructor for TypeCreateHindexedBlock {
    fn make(self, width: Width) -> Result<Type, Error> {
        let n = count(self.count, "count")?;
        // SAFETY: the array is NULL or has `n` elements, as MPI requires of the program.
        let places = unsafe { self.array_of_displacements.to_vec(n, PLACES) }?;
        Ok(Map::hindexed_block(width, self.blocklength, &places, &old(self.oldtype)?)?)
    }
}

/// MPI_Type_create_struct, MPI_Type_create_struct_c.
impl Constructor for TypeCreateStruct {
    fn make(self, width: Width) -> Result<Type, Error> {
        let n = count(self.count, "count")?;
        // SAFETY: each array is NULL or has `n` elements, as MPI requires of the program.
        let (lengths, places, types) = unsafe {
            let lengths = self.array_of_blocklengths.to_vec(n, LENGTHS)?;
            let places = self.array_of_displacements.to_vec(n, PLACES)?;
            (lengths, places, list(self.array_of_types, n, "array_of_types")?)
        };
        let one = |(i, ty)| Ok(named_datatype(ty, &format!("array_of_types[{i}]"))?.ty.clone());
        let olds = types.into_iter().enumerate().map(one).collect::<Result<Vec<_>, Error>>()?;
        Ok(Map::structure(width, &lengths, &places, &olds)?)
    }
}

/// MPI_Type_create_subarray, MPI_Type_create_subarray_c.
impl Constructor for TypeCreateSubarray {
    fn make(self, width: Width) -> Result<Type, Error> {
        let n = count(i64::from(self.ndims), "ndims")?;
        // SAFETY: each array is NULL or has `n` elements, as MPI requires of the program.
        let (sizes, parts, starts) = unsafe {
            let sizes = self.array_of_sizes.to_vec(n, "array_of_sizes")?;
            let parts = self.array_of_subsizes.to_vec(n, "array_of_subsizes")?;
            (sizes, parts, self.array_of_starts.to_vec(n, "array_of_starts")?)
        };
        let (order, old) = (i64::from(self.order), old(self.oldtype)?);
        Ok(Map::subarray(width, &sizes, &parts, &starts, order, &old)?)
    }
}

/// MPI_Type_create_darray, MPI_Type_create_darray_c.
impl Constructor for TypeCreateDarray {
    fn make(self, width: Width) -> Result<Type, Error> {
        let n = count(i64::from(self.ndims), "ndims")?;
        // SAFETY: each array is NULL or has `n` elements, as MPI requires of the program.
        let (global, kinds, blocks, grid) = unsafe {
            let global = self.array_of_gsizes.to_vec(n, "array_of_gsizes")?;
            let kinds = Counts::Int(self.array_of_distribs).to_vec(n, "array_of_distribs")?;
            let blocks = Counts::Int(self.array_of_dargs).to_vec(n, "array_of_dargs")?;
            (global, kinds, blocks, Counts::Int(self.array_of_psizes).to_vec(n, "array_of_psizes")?)
        };
        let array = Distributed {
            size: i64::from(self.size),
            rank: i64::from(self.rank),
            global: &global,
            kinds: &kinds,
            blocks: &blocks,
            grid: &grid,
            order: i64::from(self.order),
        };
        Ok(Map::darray(width, array, &old(self.oldtype)?)?)
    }
}
