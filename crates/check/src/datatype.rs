//! Datatypes of the program: signature, and places in memory. Both are computed from the calls that built the type.

use crate::library::mpi;
use crate::signature::TypeSignature;
use rustc_hash::FxHashMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Handle of the last predefined datatype.
const LAST_PREDEFINED: usize = 0x3ff;

/// Maximum number of blocks of a type that is compared with other ranges of memory. A type with more blocks is left out.
const MAX_BLOCKS: usize = 1024;

/// A piece of memory relative to the address of a buffer, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MemoryRange {
    pub offset: i64,
    pub length: i64,
}

/// Facts about a datatype.
pub struct TypeFacts {
    /// Number of the datatype in this process. No other datatype gets the number.
    pub number: u64,
    /// Size of an element in bytes, without gaps.
    pub size: u64,
    pub signature: TypeSignature,
    /// Memory of an element; `None` if there are too many blocks, or if the blocks are not computed.
    pub blocks: Option<Vec<MemoryRange>>,
    /// True if the memory of an element follows the order of the signature, without overlaps. Only then do equal data in memory have equal
    /// bytes, whatever the types are.
    pub in_order: bool,
    pub extent: i64,
}

impl TypeFacts {
    /// Returns true if the memory of `count` elements follows the order of the signature, without overlaps.
    pub fn is_in_order(&self, count: i64) -> bool {
        let span = self.blocks.as_ref().and_then(|blocks| Some((blocks.first()?, blocks.last()?)));
        let is_apart = span
            .is_none_or(|(first, last)| last.offset + last.length - first.offset <= self.extent);
        self.in_order && (count <= 1 || is_apart)
    }
}

/// Class of MPI_PACKED, which matches every type.
pub const PACKED: u8 = 1;

/// Classes of types that are shorter than four bytes.
pub const SHORT_CLASSES: [u8; 9] = [PACKED, 10, 11, 20, 21, 31, 50, 51, 60];

/// A class of predefined types, which match each other, with its size in bytes.
#[derive(Clone, Copy)]
struct PredefinedClass {
    handle: usize,
    name: &'static str,
    /// Classes of the elements, each with its size.
    classes: &'static [(u8, i64)],
}

macro_rules! predefined {
    ($($handle:literal $name:literal $($class:literal $size:literal),+;)*) => {
        &[$(PredefinedClass { handle: $handle, name: concat!("MPI_", $name), classes: &[$(($class, $size)),+] }),*]
    };
}

/// PredefinedClass types. Types of the same kind and size are one class: 10 to 19 signed integers, 20 to 29 unsigned integers, 30 to 39
/// floating-point numbers, 40 to 49 complex numbers, 50 to 59 logical values, 60 to 69 characters.
const PREDEFINED: &[PredefinedClass] = predefined! {
    0x201 "AINT" 13 8; 0x202 "COUNT" 13 8; 0x203 "OFFSET" 13 8; 0x207 "PACKED" 1 1; 0x208 "SHORT" 11 2; 0x209 "INT" 12 4; 0x20a "LONG" 13 8;
    0x20b "LONG_LONG" 13 8; 0x20c "UNSIGNED_SHORT" 21 2; 0x20d "UNSIGNED" 22 4; 0x20e "UNSIGNED_LONG" 23 8;
    0x20f "UNSIGNED_LONG_LONG" 23 8; 0x210 "FLOAT" 32 4; 0x212 "C_FLOAT_COMPLEX" 43 8; 0x213 "CXX_FLOAT_COMPLEX" 43 8;
    0x214 "DOUBLE" 33 8; 0x216 "C_DOUBLE_COMPLEX" 44 16; 0x217 "CXX_DOUBLE_COMPLEX" 44 16; 0x218 "LOGICAL" 52 4; 0x219 "INTEGER" 12 4;
    0x21a "REAL" 32 4; 0x21b "COMPLEX" 43 8; 0x21c "DOUBLE_PRECISION" 33 8; 0x21d "DOUBLE_COMPLEX" 44 16; 0x21e "CHARACTER" 60 1;
    0x220 "LONG_DOUBLE" 35 16; 0x224 "C_LONG_DOUBLE_COMPLEX" 45 32; 0x225 "CXX_LONG_DOUBLE_COMPLEX" 45 32;
    0x228 "FLOAT_INT" 32 4, 12 4; 0x229 "DOUBLE_INT" 33 8, 12 4; 0x22a "LONG_INT" 13 8, 12 4; 0x22b "2INT" 12 4, 12 4;
    0x22c "SHORT_INT" 11 2, 12 4; 0x22d "LONG_DOUBLE_INT" 35 16, 12 4; 0x230 "2REAL" 32 4, 32 4; 0x231 "2DOUBLE_PRECISION" 33 8, 33 8;
    0x232 "2INTEGER" 12 4, 12 4; 0x238 "C_BOOL" 50 1; 0x239 "CXX_BOOL" 50 1; 0x23c "WCHAR" 62 4; 0x240 "INT8_T" 10 1; 0x241 "UINT8_T" 20 1;
    0x243 "CHAR" 60 1; 0x244 "SIGNED_CHAR" 10 1; 0x245 "UNSIGNED_CHAR" 20 1; 0x247 "BYTE" 20 1; 0x248 "INT16_T" 11 2; 0x249 "UINT16_T" 21 2;
    0x250 "INT32_T" 12 4; 0x251 "UINT32_T" 22 4; 0x258 "INT64_T" 13 8; 0x259 "UINT64_T" 23 8; 0x2c0 "LOGICAL1" 50 1; 0x2c1 "INTEGER1" 10 1;
    0x2c8 "LOGICAL2" 51 2; 0x2c9 "INTEGER2" 11 2; 0x2ca "REAL2" 31 2; 0x2d0 "LOGICAL4" 52 4; 0x2d1 "INTEGER4" 12 4; 0x2d2 "REAL4" 32 4;
    0x2d3 "COMPLEX4" 42 4; 0x2d8 "LOGICAL8" 53 8; 0x2d9 "INTEGER8" 13 8; 0x2da "REAL8" 33 8; 0x2db "COMPLEX8" 43 8; 0x2e0 "LOGICAL16" 54 16;
    0x2e1 "INTEGER16" 14 16; 0x2e2 "REAL16" 34 16; 0x2e3 "COMPLEX16" 44 16; 0x2eb "COMPLEX32" 45 32;
};

/// Returns a name of a class for reports.
pub fn class_name(class: u8) -> &'static str {
    let first = PREDEFINED.iter().find(|p| p.classes.len() == 1 && p.classes[0].0 == class);
    first.map_or("?", |p| p.name)
}

/// Combiners of MPI_Type_get_envelope in the standard ABI.
mod combiner {
    pub const NAMED: i32 = 101;
    pub const DUP: i32 = 102;
    pub const CONTIGUOUS: i32 = 103;
    pub const VECTOR: i32 = 104;
    pub const HVECTOR: i32 = 105;
    pub const INDEXED: i32 = 106;
    pub const HINDEXED: i32 = 107;
    pub const INDEXED_BLOCK: i32 = 108;
    pub const HINDEXED_BLOCK: i32 = 109;
    pub const STRUCT: i32 = 110;
    pub const SUBARRAY: i32 = 111;
    pub const DARRAY: i32 = 112;
    pub const RESIZED: i32 = 116;
}

/// Facts about datatypes, by handle.
#[derive(Default)]
pub struct Datatypes(FxHashMap<usize, Arc<TypeFacts>>);

/// Parts of a type, as MPI_Type_get_contents returns them.
struct TypeContents {
    combiner: c_int,
    /// Counts of a type that was made with large counts, with its places in bytes behind them; else the integers.
    counts: Vec<i64>,
    /// Places in bytes of a type that was made without large counts.
    places: Vec<i64>,
    types: Vec<usize>,
}

impl Datatypes {
    /// Returns the facts about a datatype; `None` for a handle that is no datatype.
    pub fn facts(&mut self, handle: usize) -> Option<Arc<TypeFacts>> {
        if let Some(facts) = self.0.get(&handle) {
            return Some(facts.clone());
        }
        let facts = Arc::new(self.compute(handle)?);
        self.0.insert(handle, facts.clone());
        Some(facts)
    }

    /// Forgets a datatype, because its handle may be used again.
    pub fn forget(&mut self, handle: usize) {
        if handle > LAST_PREDEFINED {
            self.0.remove(&handle);
        }
    }

    fn compute(&mut self, handle: usize) -> Option<TypeFacts> {
        let (mut lower, mut extent, mut size) = (0i64, 0i64, 0i64);
        // SAFETY: the results are local variables. The library checks the handle.
        let codes = unsafe {
            [
                mpi!(MPI_Type_get_extent_c(handle, &raw mut lower, &raw mut extent)),
                mpi!(MPI_Type_size_c(handle, &raw mut size)),
            ]
        };
        if codes != [0; 2] {
            return None;
        }
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let (number, size) = (NUMBERS.fetch_add(1, Ordering::Relaxed), size.max(0) as u64);
        if let Some(known) = PREDEFINED.iter().find(|known| known.handle == handle) {
            let (signature, blocks) = predefined(known);
            let blocks = Some(blocks);
            return Some(TypeFacts { number, size, signature, blocks, in_order: true, extent });
        }
        let contents = contents(handle)?;
        let of: Option<Vec<_>> = contents.types.iter().map(|&inner| self.facts(inner)).collect();
        for &inner in contents.types.iter().filter(|&&inner| inner > LAST_PREDEFINED) {
            let mut inner = inner;
            // MPI_Type_get_contents has made this handle.
            self.forget(inner);
            // SAFETY: the handle is ours.
            unsafe { mpi!(MPI_Type_free(&raw mut inner)) };
        }
        let of = of?;
        let blocks = blocks(&contents, &of);
        let in_order = blocks.as_ref().is_some_and(|blocks| in_order(&contents, &of, blocks));
        Some(TypeFacts {
            number,
            size,
            signature: signature(&contents, &of, size)?,
            blocks: blocks.map(merged).filter(|blocks| blocks.len() <= MAX_BLOCKS),
            in_order,
            extent,
        })
    }
}

/// Returns the signature and the memory of a predefined type.
fn predefined(known: &PredefinedClass) -> (TypeSignature, Vec<MemoryRange>) {
    let elements = known.classes.iter().map(|&(class, _)| TypeSignature::element(class)).collect();
    let mut offset = 0;
    let block = |&(_, length): &(u8, i64)| {
        // C aligns the second member of a pair to its size, which is at most the first one's.
        offset = (offset + length - 1) / length * length;
        let block = MemoryRange { offset, length };
        offset += length;
        block
    };
    let blocks = merged(known.classes.iter().map(block).collect());
    (TypeSignature::sequence(elements), blocks)
}

fn contents(handle: usize) -> Option<TypeContents> {
    let (mut ints, mut addresses, mut counts, mut types, mut combiner) =
        (0i64, 0i64, 0i64, 0i64, 0 as c_int);
    // SAFETY: the results are local variables and arrays of the sizes that the library has returned.
    unsafe {
        let code = mpi!(MPI_Type_get_envelope_c(
            handle,
            &raw mut ints,
            &raw mut addresses,
            &raw mut counts,
            &raw mut types,
            &raw mut combiner
        ));
        if code != 0 || combiner == combiner::NAMED {
            return None;
        }
        let mut integers = vec![0 as c_int; ints as usize];
        let mut places = vec![0i64; addresses as usize];
        let mut large = vec![0i64; counts as usize];
        let mut inner = vec![0usize; types as usize];
        let code = mpi!(MPI_Type_get_contents_c(
            handle,
            ints,
            addresses,
            counts,
            types,
            integers.as_mut_ptr(),
            places.as_mut_ptr(),
            large.as_mut_ptr(),
            inner.as_mut_ptr()
        ));
        let all = match large.is_empty() {
            false => large,
            true => integers.into_iter().map(i64::from).collect(),
        };
        (code == 0).then_some(TypeContents { combiner, counts: all, places, types: inner })
    }
}

/// Blocks of a type constructor: repetitions of a type at a place in bytes.
struct Part {
    place: i64,
    count: i64,
    inner: usize,
}

/// Returns the parts of a type; `None` for types whose places are not computed.
fn parts(contents: &TypeContents, of: &[Arc<TypeFacts>]) -> Option<Vec<Part>> {
    let (c, extent) = (&contents.counts, of.first()?.extent);
    let part = |place, count| Part { place, count, inner: 0 };
    // Places in bytes are addresses, or behind the counts.
    let byte_place =
        |at: usize, behind: usize| contents.places.get(at).or_else(|| c.get(behind + at)).copied();
    if matches!(contents.combiner, combiner::DUP | combiner::RESIZED) {
        return Some(vec![part(0, 1)]);
    }
    let n = *c.first()?;
    let each = 0..usize::try_from(n).ok()?;
    match contents.combiner {
        combiner::CONTIGUOUS => Some(vec![part(0, n)]),
        combiner::VECTOR => Some(each.map(|i| part(i as i64 * c[2] * extent, c[1])).collect()),
        combiner::HVECTOR => {
            let stride = byte_place(0, 2)?;
            Some(each.map(|i| part(i as i64 * stride, c[1])).collect())
        }
        combiner::INDEXED => {
            let len = each.len();
            Some(each.map(|i| part(c[1 + len + i] * extent, c[1 + i])).collect())
        }
        combiner::HINDEXED => {
            let len = each.len();
            each.map(|i| Some(part(byte_place(i, 1 + len)?, c[1 + i]))).collect()
        }
        combiner::INDEXED_BLOCK => Some(each.map(|i| part(c[2 + i] * extent, c[1])).collect()),
        combiner::HINDEXED_BLOCK => each.map(|i| Some(part(byte_place(i, 2)?, c[1]))).collect(),
        combiner::STRUCT => {
            let len = each.len();
            each.map(|i| Some(Part { place: byte_place(i, 1 + len)?, count: c[1 + i], inner: i }))
                .collect()
        }
        _ => None,
    }
}

/// Returns the signature of a type of `size` bytes.
fn signature(contents: &TypeContents, of: &[Arc<TypeFacts>], size: u64) -> Option<TypeSignature> {
    if matches!(contents.combiner, combiner::SUBARRAY | combiner::DARRAY) {
        let inner = of.first()?;
        return Some(inner.signature.repeat(size.checked_div(inner.size).unwrap_or(0)));
    }
    let parts = parts(contents, of)?;
    let whole = |part: &Part| of[part.inner].signature.repeat(part.count.max(0) as u64);
    Some(TypeSignature::sequence(parts.iter().map(whole).collect()))
}

/// Returns true if the memory of a type follows the order of its signature. `blocks`: memory of its parts, in the order of the parts.
fn in_order(contents: &TypeContents, of: &[Arc<TypeFacts>], blocks: &[MemoryRange]) -> bool {
    let parts = parts(contents, of).unwrap_or_default();
    parts.iter().all(|part| of[part.inner].is_in_order(part.count))
        && blocks.windows(2).all(|pair| pair[0].offset + pair[0].length <= pair[1].offset)
}

/// Returns the memory of a type.
fn blocks(contents: &TypeContents, of: &[Arc<TypeFacts>]) -> Option<Vec<MemoryRange>> {
    let mut all = Vec::new();
    for part in parts(contents, of)? {
        let inner = &of[part.inner];
        let blocks = inner.blocks.as_ref()?;
        let whole = repeated(blocks, inner.extent, part.count)?;
        let shifted = whole
            .into_iter()
            .map(|block| MemoryRange { offset: block.offset + part.place, ..block });
        all.extend(shifted);
        if all.len() > 4 * MAX_BLOCKS {
            return None;
        }
    }
    Some(all)
}

/// Returns the memory of `count` elements; `None` if there are too many blocks.
pub fn repeated(blocks: &[MemoryRange], extent: i64, count: i64) -> Option<Vec<MemoryRange>> {
    if let [MemoryRange { offset, length }] = *blocks
        && length == extent
    {
        return Some(vec![MemoryRange { offset, length: length * count.max(0) }]);
    }
    if blocks.len() as i64 * count > MAX_BLOCKS as i64 {
        return None;
    }
    let at =
        |i: i64| blocks.iter().map(move |b| MemoryRange { offset: b.offset + i * extent, ..*b });
    Some(merged((0..count.max(0)).flat_map(at).collect()))
}

/// Sorts blocks, joins neighbors, and leaves out empty blocks.
fn merged(mut blocks: Vec<MemoryRange>) -> Vec<MemoryRange> {
    blocks.retain(|block| block.length > 0);
    blocks.sort();
    let mut out: Vec<MemoryRange> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match out.last_mut() {
            Some(last) if last.offset + last.length >= block.offset => {
                let end = (block.offset + block.length).max(last.offset + last.length);
                last.length = end - last.offset;
            }
            _ => out.push(block),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn block(offset: i64, length: i64) -> MemoryRange {
        MemoryRange { offset, length }
    }

    #[test]
    fn neighbors_are_joined_and_gaps_stay() {
        assert_eq!(merged(vec![block(8, 4), block(0, 4), block(4, 4)]), [block(0, 12)]);
        assert_eq!(merged(vec![block(0, 4), block(8, 4), block(9, 0)]), [block(0, 4), block(8, 4)]);
    }

    #[test]
    fn repetitions_without_gaps_are_one_block() {
        assert_eq!(repeated(&[block(0, 8)], 8, 1 << 30), Some(vec![block(0, 8 << 30)]));
        let every_other = repeated(&[block(0, 4)], 8, 3).unwrap();
        assert_eq!(every_other, [block(0, 4), block(8, 4), block(16, 4)]);
        assert_eq!(repeated(&[block(0, 4)], 8, 1 << 30), None);
    }

    #[test]
    fn elements_that_overlap_or_go_back_are_not_in_order() {
        let facts = |extent, in_order| TypeFacts {
            number: 0,
            size: 8,
            signature: TypeSignature::element(33),
            blocks: Some(vec![block(0, 4), block(8, 4)]),
            in_order,
            extent,
        };
        assert!(facts(12, true).is_in_order(3) && facts(4, true).is_in_order(1));
        assert!(!facts(4, true).is_in_order(2) && !facts(-12, true).is_in_order(2));
        assert!(!facts(12, false).is_in_order(1));
    }

    #[test]
    fn pairs_have_the_places_of_their_members_in_c() {
        let pair = PREDEFINED.iter().find(|known| known.name == "MPI_SHORT_INT").unwrap();
        assert_eq!(predefined(pair).1, [block(0, 2), block(4, 4)]);
    }

    #[test]
    fn classes_have_one_size() {
        let mut sizes = HashMap::new();
        for (class, size) in PREDEFINED.iter().flat_map(|known| known.classes) {
            assert_eq!(*sizes.entry(*class).or_insert(*size), *size, "class {class}");
        }
    }
}
