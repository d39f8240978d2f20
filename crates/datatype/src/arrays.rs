//! Constructors on arrays of several dimensions: a part of an array, and the part that a process has of an array distributed over a
//! grid of processes.

use crate::construct::{as_long, product};
use crate::datatype::shape::{TypeConstructor, TypeShape};
use crate::{Combiner, Contents, Datatype, DatatypeError, Type, Width};

/// `MPI_ORDER_C`: the last dimension is contiguous in memory.
pub const ORDER_C: i64 = 0xc;
/// `MPI_ORDER_FORTRAN`: the first dimension is contiguous in memory.
pub const ORDER_FORTRAN: i64 = 0xf;

/// `MPI_DISTRIBUTE_NONE`: the dimension is not distributed.
pub const DISTRIBUTE_NONE: i64 = 16;
/// `MPI_DISTRIBUTE_BLOCK`: one block per process.
pub const DISTRIBUTE_BLOCK: i64 = 17;
/// `MPI_DISTRIBUTE_CYCLIC`: processes get blocks in turn.
pub const DISTRIBUTE_CYCLIC: i64 = 18;
/// `MPI_DISTRIBUTE_DFLT_DARG`: the default block length (1 for cyclic, an equal share for block).
pub const DISTRIBUTE_DEFAULT: i64 = 19;

/// Arguments of `MPI_Type_create_darray`. All arrays have one entry per dimension.
#[derive(Debug, Clone, Copy)]
pub struct Distributed<'a> {
    /// Number of processes in the grid: the product of `grid`.
    pub size: i64,
    /// Rank of this process in the grid, in row-major order, even if the array has another order.
    pub rank: i64,
    /// Size of the global array in elements (`array_of_gsizes`).
    pub global: &'a [i64],
    /// Distributions, `DISTRIBUTE_...` (`array_of_distribs`).
    pub kinds: &'a [i64],
    /// Block lengths, or `DISTRIBUTE_DEFAULT` (`array_of_dargs`).
    pub blocks: &'a [i64],
    /// Sizes of the process grid (`array_of_psizes`).
    pub grid: &'a [i64],
    /// `ORDER_C` or `ORDER_FORTRAN`.
    pub order: i64,
}

fn refuse<T>(
    argument: &'static str,
    index: Option<usize>,
    value: i64,
    rule: &'static str,
) -> Result<T, DatatypeError> {
    Err(DatatypeError::Argument { argument, index, value, rule })
}

/// Returns the dimensions in the order of their strides, the contiguous dimension first.
fn fastest_first(order: i64, dimensions: usize) -> Result<Vec<usize>, DatatypeError> {
    match order {
        ORDER_C => Ok((0..dimensions).rev().collect()),
        ORDER_FORTRAN => Ok((0..dimensions).collect()),
        _ => refuse("order", None, order, "it must be MPI_ORDER_C or MPI_ORDER_FORTRAN"),
    }
}

fn some_dimensions(dimensions: usize) -> Result<(), DatatypeError> {
    if dimensions == 0 { refuse("ndims", None, 0, "it must be positive") } else { Ok(()) }
}

impl Datatype {
    /// Makes the type of `MPI_Type_create_subarray`: the `parts` elements from `starts` on, of an array of `sizes` elements. The
    /// bounds of the type are the bounds of the entire array.
    pub fn subarray(
        width: Width,
        sizes: &[i64],
        parts: &[i64],
        starts: &[i64],
        order: i64,
        old: &Type,
    ) -> Result<Type, DatatypeError> {
        let n = sizes.len();
        some_dimensions(n)?;
        as_long("array_of_subsizes", parts.len(), n)?;
        as_long("array_of_starts", starts.len(), n)?;
        for i in 0..n {
            let (size, part, start) = (sizes[i], parts[i], starts[i]);
            if size < 1 {
                return refuse("array_of_sizes", Some(i), size, "it must be positive");
            }
            if !(1..=size).contains(&part) {
                let rule = "it must be from 1 to the array's size";
                return refuse("array_of_subsizes", Some(i), part, rule);
            }
            if !(0..=size - part).contains(&start) {
                let rule = "the part must lie inside the array";
                return refuse("array_of_starts", Some(i), start, rule);
            }
        }
        let mut part = old.clone();
        let (mut stride, mut first) = (old.extent(), 0i64);
        for i in fastest_first(order, n)? {
            part = Datatype::hvector(width, parts[i], 1, stride, &part)?;
            let into = product("displacement", starts[i], stride)?;
            first =
                first.checked_add(into).ok_or(DatatypeError::Overflow { what: "displacement" })?;
            stride = product("extent", stride, sizes[i])?;
        }
        let placed = Datatype::hindexed(width, &[1], &[first], &part)?;
        let dimensions = n as i64;
        let arrays = || [sizes, parts, starts].into_iter().flatten().copied();
        let contents = match width {
            Width::Int => {
                let all = [dimensions].into_iter().chain(arrays()).chain([order]);
                Contents { integers: all.collect(), ..Contents::default() }
            }
            Width::Large => Contents {
                integers: vec![dimensions, order],
                counts: arrays().collect(),
                ..Contents::default()
            },
        };
        let shape = TypeShape { marks: Some((0, stride)), ..*placed.shape() };
        let contents = contents.of(std::slice::from_ref(old));
        Datatype::make(Combiner::Subarray, contents, TypeConstructor::Same(placed), shape)
    }

    /// Makes the type of `MPI_Type_create_darray`: the part of process `rank` of a distributed array. The bounds of the type are
    /// the bounds of the entire array.
    pub fn darray(width: Width, array: Distributed<'_>, old: &Type) -> Result<Type, DatatypeError> {
        let n = array.global.len();
        some_dimensions(n)?;
        let place = array.place()?;
        let mut share = old.clone();
        let mut stride = old.extent();
        for i in fastest_first(array.order, n)? {
            let deal = Deal {
                global: array.global[i],
                block: array.block(i)?,
                processes: array.grid[i],
                place: place[i],
            };
            let extent = product("extent", stride, array.global[i])?;
            share = deal.share(width, stride, extent, &share)?;
            stride = extent;
        }
        let head = [array.size, array.rank, n as i64];
        let Distributed { global, kinds, blocks, grid, order, .. } = array;
        let contents = match width {
            Width::Int => {
                let arrays = [&head[..], global, kinds, blocks, grid, &[order]];
                Contents { integers: arrays.concat(), ..Contents::default() }
            }
            Width::Large => Contents {
                integers: [&head[..], kinds, blocks, grid, &[order]].concat(),
                counts: global.to_vec(),
                ..Contents::default()
            },
        };
        let shape = *share.shape();
        let contents = contents.of(std::slice::from_ref(old));
        Datatype::make(Combiner::Darray, contents, TypeConstructor::Same(share), shape)
    }
}

impl Distributed<'_> {
    /// Checks the process grid, and returns the coordinates of this process in the grid.
    fn place(&self) -> Result<Vec<i64>, DatatypeError> {
        let n = self.global.len();
        as_long("array_of_distribs", self.kinds.len(), n)?;
        as_long("array_of_dargs", self.blocks.len(), n)?;
        as_long("array_of_psizes", self.grid.len(), n)?;
        for (i, &processes) in self.grid.iter().enumerate() {
            if processes < 1 {
                return refuse("array_of_psizes", Some(i), processes, "it must be positive");
            }
        }
        let all = self.grid.iter().try_fold(1i64, |all, &p| all.checked_mul(p));
        if all != Some(self.size) {
            return refuse("size", None, self.size, "it must be the product of array_of_psizes");
        }
        if !(0..self.size).contains(&self.rank) {
            return refuse("rank", None, self.rank, "it must be from 0 to size - 1");
        }
        let (mut inner, mut rank) = (self.size, self.rank);
        let place = self.grid.iter().map(|processes| {
            inner /= processes;
            let place = rank / inner;
            rank %= inner;
            place
        });
        Ok(place.collect())
    }

    /// Returns the block length of dimension `i`. All three distributions are special cases of the cyclic distribution.
    fn block(&self, i: usize) -> Result<i64, DatatypeError> {
        let (global, processes, block) = (self.global[i], self.grid[i], self.blocks[i]);
        if global < 1 {
            return refuse("array_of_gsizes", Some(i), global, "it must be positive");
        }
        let usual = block == DISTRIBUTE_DEFAULT;
        match self.kinds[i] {
            DISTRIBUTE_NONE if processes != 1 => {
                let rule = "it must be 1 where the dimension is not distributed";
                refuse("array_of_psizes", Some(i), processes, rule)
            }
            DISTRIBUTE_NONE => Ok(global),
            DISTRIBUTE_BLOCK if usual => Ok((global - 1) / processes + 1),
            DISTRIBUTE_CYCLIC if usual => Ok(1),
            DISTRIBUTE_BLOCK | DISTRIBUTE_CYCLIC if block < 1 => {
                refuse("array_of_dargs", Some(i), block, "it must be positive")
            }
            DISTRIBUTE_BLOCK if block.saturating_mul(processes) < global => {
                let rule = "blocks of this length do not cover the array";
                refuse("array_of_dargs", Some(i), block, rule)
            }
            // A block longer than the array covers the entire array.
            DISTRIBUTE_BLOCK | DISTRIBUTE_CYCLIC => Ok(block.min(global)),
            kind => {
                refuse("array_of_distribs", Some(i), kind, "it must be an MPI_DISTRIBUTE_ value")
            }
        }
    }
}

/// Distribution of a dimension in blocks over processes.
struct Deal {
    global: i64,
    block: i64,
    processes: i64,
    place: i64,
}

impl Deal {
    /// Returns the type of this process's blocks. The elements of a block are `child`s that lie `stride` bytes apart. The type's
    /// extent is `extent` bytes.
    fn share(
        &self,
        width: Width,
        stride: i64,
        extent: i64,
        child: &Type,
    ) -> Result<Type, DatatypeError> {
        let whole = self.global / self.block;
        let mine = (whole - self.place + self.processes - 1).max(0) / self.processes;
        let rest = self.global % self.block;
        let rest = if whole % self.processes == self.place { rest } else { 0 };
        let byte = |element| product("displacement", element, stride);
        // The displacement is unused if this process has no block. The stride is unused if this process has no block or only one
        // block. An unused value is set to 0, because the computed value may not fit in 64 bits.
        let step = if mine > 1 { byte(self.processes.saturating_mul(self.block))? } else { 0 };
        let first = if mine > 0 { byte(self.place * self.block)? } else { 0 };
        let last = byte(whole * self.block)?;
        let block = Datatype::hvector(width, self.block, 1, stride, child)?;
        let blocks = Datatype::hvector(width, mine, 1, step, &block)?;
        let end = Datatype::hvector(width, rest, 1, stride, child)?;
        let counts = [i64::from(mine > 0), i64::from(rest > 0)];
        let both = Datatype::structure(width, &counts, &[first, last], &[blocks, end])?;
        Datatype::resized(width, &both, 0, extent)
    }
}
