//! Changes of an accumulate in packed form. Requests carry the changes in this form, and the process that reaches the elements
//! applies them in this form.

use weft_datatype::{Basic, ElementSpacing, PredefinedOp, compare_and_swap};
use weft_fabric::Sge;
use weft_process::Error;

/// Change of an accumulate to its target's elements, with its data packed.
#[derive(Clone, Copy)]
pub enum PackedChange {
    Reduce { op: PredefinedOp, origin: Sge },
    Swap { compare: Sge, new: Sge },
}

/// Change of elements of a predefined type, and the memory for their former values.
#[derive(Clone, Copy)]
pub struct ElementChange {
    pub basic: Basic,
    pub packed: PackedChange,
    /// Packed memory for the former values.
    pub former: Option<Sge>,
}

impl ElementChange {
    /// Changes packed elements that no other process accesses.
    pub fn apply(self, elements: Sge) -> Result<(), Error> {
        self.packed.apply(self.basic, elements, self.former)
    }

    /// Returns the change of the elements whose packed bytes begin at `skip`.
    pub fn part(self, skip: usize, len: usize) -> ElementChange {
        let former = self.former.map(|former| former.part(skip, len));
        ElementChange { packed: self.packed.part(skip, len), former, ..self }
    }
}

impl PackedChange {
    /// Changes packed elements that no other process accesses. Their former values go to `former`.
    pub fn apply(self, basic: Basic, elements: Sge, former: Option<Sge>) -> Result<(), Error> {
        if let Some(former) = former {
            former.copy_from(elements);
        }
        match self {
            PackedChange::Reduce { op: PredefinedOp::NoOp, .. } => {}
            PackedChange::Reduce { op, origin } => {
                let count = elements.len() / basic.size();
                op.apply(basic, ElementSpacing::Packed, count, origin, elements)?;
            }
            PackedChange::Swap { compare, new } => {
                let bytes = |piece: Sge| {
                    let mut bytes = [0; 64];
                    piece.read(&mut bytes[..piece.len()]);
                    bytes
                };
                if bytes(compare) == bytes(elements) {
                    elements.copy_from(new);
                }
            }
        }
        Ok(())
    }

    /// Changes the words at `target`, each atomically.
    pub fn try_apply(self, basic: Basic, skip: usize, target: Sge, former: Option<Sge>) {
        let part = |piece: Sge| piece.part(skip, target.len());
        let count = target.len() / basic.size();
        match self {
            PackedChange::Reduce { op: PredefinedOp::NoOp, .. } => {
                let into = former.map(part);
                PredefinedOp::NoOp.try_apply(basic, count, Sge::EMPTY, target, into);
            }
            PackedChange::Reduce { op, origin } => {
                op.try_apply(basic, count, part(origin), target, former.map(part));
            }
            PackedChange::Swap { compare, new } => {
                let former = former.expect("a swap says what was there");
                compare_and_swap(basic, compare, new, target, former);
            }
        }
    }

    /// Returns the change of the elements whose packed bytes begin at `skip`.
    pub fn part(self, skip: usize, len: usize) -> PackedChange {
        match self {
            PackedChange::Reduce { op: PredefinedOp::NoOp, .. } | PackedChange::Swap { .. } => self,
            PackedChange::Reduce { op, origin } => {
                PackedChange::Reduce { op, origin: origin.part(skip, len) }
            }
        }
    }

    /// Returns true if the change is defined for `bytes` of elements of `basic`.
    pub fn is_for(self, basic: Basic, bytes: usize) -> bool {
        let whole = basic.size() > 0 && bytes.is_multiple_of(basic.size());
        whole
            && match self {
                PackedChange::Reduce { op, .. } => op.allowed(basic),
                PackedChange::Swap { .. } => bytes == basic.size(),
            }
    }

    /// Returns true if the change may modify elements.
    pub fn changes(self) -> bool {
        !matches!(self, PackedChange::Reduce { op: PredefinedOp::NoOp, .. })
    }
}
