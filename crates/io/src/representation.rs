//! Representations of data in files (MPI 5.0, section 14.5).

use weft_datatype::{Datatype, Type, Width};
use weft_fabric::Sge;
use weft_process::{Buffer, Error};

/// Conversion between a program's data and a file's data. Each access has its own conversion, because the conversion may depend on
/// the program's datatype.
pub trait Convert {
    /// Returns the number of bytes of a buffer's data in the file.
    fn len(&self, buffer: &Buffer) -> Result<u64, Error>;

    /// Converts the data of `buffer` to `to`, which has [`Convert::len`] bytes.
    fn export(&self, buffer: &Buffer, to: Sge) -> Result<(), Error>;

    /// Converts data of a file, or the first part of them, to `buffer`. Returns the number of bytes of the program's data.
    fn import(&self, from: Sge, buffer: &Buffer) -> Result<u64, Error>;
}

/// The representation "external32": big-endian with fixed sizes.
pub struct External32;

/// Returns memory of the library as an `Sge`.
fn memory_of(bytes: &mut [u8]) -> Sge {
    // SAFETY: `Sge::new` requires memory that stays valid and unchanged. The caller does not use the bytes again before its last
    // use of the result.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

impl Convert for External32 {
    fn len(&self, buffer: &Buffer) -> Result<u64, Error> {
        Ok(buffer.ty().external_size(buffer.count())? as u64)
    }

    fn export(&self, buffer: &Buffer, to: Sge) -> Result<(), Error> {
        let mut packed = vec![0; buffer.len()];
        buffer.pack_to(memory_of(&mut packed));
        let mut external = vec![0; to.len()];
        buffer.ty().export(buffer.count(), &packed, &mut external)?;
        to.fill(&external);
        Ok(())
    }

    fn import(&self, from: Sge, buffer: &Buffer) -> Result<u64, Error> {
        let each = buffer.ty().external_size(1)?;
        if each == 0 {
            return Ok(0);
        }
        // A file may end within an element. The missing bytes are read as zero, and the program gets only the numbers before the
        // missing bytes.
        let (whole, rest) = (from.len() / each, from.len() % each);
        let count = (whole + usize::from(rest > 0)).min(buffer.count());
        let mut external = vec![0; count * each];
        from.read(&mut external[..from.len()]);
        let mut packed = vec![0; count * buffer.ty().size()];
        buffer.ty().import(count, &external, &mut packed)?;
        let bytes_read =
            (whole * buffer.ty().size() + buffer.ty().packed_of_external(rest)?).min(packed.len());
        buffer.unpack_from(memory_of(&mut packed[..bytes_read]));
        Ok(bytes_read as u64)
    }
}

/// Sizes of predefined types in a file.
pub trait RepresentationSizes {
    /// Returns the size and the extent of the predefined type `basic`, in bytes.
    fn of(&self, basic: &Type) -> Result<(usize, i64), Error>;
}

impl RepresentationSizes for External32 {
    fn of(&self, basic: &Type) -> Result<(usize, i64), Error> {
        let size = basic.external_size(1)?;
        Ok((size, size as i64))
    }
}

/// Converts a type to the file's sizes. Displacements that count extents are scaled, and displacements that count bytes stay
/// unchanged. `byte` is MPI_BYTE.
pub fn in_file(ty: &Type, sizes: &dyn RepresentationSizes, byte: &Type) -> Result<Type, Error> {
    use weft_datatype::Combiner::*;
    if ty.basic().is_some()
        || matches!(ty.combiner(), F90Real | F90Complex | F90Integer | ValueIndex)
    {
        let (size, extent) = sizes.of(ty)?;
        let bytes = Datatype::contiguous_of(Width::Large, size as i64, byte)?;
        let same = size as i64 == extent;
        return Ok(if same { bytes } else { Datatype::resized(Width::Large, &bytes, 0, extent)? });
    }
    let contents = ty.contents();
    let inner: Vec<Type> =
        contents.types.iter().map(|ty| in_file(ty, sizes, byte)).collect::<Result<_, _>>()?;
    let old = inner.first().unwrap_or(byte);
    // A constructor has a form with large counts and a form without. Both list their arguments in the order of the standard.
    let large = !contents.counts.is_empty();
    let numbers: Vec<i64> = match large {
        false => contents.integers.iter().chain(&contents.addresses).copied().collect(),
        true => contents.counts.clone(),
    };
    let n = |i: usize| numbers.get(i).copied().unwrap_or(0);
    let count = n(0) as usize;
    let width = Width::Large;
    let lists = |from: usize, len: usize| numbers.get(from..from + len).unwrap_or(&[]);
    Ok(match ty.combiner() {
        Dup => Datatype::duplicate(old)?,
        Contiguous => Datatype::contiguous_of(width, n(0), old)?,
        Vector => Datatype::vector(width, n(0), n(1), n(2), old)?,
        Hvector => Datatype::hvector(width, n(0), n(1), n(2), old)?,
        Indexed => Datatype::indexed(width, lists(1, count), lists(1 + count, count), old)?,
        Hindexed => Datatype::hindexed(width, lists(1, count), lists(1 + count, count), old)?,
        IndexedBlock => Datatype::indexed_block(width, n(1), lists(2, count), old)?,
        HindexedBlock => Datatype::hindexed_block(width, n(1), lists(2, count), old)?,
        Struct => Datatype::structure(width, lists(1, count), lists(1 + count, count), &inner)?,
        Resized => Datatype::resized(width, old, n(0), n(1))?,
        Subarray => {
            let dims = contents.integers[0] as usize;
            let (at, order) = match large {
                true => (0, contents.integers[1]),
                false => (1, contents.integers[1 + 3 * dims]),
            };
            let part = |i: usize| lists(at + i * dims, dims);
            Datatype::subarray(width, part(0), part(1), part(2), order, old)?
        }
        Darray => return darray(ty, old),
        Named | F90Real | F90Complex | F90Integer | ValueIndex => ty.clone(),
    })
}

/// Converts a distributed array, whose arguments are size, rank, dimensions, then four lists, then the order.
fn darray(ty: &Type, old: &Type) -> Result<Type, Error> {
    let contents = ty.contents();
    let integers = &contents.integers;
    let (size, rank, dims) = (integers[0], integers[1], integers[2] as usize);
    let large = !contents.counts.is_empty();
    let (global, at) = match large {
        true => (&contents.counts[..], 3),
        false => (&integers[3..3 + dims], 3 + dims),
    };
    let list = |i: usize| &integers[at + i * dims..][..dims];
    let array = weft_datatype::Distributed {
        size,
        rank,
        global,
        kinds: list(0),
        blocks: list(1),
        grid: list(2),
        order: integers[at + 3 * dims],
    };
    Ok(Datatype::darray(Width::Large, array, old)?)
}
