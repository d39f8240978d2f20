//! Construction of MPI's datatype from the program's description.

use crate::basic::PAIRS;
use crate::mpi::{self, Array, CountWidth, Mpi};
use crate::types::{ArrayOrder, Distribution, Shape, SharedType, TypeModel};

/// Makes a committed datatype, which the caller frees with [`release`]. Returns its handle.
pub fn construct(mpi: &Mpi, ty: &TypeModel) -> Result<usize, String> {
    let mut handle = build(mpi, ty)?;
    if !predefined(ty) {
        mpi.call("MPI_Type_commit", &[std::ptr::from_mut(&mut handle) as usize])?;
    }
    agree(mpi, ty, handle)?;
    Ok(handle)
}

pub fn release(mpi: &Mpi, ty: &TypeModel, handle: usize) -> Result<(), String> {
    if predefined(ty) { Ok(()) } else { mpi.free("MPI_Type_free", handle) }
}

fn predefined(ty: &TypeModel) -> bool {
    matches!(ty.shape, Shape::Basic(_) | Shape::Pair(_))
}

/// Compares the library's size and bounds with the expected ones.
fn agree(mpi: &Mpi, ty: &TypeModel, handle: usize) -> Result<(), String> {
    let two = |name: &str| -> Result<(i64, i64), String> {
        let (mut a, mut b) = (0i64, 0i64);
        let args =
            [handle, std::ptr::from_mut(&mut a) as usize, std::ptr::from_mut(&mut b) as usize];
        mpi.call_c(name, ty.width, &args)?;
        Ok((a, b))
    };
    let size = mpi.count("MPI_Type_size", ty.width, &[handle])?;
    let (lb, extent) = two("MPI_Type_get_extent")?;
    let (true_lb, span) = two("MPI_Type_get_true_extent")?;
    let theirs = (size, lb, extent, true_lb, span);
    let ours = (ty.size() as i64, ty.lb, ty.extent(), ty.true_lb, ty.span());
    if ours == theirs {
        return Ok(());
    }
    Err(format!(
        "the library says (size, lb, extent, true lb, true extent) = {theirs:?} of a datatype that \
         has {ours:?}: {ty}"
    ))
}

fn build(mpi: &Mpi, ty: &TypeModel) -> Result<usize, String> {
    let width = ty.width;
    let counts = |values: &[i64]| Array::new(width, values.iter().copied());
    // Displacements in bytes are MPI_Aint or MPI_Count: 64 bits in both forms.
    let bytes = |values: &[i64]| Array::new(CountWidth::Large, values.iter().copied());
    let n = |value: i64| value as usize;
    let around = |child: &TypeModel, name: &str, args: &[usize], after: bool| {
        let inner = build(mpi, child)?;
        let mut all = args.to_vec();
        all.insert(if after { args.len() } else { 0 }, inner);
        let made = mpi.make_c(name, width, &all)?;
        release(mpi, child, inner)?;
        Ok::<usize, String>(made)
    };
    match &ty.shape {
        Shape::Basic(b) => Ok(b.handle()),
        Shape::Pair(i) => Ok(PAIRS[*i].handle),
        Shape::Dup(child) => {
            let inner = build(mpi, child)?;
            let made = mpi.make("MPI_Type_dup", &[inner])?;
            release(mpi, child, inner)?;
            Ok(made)
        }
        Shape::Contiguous(count, child) => around(child, "MPI_Type_contiguous", &[n(*count)], true),
        Shape::Vector { count, block, stride, child } => {
            around(child, "MPI_Type_vector", &[n(*count), n(*block), n(*stride)], true)
        }
        Shape::Hvector { count, block, stride, child } => {
            around(child, "MPI_Type_create_hvector", &[n(*count), n(*block), n(*stride)], true)
        }
        Shape::Indexed { blocks, at, child } => {
            let (lengths, places) = (counts(blocks), counts(at));
            let args = [blocks.len(), lengths.address(), places.address()];
            around(child, "MPI_Type_indexed", &args, true)
        }
        Shape::Hindexed { blocks, at, child } => {
            let (lengths, places) = (counts(blocks), bytes(at));
            let args = [blocks.len(), lengths.address(), places.address()];
            around(child, "MPI_Type_create_hindexed", &args, true)
        }
        Shape::IndexedBlock { block, at, child } => {
            let places = counts(at);
            let args = [at.len(), n(*block), places.address()];
            around(child, "MPI_Type_create_indexed_block", &args, true)
        }
        Shape::HindexedBlock { block, at, child } => {
            let places = bytes(at);
            let args = [at.len(), n(*block), places.address()];
            around(child, "MPI_Type_create_hindexed_block", &args, true)
        }
        Shape::Struct { blocks, at, children } => {
            structure(mpi, width, [&counts(blocks), &bytes(at)], children)
        }
        Shape::Subarray { sizes, subsizes, starts, order, child } => {
            let arrays = [counts(sizes), counts(subsizes), counts(starts)];
            let [a, b, c] = arrays.each_ref().map(Array::address);
            let args = [sizes.len(), a, b, c, constant(*order)];
            around(child, "MPI_Type_create_subarray", &args, true)
        }
        Shape::Darray { dimensions, order, child } => darray(mpi, dimensions, |process, arrays| {
            let [sizes, spreads, blocks, grid] = arrays;
            let sizes = counts(sizes);
            let others = [spreads, blocks, grid].map(|a| Array::ints(a.iter().copied()));
            let [b, c, d] = others.each_ref().map(Array::address);
            let ranks: i64 = grid.iter().product();
            let args =
                [n(ranks), n(process), grid.len(), sizes.address(), b, c, d, constant(*order)];
            around(child, "MPI_Type_create_darray", &args, true)
        }),
        Shape::Resized { lb, extent, child } => {
            around(child, "MPI_Type_create_resized", &[n(*lb), n(*extent)], false)
        }
    }
}

/// Makes a structure of several datatypes, with their lengths and displacements.
fn structure(
    mpi: &Mpi,
    width: CountWidth,
    [lengths, places]: [&Array; 2],
    children: &[SharedType],
) -> Result<usize, String> {
    let inner: Vec<usize> =
        children.iter().map(|child| build(mpi, child)).collect::<Result<_, _>>()?;
    let list = inner.as_ptr() as usize;
    let args = [children.len(), lengths.address(), places.address(), list];
    let made = mpi.make_c("MPI_Type_create_struct", width, &args)?;
    for (child, handle) in children.iter().zip(inner) {
        release(mpi, child, handle)?;
    }
    Ok(made)
}

/// Returns the constant of MPI.
fn constant(order: ArrayOrder) -> usize {
    match order {
        ArrayOrder::C => mpi::ORDER_C as usize,
        ArrayOrder::Fortran => mpi::ORDER_FORTRAN as usize,
    }
}

/// Calls `make` with the arguments of a distributed array: this process's rank in the grid of processes (row-major in either
/// order), and sizes, distributions, their arguments, and the grid.
fn darray(
    _: &Mpi,
    dimensions: &[crate::types::Dimension],
    make: impl Fn(i64, [&[i64]; 4]) -> Result<usize, String>,
) -> Result<usize, String> {
    let dflt = mpi::DISTRIBUTE_DFLT_DARG;
    let spread = |s: Distribution| match s {
        Distribution::None => (mpi::DISTRIBUTE_NONE, dflt),
        Distribution::Block(block) => (mpi::DISTRIBUTE_BLOCK, block.unwrap_or(dflt)),
        Distribution::Cyclic(block) => (mpi::DISTRIBUTE_CYCLIC, block.unwrap_or(dflt)),
    };
    let process = dimensions.iter().fold(0, |rank, d| rank * d.processes + d.at);
    let sizes: Vec<i64> = dimensions.iter().map(|d| d.size).collect();
    let (spreads, blocks): (Vec<i64>, Vec<i64>) =
        dimensions.iter().map(|d| spread(d.spread)).unzip();
    let grid: Vec<i64> = dimensions.iter().map(|d| d.processes).collect();
    make(process, [&sizes, &spreads, &blocks, &grid])
}
