//! The type constructors of MPI 5.0, 5.1, except those on arrays.
//!
//! All constructors take 64-bit numbers. `Width` is the form of the call, which matters only for the recorded contents. The new
//! type is not committed.

use crate::datatype::shape::{BlockSum, TypeConstructor, TypeShape};
use crate::{Combiner, Contents, Datatype, DatatypeError, Type, Width};
use std::slice::from_ref;

pub(crate) fn not_negative(argument: &'static str, value: i64) -> Result<usize, DatatypeError> {
    usize::try_from(value).map_err(|_| DatatypeError::Argument {
        argument,
        index: None,
        value,
        rule: "it must not be negative",
    })
}

fn lengths(argument: &'static str, values: &[i64]) -> Result<(), DatatypeError> {
    match values.iter().position(|&v| v < 0) {
        None => Ok(()),
        Some(i) => Err(DatatypeError::Argument {
            argument,
            index: Some(i),
            value: values[i],
            rule: "it must not be negative",
        }),
    }
}

pub(crate) fn as_long(
    argument: &'static str,
    len: usize,
    expected: usize,
) -> Result<(), DatatypeError> {
    if len == expected { Ok(()) } else { Err(DatatypeError::Length { argument, len, expected }) }
}

pub(crate) fn product(what: &'static str, a: i64, b: i64) -> Result<i64, DatatypeError> {
    a.checked_mul(b).ok_or(DatatypeError::Overflow { what })
}

fn count_of(len: usize) -> i64 {
    // A slice of 8-byte entries has fewer than 2^60 entries.
    len as i64
}

impl Datatype {
    /// Makes the type of `MPI_Type_contiguous`: `count` elements one after another.
    pub fn contiguous_of(width: Width, count: i64, old: &Type) -> Result<Type, DatatypeError> {
        let n = not_negative("count", count)?;
        let mut sum = BlockSum::new();
        sum.add(old, 0, 1, 0, count);
        let contents = Contents::sized(width, [count]).of(from_ref(old));
        let recipe = TypeConstructor::Grid { child: old.clone(), count: 1, stride: 0, length: n };
        Datatype::make(Combiner::Contiguous, contents, recipe, sum.shape()?)
    }

    /// Makes the type of `MPI_Type_vector`: `count` blocks of `length` elements, `stride` extents apart.
    pub fn vector(
        width: Width,
        count: i64,
        length: i64,
        stride: i64,
        old: &Type,
    ) -> Result<Type, DatatypeError> {
        // With at most one block the stride is unused, so it may be out of range.
        let bytes = if count > 1 { product("stride", stride, old.extent())? } else { 0 };
        let contents = Contents::sized(width, [count, length, stride]);
        Datatype::grid(Combiner::Vector, contents, count, length, bytes, old)
    }

    /// Makes the type of `MPI_Type_create_hvector`: like [`vector`](Datatype::vector), with the stride in bytes.
    pub fn hvector(
        width: Width,
        count: i64,
        length: i64,
        stride: i64,
        old: &Type,
    ) -> Result<Type, DatatypeError> {
        let contents = Contents::sized(width, [count, length]).placed(width, [stride]);
        Datatype::grid(Combiner::Hvector, contents, count, length, stride, old)
    }

    fn grid(
        combiner: Combiner,
        contents: Contents,
        count: i64,
        length: i64,
        stride: i64,
        old: &Type,
    ) -> Result<Type, DatatypeError> {
        let n = not_negative("count", count)?;
        let block = not_negative("blocklength", length)?;
        let mut sum = BlockSum::new();
        sum.add(old, 0, count, stride, length);
        let recipe = TypeConstructor::Grid { child: old.clone(), count: n, stride, length: block };
        Datatype::make(combiner, contents.of(from_ref(old)), recipe, sum.shape()?)
    }

    /// Makes the type of `MPI_Type_indexed`: blocks of `lengths[i]` elements at `places[i]` extents.
    pub fn indexed(
        width: Width,
        lengths: &[i64],
        places: &[i64],
        old: &Type,
    ) -> Result<Type, DatatypeError> {
        as_long("array_of_displacements", places.len(), lengths.len())?;
        let arguments = [count_of(lengths.len())].into_iter();
        let arguments = arguments.chain(lengths.iter().copied()).chain(places.iter().copied());
        let contents = Contents::sized(width, arguments);
        let blocks = lengths.iter().copied().zip(places.iter().copied());
        Datatype::blocks(Combiner::Indexed, contents, blocks, old.extent(), old)
    }

    /// Makes the type of `MPI_Type_create_hindexed`: like [`indexed`](Datatype::indexed), with `places` in bytes.
    pub fn hindexed(
        width: Width,
        lengths: &[i64],
        places: &[i64],
        old: &Type,
    ) -> Result<Type, DatatypeError> {
        as_long("array_of_displacements", places.len(), lengths.len())?;
        let arguments = [count_of(lengths.len())].into_iter().chain(lengths.iter().copied());
        let contents = Contents::sized(width, arguments).placed(width, places.iter().copied());
        let blocks = lengths.iter().copied().zip(places.iter().copied());
        Datatype::blocks(Combiner::Hindexed, contents, blocks, 1, old)
    }

    /// Makes the type of `MPI_Type_create_indexed_block`: blocks of `length` elements at `places[i]` extents.
    pub fn indexed_block(
        width: Width,
        length: i64,
        places: &[i64],
        old: &Type,
    ) -> Result<Type, DatatypeError> {
        not_negative("blocklength", length)?;
        let arguments = [count_of(places.len()), length].into_iter().chain(places.iter().copied());
        let contents = Contents::sized(width, arguments);
        let blocks = places.iter().map(|&p| (length, p));
        Datatype::blocks(Combiner::IndexedBlock, contents, blocks, old.extent(), old)
    }

    /// Makes the type of `MPI_Type_create_hindexed_block`: like [`indexed_block`](Datatype::indexed_block), with `places` in bytes.
    pub fn hindexed_block(
        width: Width,
        length: i64,
        places: &[i64],
        old: &Type,
    ) -> Result<Type, DatatypeError> {
        not_negative("blocklength", length)?;
        let contents = Contents::sized(width, [count_of(places.len()), length]);
        let contents = contents.placed(width, places.iter().copied());
        let blocks = places.iter().map(|&p| (length, p));
        Datatype::blocks(Combiner::HindexedBlock, contents, blocks, 1, old)
    }

    fn blocks(
        combiner: Combiner,
        contents: Contents,
        blocks: impl Iterator<Item = (i64, i64)> + Clone,
        unit: i64,
        old: &Type,
    ) -> Result<Type, DatatypeError> {
        if let Some((i, (value, _))) = blocks.clone().enumerate().find(|(_, (len, _))| *len < 0) {
            return Err(DatatypeError::Argument {
                argument: "array_of_blocklengths",
                index: Some(i),
                value,
                rule: "it must not be negative",
            });
        }
        let mut sum = BlockSum::new();
        let mut placed = Vec::with_capacity(blocks.size_hint().0);
        for (length, place) in blocks {
            if length == 0 {
                continue;
            }
            let at = product("displacement", place, unit)?;
            sum.add(old, at, 1, 0, length);
            placed.push((at, length as usize));
        }
        let recipe = TypeConstructor::Blocks { child: old.clone(), blocks: placed.into() };
        Datatype::make(combiner, contents.of(from_ref(old)), recipe, sum.shape()?)
    }

    /// Makes the type of `MPI_Type_create_struct`: blocks of `block_lengths[i]` elements of `types[i]` at `places[i]` bytes. The
    /// extent is padded to the strictest alignment of the members, unless a resized type sets the extent.
    pub fn structure(
        width: Width,
        block_lengths: &[i64],
        places: &[i64],
        types: &[Type],
    ) -> Result<Type, DatatypeError> {
        let count = block_lengths.len();
        as_long("array_of_displacements", places.len(), count)?;
        as_long("array_of_types", types.len(), count)?;
        lengths("array_of_blocklengths", block_lengths)?;
        let mut sum = BlockSum::new();
        let mut fields = Vec::with_capacity(count);
        for ((&length, &place), child) in block_lengths.iter().zip(places).zip(types) {
            if length > 0 {
                sum.add(child, place, 1, 0, length);
                fields.push((child.clone(), place, length as usize));
            }
        }
        let arguments = [count_of(count)].into_iter().chain(block_lengths.iter().copied());
        let contents = Contents::sized(width, arguments).placed(width, places.iter().copied());
        let recipe = TypeConstructor::Fields(fields.into());
        Datatype::make(Combiner::Struct, contents.of(types), recipe, sum.shape()?.padded()?)
    }

    /// Makes the type of `MPI_Type_create_resized`: the same data with other bounds.
    pub fn resized(width: Width, old: &Type, lb: i64, extent: i64) -> Result<Type, DatatypeError> {
        let ub = lb.checked_add(extent).ok_or(DatatypeError::Overflow { what: "upper bound" })?;
        let shape = TypeShape { marks: Some((lb, ub)), ..*old.shape() };
        let contents = Contents::default().placed(width, [lb, extent]).of(from_ref(old));
        Datatype::make(Combiner::Resized, contents, TypeConstructor::Same(old.clone()), shape)
    }

    /// Makes the type of `MPI_Type_dup`: a type with the same map, which is committed if `old` is committed.
    pub fn duplicate(old: &Type) -> Result<Type, DatatypeError> {
        let contents = Contents::default().of(from_ref(old));
        let made = Datatype::make(
            Combiner::Dup,
            contents,
            TypeConstructor::Same(old.clone()),
            *old.shape(),
        )?;
        if old.committed() {
            made.commit();
        }
        Ok(made)
    }
}
