//! Summary of a type map, computed while a constructor goes through its blocks.

use crate::{Basic, Datatype, DatatypeError, Type};

/// Offset of the lowest byte and of the byte after the highest byte, from the base address.
pub(crate) type Bounds = (i64, i64);

/// Properties of a type map that are known without listing the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeShape {
    pub size: i64,
    /// Number of basic elements; a pair type counts as two.
    pub elements: i64,
    /// Bounds of the data; `None` for a type without data.
    pub data: Option<Bounds>,
    /// Bounds that follow from the bounds of the members and from the padding of a struct. `None` for a type without data.
    pub span: Option<Bounds>,
    /// Bounds that `MPI_Type_create_resized` set, in this type or in a member. These bounds replace the bounds of the data.
    pub marks: Option<Bounds>,
    /// Strictest alignment of the basic types, in bytes. A struct is padded to a multiple of this alignment.
    pub align: usize,
    /// The predefined type of all data, if all data have the same type.
    pub uniform: Option<Basic>,
}

impl TypeShape {
    /// Returns the lower and the upper bound: the bounds that a resize set, if any (MPI 5.0, 5.1.7), otherwise the bounds of all
    /// members.
    ///
    /// Only structs are padded, as a C compiler pads them ([`padded`](TypeShape::padded)). The standard adds an epsilon "if a type
    /// requires alignment", and does not say which types do (5.1.7). This library can read data at any address, so blocks that a
    /// program places by strides or displacements need no padding. Without padding, the extent is the extent that the program asked
    /// for, rounding never makes nested types overlap, and the results equal the results of MPICH and of libraries derived from
    /// MPICH.
    pub fn bounds(&self) -> Result<Bounds, DatatypeError> {
        let (lb, ub) = self.marks.or(self.span).unwrap_or((0, 0));
        ub.checked_sub(lb).ok_or(DatatypeError::Overflow { what: "extent" })?;
        Ok((lb, ub))
    }

    /// Rounds the extent up to the strictest alignment, as C does for a struct.
    pub fn padded(self) -> Result<TypeShape, DatatypeError> {
        let Some((lb, end)) = self.span else { return Ok(self) };
        let align = self.align as i64;
        let extent = end.checked_sub(lb).and_then(|x| x.checked_add(align - 1));
        let ub = extent.and_then(|x| lb.checked_add(x - x % align));
        let ub = ub.ok_or(DatatypeError::Overflow { what: "extent" })?;
        Ok(TypeShape { span: Some((lb, ub)), ..self })
    }
}

/// Sum of blocks of types. The sum is computed in 128 bits, and checked for overflow at the end.
pub(crate) struct BlockSum {
    size: i128,
    elements: i128,
    data: Option<(i128, i128)>,
    span: Option<(i128, i128)>,
    marks: Option<(i128, i128)>,
    align: usize,
    uniform: Uniform,
}

enum Uniform {
    Nothing,
    One(Basic),
    Mixed,
}

impl BlockSum {
    pub fn new() -> BlockSum {
        BlockSum {
            size: 0,
            elements: 0,
            data: None,
            span: None,
            marks: None,
            align: 1,
            uniform: Uniform::Nothing,
        }
    }

    /// Adds `times` blocks of `length` elements of `child`. The first block lies `at` bytes from the base, and the blocks are
    /// `stride` bytes apart. If `times` or `length` is zero, adds nothing.
    pub fn add(&mut self, child: &Datatype, at: i64, times: i64, stride: i64, length: i64) {
        if times == 0 || length == 0 {
            return;
        }
        let shape = child.shape();
        let copies = i128::from(times) * i128::from(length);
        self.size = self.size.saturating_add(copies.saturating_mul(shape.size.into()));
        self.elements = self.elements.saturating_add(copies.saturating_mul(shape.elements.into()));
        self.align = self.align.max(shape.align);
        // Offsets are linear in both indices, so the smallest and the largest offset belong to first or last elements.
        let last = i128::from(length - 1) * i128::from(child.extent());
        let far = i128::from(times - 1) * i128::from(stride);
        for corner in [0, last, far, far.saturating_add(last)] {
            let place = corner.saturating_add(at.into());
            widen(&mut self.data, shape.data, place);
            widen(&mut self.span, shape.span, place);
            widen(&mut self.marks, shape.marks, place);
        }
        if shape.size > 0 {
            self.uniform = match (&self.uniform, shape.uniform) {
                (Uniform::Nothing, Some(basic)) => Uniform::One(basic),
                (Uniform::One(a), Some(b)) if *a == b => Uniform::One(b),
                _ => Uniform::Mixed,
            };
        }
    }

    pub fn shape(self) -> Result<TypeShape, DatatypeError> {
        let narrow =
            |what, value: i128| i64::try_from(value).or(Err(DatatypeError::Overflow { what }));
        let pair = |bounds: Option<(i128, i128)>| match bounds {
            None => Ok(None),
            Some((low, high)) => Ok(Some((narrow("extent", low)?, narrow("extent", high)?))),
        };
        Ok(TypeShape {
            size: narrow("size", self.size)?,
            elements: narrow("number of elements", self.elements)?,
            data: pair(self.data)?,
            span: pair(self.span)?,
            marks: pair(self.marks)?,
            align: self.align,
            uniform: match self.uniform {
                Uniform::One(basic) => Some(basic),
                _ => None,
            },
        })
    }
}

fn widen(into: &mut Option<(i128, i128)>, bounds: Option<Bounds>, place: i128) {
    let Some((low, high)) = bounds else { return };
    let (low, high) = (place.saturating_add(low.into()), place.saturating_add(high.into()));
    *into = Some(into.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
}

/// Kinds of type maps that constructors make. The copy program is compiled from such a map.
pub(crate) enum TypeConstructor {
    Named(Basic),
    /// `count` blocks of `length` elements of `child`, `stride` bytes apart.
    Grid {
        child: Type,
        count: usize,
        stride: i64,
        length: usize,
    },
    /// Blocks of a single child: place in bytes, length in elements.
    Blocks {
        child: Type,
        blocks: Box<[(i64, usize)]>,
    },
    /// Blocks of different children.
    Fields(Box<[(Type, i64, usize)]>),
    /// Map of another type, for duplicates, resized types, and types that are built from auxiliary types.
    Same(Type),
}
