//! Datatypes as the standard defines them: a constructor, and the type map that follows from it.

use crate::basic::{ElementType, PAIRS};
use crate::mpi::CountWidth;
use std::fmt;
use std::rc::Rc;

pub type SharedType = Rc<TypeModel>;

/// Distribution of one dimension of a distributed array over processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distribution {
    None,
    /// Blocks of this many indices, one per process. `None` is the smallest size that suffices.
    Block(Option<i64>),
    /// Blocks of this many indices in turn. `None` is 1.
    Cyclic(Option<i64>),
}

/// One dimension of a distributed array.
#[derive(Clone, Copy, Debug)]
pub struct Dimension {
    pub size: i64,
    pub spread: Distribution,
    pub processes: i64,
    /// This process's place among them.
    pub at: i64,
}

impl Dimension {
    /// Returns the indices that belong to this process, ascending.
    pub fn owned(&self) -> Vec<i64> {
        let Dimension { size, processes, at, .. } = *self;
        let mine =
            |block: i64| (0..size).filter(|i| i / block % processes == at).collect::<Vec<_>>();
        match self.spread {
            Distribution::None => (0..size).collect(),
            Distribution::Block(block) => mine(block.unwrap_or((size + processes - 1) / processes)),
            Distribution::Cyclic(block) => mine(block.unwrap_or(1)),
        }
    }
}

/// Order of an array's elements in memory.
#[derive(Clone, Copy)]
pub enum ArrayOrder {
    /// The last index varies fastest.
    C,
    /// The first index varies fastest.
    Fortran,
}

impl ArrayOrder {
    /// Returns the name as in MPI's constants.
    fn name(self) -> &'static str {
        match self {
            ArrayOrder::C => "C",
            ArrayOrder::Fortran => "FORTRAN",
        }
    }
}

/// A constructor with its arguments. Displacements and strides that begin with `h` count bytes, all others count extents of the
/// child.
pub enum Shape {
    Basic(ElementType),
    /// An index into [`PAIRS`].
    Pair(usize),
    Dup(SharedType),
    Contiguous(i64, SharedType),
    Vector {
        count: i64,
        block: i64,
        stride: i64,
        child: SharedType,
    },
    Hvector {
        count: i64,
        block: i64,
        stride: i64,
        child: SharedType,
    },
    Indexed {
        blocks: Vec<i64>,
        at: Vec<i64>,
        child: SharedType,
    },
    Hindexed {
        blocks: Vec<i64>,
        at: Vec<i64>,
        child: SharedType,
    },
    IndexedBlock {
        block: i64,
        at: Vec<i64>,
        child: SharedType,
    },
    HindexedBlock {
        block: i64,
        at: Vec<i64>,
        child: SharedType,
    },
    Struct {
        blocks: Vec<i64>,
        at: Vec<i64>,
        children: Vec<SharedType>,
    },
    Subarray {
        sizes: Vec<i64>,
        subsizes: Vec<i64>,
        starts: Vec<i64>,
        order: ArrayOrder,
        child: SharedType,
    },
    Darray {
        dimensions: Vec<Dimension>,
        order: ArrayOrder,
        child: SharedType,
    },
    Resized {
        lb: i64,
        extent: i64,
        child: SharedType,
    },
}

pub struct TypeModel {
    pub shape: Shape,
    /// Counts of the constructor, if it has the form with large counts.
    pub width: CountWidth,
    /// Basic datatypes and their displacements in bytes, in the order of the type map.
    pub map: Vec<(ElementType, i64)>,
    /// The map as runs of bytes (displacement, length), with neighbours joined.
    pub runs: Vec<(i64, usize)>,
    pub lb: i64,
    pub ub: i64,
    /// First byte of data, and the byte after the last.
    pub true_lb: i64,
    pub true_ub: i64,
    /// True if a constructor has set its bounds, so that its parent derives its bounds from them.
    marked: bool,
}

impl Shape {
    /// Returns the children and the displacement of each, in the order of the type map.
    fn placed(&self) -> Vec<(i64, &SharedType)> {
        let block = |at: i64, n: i64, child: &'_ SharedType| {
            let extent = child.extent();
            (0..n).map(move |i| at + i * extent)
        };
        match self {
            Shape::Basic(_) | Shape::Pair(_) => Vec::new(),
            Shape::Dup(child) | Shape::Resized { child, .. } => vec![(0, child)],
            Shape::Contiguous(count, child) => {
                block(0, *count, child).map(|at| (at, child)).collect()
            }
            Shape::Vector { count, block: n, stride, child } => (0..*count)
                .flat_map(|i| block(i * stride * child.extent(), *n, child))
                .map(|at| (at, child))
                .collect(),
            Shape::Hvector { count, block: n, stride, child } => (0..*count)
                .flat_map(|i| block(i * stride, *n, child))
                .map(|at| (at, child))
                .collect(),
            Shape::Indexed { blocks, at, child } => (blocks.iter().zip(at))
                .flat_map(|(n, at)| block(at * child.extent(), *n, child))
                .map(|at| (at, child))
                .collect(),
            Shape::Hindexed { blocks, at, child } => (blocks.iter().zip(at))
                .flat_map(|(n, at)| block(*at, *n, child))
                .map(|at| (at, child))
                .collect(),
            Shape::IndexedBlock { block: n, at, child } => (at.iter())
                .flat_map(|at| block(at * child.extent(), *n, child))
                .map(|at| (at, child))
                .collect(),
            Shape::HindexedBlock { block: n, at, child } => {
                (at.iter()).flat_map(|at| block(*at, *n, child)).map(|at| (at, child)).collect()
            }
            Shape::Struct { blocks, at, children } => (blocks.iter().zip(at).zip(children))
                .flat_map(|((n, at), child)| block(*at, *n, child).map(move |at| (at, child)))
                .collect(),
            Shape::Subarray { sizes, subsizes, starts, order, child } => {
                let owned = (starts.iter().zip(subsizes)).map(|(a, n)| (*a..a + n).collect());
                grid(sizes, owned.collect(), *order, child)
            }
            Shape::Darray { dimensions, order, child } => {
                let sizes: Vec<i64> = dimensions.iter().map(|d| d.size).collect();
                grid(&sizes, dimensions.iter().map(Dimension::owned).collect(), *order, child)
            }
        }
    }

    /// Returns bounds that the constructor itself sets.
    fn bounds(&self) -> Option<(i64, i64)> {
        match self {
            Shape::Resized { lb, extent, .. } => Some((*lb, lb + extent)),
            Shape::Subarray { sizes, child, .. } => {
                Some((0, sizes.iter().product::<i64>() * child.extent()))
            }
            Shape::Darray { dimensions, child, .. } => {
                Some((0, dimensions.iter().map(|d| d.size).product::<i64>() * child.extent()))
            }
            Shape::Pair(i) => Some((0, PAIRS[*i].extent)),
            Shape::Dup(child) => Some((child.lb, child.ub)),
            _ => None,
        }
    }
}

/// Returns the elements of an array whose indices are among `owned`, with the fastest dimension innermost.
fn grid<'a>(
    sizes: &[i64],
    owned: Vec<Vec<i64>>,
    order: ArrayOrder,
    child: &'a SharedType,
) -> Vec<(i64, &'a SharedType)> {
    // From the fastest dimension to the slowest.
    let order: Vec<usize> = match order {
        ArrayOrder::Fortran => (0..sizes.len()).collect(),
        ArrayOrder::C => (0..sizes.len()).rev().collect(),
    };
    let mut at = vec![0];
    let mut step = child.extent();
    for d in order {
        at = owned[d].iter().flat_map(|i| at.iter().map(move |a| a + i * step)).collect();
        step *= sizes[d];
    }
    at.into_iter().map(|at| (at, child)).collect()
}

impl TypeModel {
    /// Makes the datatype of a constructor. If the standard leaves its bounds open (alignment, set bounds beside others), or
    /// elements would overlap, one more constructor around it sets the bounds.
    pub fn new(shape: Shape, width: CountWidth) -> SharedType {
        let (inner, certain) = TypeModel::exact(shape, width);
        let inner = Rc::new(inner);
        if certain && inner.extent() >= inner.span() {
            return inner;
        }
        let extent = inner.extent().max(inner.span());
        let shape = Shape::Resized { lb: inner.lb, extent, child: inner };
        Rc::new(TypeModel::exact(shape, width).0)
    }

    /// Makes the datatype of exactly this constructor, whose elements may overlap. Also returns true if its bounds are beyond
    /// doubt.
    pub fn exact(shape: Shape, width: CountWidth) -> (TypeModel, bool) {
        let mut map = Vec::new();
        let (mut lb, mut ub) = (i64::MAX, i64::MIN);
        let (mut some, mut all) = (false, true);
        match shape {
            Shape::Basic(b) => map.push((b, 0)),
            Shape::Pair(i) => {
                let pair = &PAIRS[i];
                map.push((ElementType::named(pair.first), 0));
                map.push((ElementType::named("INT"), pair.second_at));
            }
            _ => {}
        }
        for (at, child) in shape.placed() {
            map.extend(child.map.iter().map(|(b, d)| (*b, at + d)));
            lb = lb.min(at + child.lb);
            ub = ub.max(at + child.ub);
            some |= child.marked;
            all &= child.marked;
        }
        assert!(!map.is_empty(), "the generator makes no datatype without data");
        let true_lb = map.iter().map(|m| m.1).min().unwrap_or(0);
        let true_ub = map.iter().map(|(b, d)| d + b.size() as i64).max().unwrap_or(0);
        // The standard's definition without set bounds: rounded up to the strictest alignment.
        let align = map.iter().map(|m| m.0.align() as i64).max().unwrap_or(1);
        let rounded = true_lb + (true_ub - true_lb + align - 1) / align * align;
        let plain = (true_lb, rounded);
        let mut marked = some;
        let mut certain = true;
        if let Some(set) = shape.bounds() {
            (lb, ub) = set;
            marked = match &shape {
                Shape::Pair(_) => false,
                Shape::Dup(child) => child.marked,
                _ => true,
            };
        } else if let Shape::Basic(_) = shape {
            (lb, ub) = plain;
        } else {
            certain = if some { all } else { (lb, ub) == plain };
        }
        let runs = runs(&map);
        (TypeModel { shape, width, map, runs, lb, ub, true_lb, true_ub, marked }, certain)
    }

    pub fn basic(basic: ElementType) -> SharedType {
        TypeModel::new(Shape::Basic(basic), CountWidth::Int)
    }

    pub fn extent(&self) -> i64 {
        self.ub - self.lb
    }

    /// Returns the number of bytes from the first byte of data to the last.
    pub fn span(&self) -> i64 {
        self.true_ub - self.true_lb
    }

    /// Returns the number of bytes of data.
    pub fn size(&self) -> usize {
        self.map.iter().map(|m| m.0.size()).sum()
    }

    /// Returns true if `count` elements, one extent apart, write no byte twice.
    pub fn disjoint(&self, count: i64, extent: i64) -> bool {
        let every = |i: i64| self.runs.iter().map(move |(d, n)| (d + i * extent, *n as i64));
        let mut all: Vec<(i64, i64)> = (0..count).flat_map(every).collect();
        all.sort_unstable();
        all.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0)
    }
}

fn runs(map: &[(ElementType, i64)]) -> Vec<(i64, usize)> {
    let mut runs: Vec<(i64, usize)> = Vec::new();
    for (basic, at) in map {
        match runs.last_mut() {
            Some((start, len)) if *start + *len as i64 == *at => *len += basic.size(),
            _ => runs.push((*at, basic.size())),
        }
    }
    runs
}

impl fmt::Display for TypeModel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let c = self.width.suffix();
        match &self.shape {
            Shape::Basic(b) => write!(f, "{b}"),
            Shape::Pair(i) => f.write_str(PAIRS[*i].name),
            Shape::Dup(child) => write!(f, "dup({child})"),
            Shape::Contiguous(n, child) => write!(f, "contiguous{c}({n}, {child})"),
            Shape::Vector { count, block, stride, child } => {
                write!(f, "vector{c}({count}, {block}, {stride}, {child})")
            }
            Shape::Hvector { count, block, stride, child } => {
                write!(f, "hvector{c}({count}, {block}, {stride}, {child})")
            }
            Shape::Indexed { blocks, at, child } => {
                write!(f, "indexed{c}({blocks:?}, {at:?}, {child})")
            }
            Shape::Hindexed { blocks, at, child } => {
                write!(f, "hindexed{c}({blocks:?}, {at:?}, {child})")
            }
            Shape::IndexedBlock { block, at, child } => {
                write!(f, "indexed_block{c}({block}, {at:?}, {child})")
            }
            Shape::HindexedBlock { block, at, child } => {
                write!(f, "hindexed_block{c}({block}, {at:?}, {child})")
            }
            Shape::Struct { blocks, at, children } => {
                let list: Vec<String> = children.iter().map(|t| t.to_string()).collect();
                write!(f, "struct{c}({blocks:?}, {at:?}, [{}])", list.join(", "))
            }
            Shape::Subarray { sizes, subsizes, starts, order, child } => {
                let order = order.name();
                write!(f, "subarray{c}({sizes:?}, {subsizes:?}, {starts:?}, {order}, {child})")
            }
            Shape::Darray { dimensions, order, child } => {
                let order = order.name();
                let one =
                    |d: &Dimension| format!("{} {:?} {}/{}", d.size, d.spread, d.at, d.processes);
                let list: Vec<String> = dimensions.iter().map(one).collect();
                write!(f, "darray{c}([{}], {order}, {child})", list.join(", "))
            }
            Shape::Resized { lb, extent, child } => {
                write!(f, "resized{c}({lb}, {extent}, {child})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int() -> SharedType {
        TypeModel::basic(ElementType::named("INT"))
    }

    fn places(t: &TypeModel) -> Vec<i64> {
        t.map.iter().map(|m| m.1).collect()
    }

    #[test]
    fn a_subarray_in_both_orders() {
        let make = |order| {
            let (sizes, subsizes, starts) = (vec![3, 4], vec![2, 2], vec![1, 1]);
            TypeModel::new(
                Shape::Subarray { sizes, subsizes, starts, order, child: int() },
                CountWidth::Int,
            )
        };
        assert_eq!(places(&make(ArrayOrder::C)), [20, 24, 36, 40]);
        // Index (i, j) is at i + 3 j: (1,1), (2,1), (1,2), (2,2).
        assert_eq!(places(&make(ArrayOrder::Fortran)), [16, 20, 28, 32]);
        assert_eq!(make(ArrayOrder::Fortran).extent(), 48);
    }

    #[test]
    fn a_distributed_array() {
        // 7 elements in blocks of 2 in turn over 2 processes: the second has 2, 3 and 6.
        let spread = Distribution::Cyclic(Some(2));
        let d = Dimension { size: 7, spread, processes: 2, at: 1 };
        assert_eq!(d.owned(), [2, 3, 6]);
        let d = Dimension { size: 7, spread: Distribution::Block(None), processes: 2, at: 1 };
        assert_eq!(d.owned(), [4, 5, 6]);
    }

    #[test]
    fn bounds_in_doubt_are_set() {
        let byte = TypeModel::basic(ElementType::named("BYTE"));
        let (blocks, at) = (vec![1, 1], vec![0, 8]);
        let t = TypeModel::new(
            Shape::Struct { blocks, at, children: vec![int(), byte] },
            CountWidth::Int,
        );
        assert!(matches!(t.shape, Shape::Resized { lb: 0, extent: 9, .. }), "{t}");
        let t = TypeModel::new(
            Shape::Vector { count: 2, block: 1, stride: 3, child: int() },
            CountWidth::Int,
        );
        assert!(matches!(t.shape, Shape::Vector { .. }), "{t}");
        assert_eq!((t.lb, t.ub, places(&t)), (0, 16, vec![0, 12]));
    }

    #[test]
    fn overlap_is_seen() {
        let t = TypeModel::new(
            Shape::Vector { count: 3, block: 1, stride: 4, child: int() },
            CountWidth::Int,
        );
        assert!(t.disjoint(4, 4), "columns of a matrix");
        assert!(!t.disjoint(5, 4));
    }
}
