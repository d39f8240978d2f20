//! The datatype itself: an immutable description, shared by everybody who uses it.

use crate::layout::{ProgramNode, ProgramNodeKind, Sequence};
use crate::shape::{TypeConstructor, TypeShape};
use crate::{Basic, Combiner, Contents, DatatypeError};
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsString;
use std::fmt;
use std::rc::Rc;

/// A datatype by reference. Operations hold one, so that `MPI_Type_free` never takes a type away
/// from under them.
pub type Type = Rc<Datatype>;

/// Types may be nested so deep; programs that nest deeper get an error, not a stack overflow.
pub const DEPTH_MAX: usize = 1024;

/// An MPI datatype. Only its name, its committed flag and its compiled form ever change.
///
/// All places and sizes are in bytes; all fit in 63 bits, as the constructors make sure.
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

    /// Bytes of data in one element (`MPI_Type_size`).
    pub fn size(&self) -> usize {
        self.shape.size as usize
    }

    /// Lower bound.
    pub fn lb(&self) -> i64 {
        self.lb
    }

    /// Upper bound.
    pub fn ub(&self) -> i64 {
        self.ub
    }

    /// Bytes from one element to the next. Negative if a resize said so.
    pub fn extent(&self) -> i64 {
        self.ub - self.lb
    }

    /// First byte that holds data; 0 if none does.
    pub fn true_lb(&self) -> i64 {
        self.shape.data.map_or(0, |(low, _)| low)
    }

    /// Past the last byte that holds data; 0 if none does.
    pub fn true_ub(&self) -> i64 {
        self.shape.data.map_or(0, |(_, high)| high)
    }

    /// Bytes between [`true_lb`](Datatype::true_lb) and [`true_ub`](Datatype::true_ub).
    pub fn true_extent(&self) -> i64 {
        self.true_ub() - self.true_lb()
    }

    /// Strictest alignment of the basic types in it, in bytes.
    pub fn align(&self) -> usize {
        self.shape.align
    }

    /// Basic elements in one element; a pair type counts as two, being a struct by definition.
    pub fn elements(&self) -> usize {
        self.shape.elements as usize
    }

    /// The predefined type that this is; none for a derived type, even a copy of one.
    pub fn basic(&self) -> Option<Basic> {
        match self.recipe {
            TypeConstructor::Named(basic) => Some(basic),
            _ => None,
        }
    }

    /// The one predefined type of which all data are, in type map order, if it is one. Together
    /// with the size this is the type signature.
    pub fn uniform(&self) -> Option<Basic> {
        self.shape.uniform
    }

    /// The predefined type whose elements this type's are, byte for byte: also for a duplicate, and
    /// for a contiguous type of one. Reductions on such a type are those of the predefined one.
    pub fn equivalent(&self) -> Option<Basic> {
        let basic = self.shape.uniform?;
        let same = self.size() == basic.size()
            && (self.lb, self.extent()) == (0, basic.extent() as i64)
            && (self.true_lb(), self.true_ub()) == (0, basic.true_extent() as i64);
        same.then_some(basic)
    }

    /// Packed form and memory form of any number of elements are the same bytes from the base
    /// address on.
    pub fn contiguous(&self) -> bool {
        self.lb == 0
            && self.extent() == self.shape.size
            && self.true_lb() == 0
            && self.true_ub() == self.shape.size
            && (self.size() == 0 || matches!(self.program().kind, ProgramNodeKind::Run))
    }

    /// The constructor by which the type was made.
    pub fn combiner(&self) -> Combiner {
        self.combiner
    }

    /// The constructor's arguments.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Allows the type in communication, and compiles it.
    pub fn commit(&self) {
        self.program();
        self.committed.set(true);
    }

    /// Whether the type may be used in communication.
    pub fn committed(&self) -> bool {
        self.committed.get()
    }

    /// Empty until set, except for predefined types.
    pub fn name(&self) -> OsString {
        self.name.borrow().clone()
    }

    /// Sets what [`Datatype::name`] returns, for the program's own use.
    pub fn set_name(&self, name: impl Into<OsString>) {
        *self.name.borrow_mut() = name.into();
    }

    /// The copy program, compiled at first use.
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
                // Runs of one length are copied without branches: worth more than a few merged.
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

    /// The blocks as runs of one length, where they are.
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

    /// What one element consists of, in order: types and how many of each.
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

    /// Number of whole elements in `bytes` of packed data (`MPI_Get_count`); none if a part of an
    /// element is left over. A type without data holds zero elements in zero bytes.
    pub fn count_of(&self, bytes: usize) -> Option<usize> {
        match self.size() {
            0 => (bytes == 0).then_some(0),
            size => (bytes.is_multiple_of(size)).then_some(bytes / size),
        }
    }

    /// Number of basic elements in `bytes` of packed data (`MPI_Get_elements`); none if they end
    /// inside one.
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
            // A child of which only a part is there is the last that matters.
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
