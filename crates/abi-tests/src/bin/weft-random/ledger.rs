//! Contents of the parts of a window, and the data that every call of an epoch brings and fetches, all computed in one process.

use crate::basic::ElementType;
use crate::buffer::{Image, Piece};
use crate::generate::key;
use crate::onesided::{AccumulateOp, Action, Epoch, Fetched, OneSidedCall, Store, WindowModel};
use crate::reduce::{self, Element, StandardOp};
use crate::types::TypeModel;
use fastrand::Rng;

/// Contents of all parts, by seat, each between guards.
pub struct Ledger {
    pub parts: Vec<Image>,
}

/// Buffers of a call of this rank.
pub struct CallBuffers {
    pub action: usize,
    pub from: Option<Image>,
    /// The operand of a compare and swap, laid out as `from`.
    pub compare: Option<Image>,
    pub to: Option<Image>,
    /// `to` after the call. Its data count only if they are known.
    pub after: Option<Image>,
}

/// Results that are known only together.
#[derive(Clone)]
pub enum JointResults {
    Ticket {
        first: Vec<u8>,
        total: usize,
    },
    /// The old value, the value that each origin sets, and the place.
    Race {
        old: Vec<u8>,
        new: Vec<Vec<u8>>,
        target: usize,
        place: Piece,
    },
}

/// Returns a piece of all bytes of a part.
pub fn whole(len: i64) -> Piece {
    Piece::new(TypeModel::basic(ElementType::named("BYTE")), len, 0)
}

/// Returns the difference of two integers of the same size, as an unsigned integer.
fn difference(a: &[u8], b: &[u8]) -> u128 {
    let bits = 8 * a.len() as u32;
    let wide = reduce::unsigned(a).wrapping_sub(reduce::unsigned(b)) as u128;
    wide & ((1u128 << bits) - 1)
}

/// Adds a small number to an integer. The sum has the same number of bytes.
pub fn plus(a: &[u8], more: usize) -> Vec<u8> {
    let sum = reduce::unsigned(a).wrapping_add(more as i128);
    sum.to_ne_bytes()[..a.len()].to_vec()
}

impl JointResults {
    /// Returns the number of places of the group in the tally of all ranks.
    pub fn len(&self) -> usize {
        match self {
            JointResults::Ticket { total, .. } => *total,
            JointResults::Race { new, .. } => new.len(),
        }
    }

    /// Returns the place of a fetched value in the tally. `None` for an origin that lost a race.
    pub fn place(&self, origin: usize, found: &[u8]) -> Result<Option<usize>, String> {
        match self {
            JointResults::Ticket { first, total } => match difference(found, first) {
                n if n < *total as u128 => Ok(Some(n as usize)),
                n => Err(format!("{n} more than there was at first, of {total} increments")),
            },
            JointResults::Race { old, .. } => Ok((found == old).then_some(origin)),
        }
    }
}

impl Ledger {
    pub fn new(window: &WindowModel, base: u64) -> Ledger {
        let part = |(seat, part): (usize, &crate::onesided::RankPart)| {
            Image::random(&[whole(part.len)], key(&[base, seat as u64]))
        };
        Ledger { parts: window.parts.iter().enumerate().map(part).collect() }
    }

    /// Returns the bytes that a rank stores before an epoch.
    pub fn stored(store: &Store, i: usize, base: u64) -> Vec<u8> {
        let mut rng = Rng::with_seed(key(&[base, i as u64, 1]));
        match store.values {
            Some((op, element)) => values(&mut rng, op, element, store.piece.count),
            None => (0..store.piece.size()).map(|_| rng.u8(..)).collect(),
        }
    }

    /// Performs all operations of an epoch. Returns the calls of one rank, and all groups.
    pub fn walk(
        &mut self,
        epoch: &Epoch,
        base: u64,
        me: usize,
    ) -> (Vec<CallBuffers>, Vec<JointResults>) {
        for (i, store) in epoch.stores.iter().enumerate() {
            let data = Ledger::stored(store, i, base);
            self.parts[store.seat].unpack(&store.piece, &data);
        }
        let mut calls = Vec::new();
        let mut groups = vec![None; epoch.groups];
        for (i, action) in epoch.actions.iter().enumerate() {
            let call = self.call(i, action, base, &mut groups);
            if action.origin == me {
                calls.push(call);
            }
        }
        // A group without calls has no results.
        let none = JointResults::Ticket { first: Vec::new(), total: 0 };
        (calls, groups.into_iter().map(|g| g.unwrap_or_else(|| none.clone())).collect())
    }

    fn call(
        &mut self,
        i: usize,
        action: &Action,
        base: u64,
        groups: &mut [Option<JointResults>],
    ) -> CallBuffers {
        let seed = key(&[base, i as u64, 2]);
        let image = |piece: &Option<Piece>, n: u64| {
            let piece = piece.as_ref()?;
            Some(Image::random(std::slice::from_ref(piece), key(&[seed, n])))
        };
        let mut from = image(&action.from, 0);
        let mut compare = None;
        let to = image(&action.to, 1);
        let mut after = to.clone();
        if let (Some(from), Some(piece), Some(element), Some(op)) =
            (&mut from, &action.from, action.element, action.suits)
        {
            let data = values(&mut Rng::with_seed(seed), op, element, piece.count_of(element));
            from.unpack(piece, &data);
        }
        let (Some(target), Some(place)) = (action.target, &action.place) else {
            return CallBuffers { action: i, from, compare, to, after };
        };
        let old = self.parts[target].pack(place);
        let new = match (action.fetched, action.what) {
            (Fetched::Ticket(group), _) => {
                let group = groups[group]
                    .get_or_insert_with(|| JointResults::Ticket { first: old.clone(), total: 0 });
                if let JointResults::Ticket { total, .. } = group {
                    *total += 1;
                }
                put(&mut from, &action.from, &plus(&vec![0; old.len()], 1));
                Some(plus(&old, 1))
            }
            (Fetched::Race(group), _) => {
                let parts = self.parts.len();
                let group = groups[group].get_or_insert_with(|| JointResults::Race {
                    old: old.clone(),
                    new: vec![Vec::new(); parts],
                    target,
                    place: place.clone(),
                });
                let own = plus(&old, 1 + action.origin);
                put(&mut from, &action.from, &own);
                compare = from.clone();
                put(&mut compare, &action.from, &old);
                if let JointResults::Race { new, .. } = group {
                    new[action.origin] = own;
                }
                None
            }
            (_, OneSidedCall::CompareAndSwap { hit }) => {
                compare = image(&action.from, 2);
                if hit {
                    put(&mut compare, &action.from, &old);
                }
                let equal = data(&compare, &action.from) == old;
                equal.then(|| data(&from, &action.from))
            }
            (_, OneSidedCall::Put) => Some(data(&from, &action.from)),
            (_, what) => match what.op() {
                Some(AccumulateOp::Replace) => Some(data(&from, &action.from)),
                Some(AccumulateOp::Reduce(op)) => {
                    let element = action.element.expect("an accumulate knows its elements");
                    let brought = data(&from, &action.from);
                    Some(reduce::combine(reduce::Operator::Predefined(op), element, &old, &brought))
                }
                Some(AccumulateOp::Nothing) | None => None,
            },
        };
        if action.fetched == Fetched::Known {
            put(&mut after, &action.to, &old);
        }
        if let Some(new) = new {
            self.parts[target].unpack(place, &new);
        }
        CallBuffers { action: i, from, compare, to, after }
    }

    /// Stores the value of a race whose winner is known now.
    pub fn settle(&mut self, group: &JointResults, winner: usize) {
        if let JointResults::Race { new, target, place, .. } = group {
            self.parts[*target].unpack(place, &new[winner]);
        }
    }
}

/// Returns packed values for `count` elements.
fn values(rng: &mut Rng, op: StandardOp, element: Element, count: i64) -> Vec<u8> {
    reduce::values(rng, reduce::Operator::Predefined(op), element, count as usize)
}

fn put(image: &mut Option<Image>, piece: &Option<Piece>, data: &[u8]) {
    if let (Some(image), Some(piece)) = (image, piece) {
        image.unpack(piece, data);
    }
}

fn data(image: &Option<Image>, piece: &Option<Piece>) -> Vec<u8> {
    match (image, piece) {
        (Some(image), Some(piece)) => image.pack(piece),
        _ => Vec::new(),
    }
}

impl Piece {
    /// Returns the number of elements of this kind in the piece.
    fn count_of(&self, element: Element) -> i64 {
        (self.size() / element.datatype().size()) as i64
    }
}
