//! Datatypes: immutable descriptions with shared ownership.

pub mod contents;
pub mod shape;

use crate::layout::{ProgramNode, ProgramNodeKind, Sequence};
use crate::{Basic, Combiner, Contents, DatatypeError};
use shape::{TypeConstructor, TypeShape};
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsString;
use std::fmt;
use std::rc::Rc;

/// Shared reference to a datatype. Operations hold such a reference, so that `MPI_Type_free` never frees a type in use.
pub type Type = Rc<Datatype>;

/// Maximum nesting depth of types. A program that nests deeper gets an error, not a stack overflow.
pub const DEPTH_MAX: usize = 1024;

/// An MPI datatype. Only its name, its committed flag and its compiled form ever change.
///
/// All places and sizes are in bytes. The constructors ensure that all these numbers fit in 63 bits.
pub struct Datatype {
    shape: TypeShape,
    lb: i64,
    ub: i64,
    depth: usize,
    recipe: TypeConstructor,
    combiner: Combiner,
    contents: Contents,
    program: OnceCell<ProgramNode>,
    committed: Cell<bool>,
    name: RefCell<OsString>,
}

impl Datatype {
    pub(crate) fn make(
        combiner: Combiner,
        contents: Contents,
        recipe: TypeConstructor,
        shape: TypeShape,
    ) -> Result<Type, DatatypeError> {
        let (lb, ub) = shape.bounds()?;
        let children = |recipe: &TypeConstructor| match recipe {
            TypeConstructor::Named(_) => 0,
            TypeConstructor::Grid { child, .. }
            | TypeConstructor::Blocks { child, .. }
            | TypeConstructor::Same(child) => child.depth + 1,
            TypeConstructor::Fields(fields) => {
                fields.iter().map(|f| f.0.depth + 1).max().unwrap_or(0)
            }
        };
        let depth =
            children(&recipe).max(contents.types.iter().map(|t| t.depth + 1).max().unwrap_or(0));
        if depth > DEPTH_MAX {
            return Err(DatatypeError::Depth { limit: DEPTH_MAX });
        }
        Ok(Rc::new(Datatype {
            shape,
            lb,
            ub,
            depth,
            recipe,
            combiner,
            contents,
            program: OnceCell::new(),
            committed: Cell::new(false),
            name: RefCell::default(),
        }))
    }

    pub(crate) fn named(basic: Basic) -> Type {
        let shape = TypeShape {
            size: basic.size() as i64,
            elements: if basic.pair().is_some() { 2 } else { 1 },
            data: Some((0, basic.true_extent() as i64)),
            span: Some((0, basic.extent() as i64)),
            marks: None,
            align: basic.align(),
            uniform: Some(basic),
        };
        let made = Datatype::make(
            Combiner::Named,
            Contents::default(),
            TypeConstructor::Named(basic),
            shape,
        );
        let made = made.expect("predefined types are small");
        made.committed.set(true);
        made.set_name(basic.name());
        made
    }

    pub(crate) fn shape(&self) -> &TypeShape {
        &self.shape
    }

    /// Returns the number of bytes of data in an element (`MPI_Type_size`).
    pub fn size(&self) -> usize {
        self.shape.size as usize
    }

    /// Returns the lower bound.
    pub fn lb(&self) -> i64 {
        self.lb
    }

    /// Returns the upper bound.
    pub fn ub(&self) -> i64 {
        self.ub
    }

    /// Returns the number of bytes from one element to the next, which a resize may have made negative.
    pub fn extent(&self) -> i64 {
        self.ub - self.lb
    }

    /// Returns the offset of the first byte of data; 0 if there is no data.
    pub fn true_lb(&self) -> i64 {
        self.shape.data.map_or(0, |(low, _)| low)
    }

    /// Returns the offset past the last byte of data; 0 if there is no data.
    pub fn true_ub(&self) -> i64 {
        self.shape.data.map_or(0, |(_, high)| high)
    }

    /// Returns the number of bytes between [`true_lb`](Datatype::true_lb) and [`true_ub`](Datatype::true_ub).
    pub fn true_extent(&self) -> i64 {
        self.true_ub() - self.true_lb()
    }

    /// Returns the strictest alignment of the type's basic types, in bytes.
    pub fn align(&self) -> usize {
        self.shape.align
    }

    /// Returns the number of basic elements in an element. A pair type counts as two, since it is defined as a struct.
    pub fn elements(&self) -> usize {
        self.shape.elements as usize
    }

    /// Returns this type as a predefined type, or `None` if this type is derived. A duplicate of a predefined type counts as
    /// derived.
    pub fn basic(&self) -> Option<Basic> {
        match self.recipe {
            TypeConstructor::Named(basic) => Some(basic),
            _ => None,
        }
    }

    /// Returns the predefined type of all data, if all data have the same type. The type signature consists of this type and the
    /// size.
    pub fn uniform(&self) -> Option<Basic> {
        self.shape.uniform
    }

    /// Returns the predefined type whose elements are equal to the elements of this type, byte for byte. A duplicate has such a
    /// type, and so has a contiguous type of one element. Reductions on this type are the reductions of the predefined type.
    pub fn equivalent(&self) -> Option<Basic> {
        let basic = self.shape.uniform?;
        let same = self.size() == basic.size()
            && (self.lb, self.extent()) == (0, basic.extent() as i64)
            && (self.true_lb(), self.true_ub()) == (0, basic.true_extent() as i64);
        same.then_some(basic)
    }

    /// Returns true if any number of elements has the same bytes in packed form and in memory, from the base address on.
    pub fn contiguous(&self) -> bool {
        self.lb == 0
            && self.extent() == self.shape.size
            && self.true_lb() == 0
            && self.true_ub() == self.shape.size
            && (self.size() == 0 || matches!(self.program().kind, ProgramNodeKind::Run))
    }

    /// Returns the constructor by which the type was made.
    pub fn combiner(&self) -> Combiner {
        self.combiner
    }

    /// Returns the constructor's arguments.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Allows the type in communication, and compiles it.
    pub fn commit(&self) {
        self.program();
        self.committed.set(true);
    }

    /// Returns true if the type may be used in communication.
    pub fn committed(&self) -> bool {
        self.committed.get()
    }

    /// Returns the name. The name of a derived type is empty until it is set.
    pub fn name(&self) -> OsString {
        self.name.borrow().clone()
    }

    /// Sets the name that [`Datatype::name`] returns. Only the program uses this name.
    pub fn set_name(&self, name: impl Into<OsString>) {
        *self.name.borrow_mut() = name.into();
    }

    /// Returns the copy program, which is compiled at the first use.
    pub(crate) fn program(&self) -> &ProgramNode {
        self.program.get_or_init(|| self.compile())
    }

    fn compile(&self) -> ProgramNode {
        match &self.recipe {
            TypeConstructor::Named(basic) => match (basic.pair(), basic.index_offset()) {
                (Some((value, _)), Some((offset, index))) => {
                    let mut members = Sequence::default();
                    members.push_run(0, value.size());
                    members.push_run(offset as i64, index.size());
                    members.finish()
                }
                _ => ProgramNode::run(0, basic.size()),
            },
            TypeConstructor::Grid { child, count, stride, length } => {
                child.program().clone().repeated(*length, child.extent()).repeated(*count, *stride)
            }
            TypeConstructor::Blocks { child, blocks } => {
                let mut all = Sequence::with_capacity(blocks.len());
                for &(at, length) in blocks {
                    all.push(child.block(at, length));
                }
                let merged = all.finish();
                // Runs of equal length are copied without branches, which saves more time than merging a few neighbours would save.
                match &merged.kind {
                    ProgramNodeKind::Blocks(few) if 2 * few.len() > blocks.len() => {
                        child.scattered(blocks).unwrap_or(merged)
                    }
                    _ => merged,
                }
            }
            TypeConstructor::Fields(fields) => {
                let mut all = Sequence::with_capacity(fields.len());
                for (child, at, length) in fields {
                    all.push(child.block(*at, *length));
                }
                all.finish()
            }
            TypeConstructor::Same(other) => other.program().clone(),
        }
    }

    /// Returns the blocks as runs at listed places. Returns `None` unless all blocks have the same length and each block is one
    /// run.
    fn scattered(&self, blocks: &[(i64, usize)]) -> Option<ProgramNode> {
        let &(origin, length) = blocks.first()?;
        let first = self.block(origin, length);
        let alike = blocks.iter().all(|b| b.1 == length);
        (alike && matches!(first.kind, ProgramNodeKind::Run)).then(|| ProgramNode {
            offset: first.offset,
            size: first.size * blocks.len(),
            kind: ProgramNodeKind::Scattered {
                block: first.size,
                offsets: blocks.iter().map(|b| b.0 - origin).collect(),
            },
        })
    }

    fn block(&self, at: i64, length: usize) -> ProgramNode {
        self.program().clone().repeated(length, self.extent()).shifted(at)
    }

    /// Calls `f` with the components of an element in order: a type, and the number of its elements. Stops when `f` returns false.
    pub(crate) fn composition(&self, f: &mut dyn FnMut(&Datatype, usize) -> bool) {
        match &self.recipe {
            TypeConstructor::Named(_) => {}
            TypeConstructor::Grid { child, count, length, .. } => {
                f(child, count.saturating_mul(*length));
            }
            TypeConstructor::Blocks { child, blocks } => {
                f(child, blocks.iter().map(|b| b.1).fold(0, usize::saturating_add));
            }
            TypeConstructor::Fields(fields) => {
                let _ = fields.iter().all(|(child, _, length)| f(child, *length));
            }
            TypeConstructor::Same(other) => {
                f(other, 1);
            }
        }
    }

    /// Returns the number of complete elements in `bytes` of packed data (`MPI_Get_count`); `None` if part of an element is
    /// left over. A type without data has zero elements in zero bytes.
    pub fn count_of(&self, bytes: usize) -> Option<usize> {
        match self.size() {
            0 => (bytes == 0).then_some(0),
            size => (bytes.is_multiple_of(size)).then_some(bytes / size),
        }
    }

    /// Returns the number of basic elements in `bytes` of packed data (`MPI_Get_elements`); `None` if the data end inside a
    /// basic element.
    pub fn elements_of(&self, bytes: usize) -> Option<usize> {
        if self.size() == 0 {
            return (bytes == 0).then_some(0);
        }
        let whole = (bytes / self.size()).checked_mul(self.elements())?;
        let left = bytes % self.size();
        if left == 0 {
            return Some(whole);
        }
        if let Some(basic) = self.basic() {
            let value = basic.pair()?.0;
            return (left == value.size()).then_some(whole + 1);
        }
        let mut left = left;
        let mut found = Some(whole);
        self.composition(&mut |child, times| {
            if child.size() == 0 {
                return true;
            }
            let taken = left.min(child.size().saturating_mul(times));
            // If the data end inside a child, the remaining children have no data.
            found = found.zip(child.elements_of(taken)).map(|(a, b)| a + b);
            left -= taken;
            left > 0
        });
        found
    }
}

impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.combiner)?;
        if !self.name.borrow().is_empty() {
            write!(f, " {}", self.name.borrow().display())?;
        }
        write!(f, " (size {}, lb {}, extent {})", self.shape.size, self.lb, self.extent())
    }
}
