//! What an accumulate does to its target's elements, as requests carry it and as whoever reaches the elements applies it.

use weft_datatype::{Basic, Form, Op, compare_and_swap};
use weft_fabric::Sge;
use weft_process::Error;

/// What an accumulate does to its target's elements, with its data packed.
#[derive(Clone, Copy)]
pub enum Packed {
    Reduce { op: Op, origin: Sge },
    Swap { compare: Sge, new: Sge },
}

impl Packed {
    /// Changes packed elements of nobody else's: what they are before goes to `former`.
    pub fn apply(self, basic: Basic, elements: Sge, former: Option<Sge>) -> Result<(), Error> {
        if let Some(former) = former {
            former.copy_from(elements);
        }
        match self {
            Packed::Reduce { op: Op::NoOp, .. } => {}
            Packed::Reduce { op, origin } => {
                let count = elements.len() / basic.size();
                op.apply(basic, Form::Packed, count, origin, elements)?;
            }
            Packed::Swap { compare, new } => {
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

    /// Changes the words at `target`, each at once.
    pub fn try_apply(self, basic: Basic, skip: usize, target: Sge, former: Option<Sge>) {
        let part = |piece: Sge| piece.part(skip, target.len());
        let count = target.len() / basic.size();
        match self {
            Packed::Reduce { op: Op::NoOp, .. } => {
                let into = former.map(part);
                Op::NoOp.try_apply(basic, count, Sge::EMPTY, target, into);
            }
            Packed::Reduce { op, origin } => {
                op.try_apply(basic, count, part(origin), target, former.map(part));
            }
            Packed::Swap { compare, new } => {
                let former = former.expect("a swap says what was there");
                compare_and_swap(basic, compare, new, target, former);
            }
        }
    }

    /// Of the elements whose packed bytes begin at `skip`.
    pub fn part(self, skip: usize, len: usize) -> Packed {
        match self {
            Packed::Reduce { op: Op::NoOp, .. } | Packed::Swap { .. } => self,
            Packed::Reduce { op, origin } => Packed::Reduce { op, origin: origin.part(skip, len) },
        }
    }

    /// Whether `bytes` of elements of `basic` can be changed so.
    pub fn is_for(self, basic: Basic, bytes: usize) -> bool {
        let whole = basic.size() > 0 && bytes.is_multiple_of(basic.size());
        whole
            && match self {
                Packed::Reduce { op, .. } => op.allowed(basic),
                Packed::Swap { .. } => bytes == basic.size(),
            }
    }

    /// Whether elements may differ afterwards.
    pub fn changes(self) -> bool {
        !matches!(self, Packed::Reduce { op: Op::NoOp, .. })
    }
}
