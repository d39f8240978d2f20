//! Reductions: operators, their elements, and their results, computed one by one. Values are such that every order of operations
//! gives the same bytes.

use crate::basic::{Class, ElementType, PAIRS, all};
use crate::mpi::CountWidth;
use crate::types::{Shape, SharedType, TypeModel};
use fastrand::Rng;
use std::fmt;

/// A predefined operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StandardOp {
    Sum,
    Min,
    Max,
    Prod,
    Band,
    Bor,
    Bxor,
    Land,
    Lor,
    Lxor,
    Minloc,
    Maxloc,
}

use StandardOp::*;

pub const PREDEFINED: [StandardOp; 12] =
    [Sum, Min, Max, Prod, Band, Bor, Bxor, Land, Lor, Lxor, Minloc, Maxloc];

impl StandardOp {
    pub fn handle(self) -> usize {
        match self {
            Sum => 0x21,
            Min => 0x22,
            Max => 0x23,
            Prod => 0x24,
            Band => 0x28,
            Bor => 0x29,
            Bxor => 0x2a,
            Land => 0x30,
            Lor => 0x31,
            Lxor => 0x32,
            Minloc => 0x38,
            Maxloc => 0x39,
        }
    }

    pub fn name(self) -> String {
        format!("{self:?}").to_uppercase()
    }

    /// Returns true if the standard allows the operator on a basic datatype of this class.
    pub fn takes(self, class: Class) -> bool {
        let integer = matches!(class, Class::Signed | Class::Unsigned);
        match self {
            Min | Max => integer || class == Class::Float,
            // Products of complex numbers may end in zeros of either sign.
            Prod => integer || class == Class::Float,
            Sum => integer || matches!(class, Class::Float | Class::Complex),
            Band | Bor | Bxor => integer || class == Class::Byte,
            Land | Lor | Lxor => integer || class == Class::Logical,
            Minloc | Maxloc => false,
        }
    }
}

/// An operator of the program, on pairs of 32-bit numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UserOp {
    /// (a, b) stands for x -> a x + b, and the operator composes such functions. Not commutative.
    Affine,
    /// Sum of the first numbers, exclusive or of the second. Commutative.
    Mixed,
}

/// Layout of the pair that a user's operator works on: its extent, and the place of the second number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Spacing {
    Compact,
    Apart,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    Predefined(StandardOp),
    User(UserOp, Spacing),
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Operator::Predefined(op) => f.write_str(&op.name()),
            Operator::User(user, spacing) => write!(f, "{user:?} on {spacing:?} pairs"),
        }
    }
}

/// Element of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    Basic(ElementType),
    Pair(usize),
    User(Spacing),
}

impl Element {
    pub fn datatype(self) -> SharedType {
        let word = || TypeModel::basic(ElementType::named("UINT32_T"));
        match self {
            Element::Basic(basic) => TypeModel::basic(basic),
            Element::Pair(i) => TypeModel::new(Shape::Pair(i), CountWidth::Int),
            Element::User(Spacing::Compact) => {
                TypeModel::new(Shape::Contiguous(2, word()), CountWidth::Int)
            }
            Element::User(Spacing::Apart) => {
                let shape = Shape::Vector { count: 2, block: 1, stride: 4, child: word() };
                let child = TypeModel::new(shape, CountWidth::Int);
                TypeModel::new(Shape::Resized { lb: 0, extent: 24, child }, CountWidth::Int)
            }
        }
    }
}

/// Returns a random operator and an element that it accepts.
pub fn choose(rng: &mut Rng) -> (Operator, Element) {
    if rng.u32(..4) == 0 {
        let user = if rng.bool() { UserOp::Affine } else { UserOp::Mixed };
        let spacing = if rng.bool() { Spacing::Compact } else { Spacing::Apart };
        return (Operator::User(user, spacing), Element::User(spacing));
    }
    let op = PREDEFINED[rng.usize(..PREDEFINED.len())];
    if matches!(op, Minloc | Maxloc) {
        return (Operator::Predefined(op), Element::Pair(rng.usize(..PAIRS.len())));
    }
    let fit: Vec<ElementType> = all().filter(|b| op.takes(b.class())).collect();
    (Operator::Predefined(op), Element::Basic(fit[rng.usize(..fit.len())]))
}

/// Returns packed values that the operator accepts.
pub fn values(rng: &mut Rng, op: Operator, element: Element, count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..count {
        match element {
            Element::User(_) => out.extend((0..8).map(|_| rng.u8(..))),
            Element::Pair(i) => {
                value(rng, op, ElementType::named(PAIRS[i].first), &mut out);
                out.extend(rng.i32(-3..=3).to_ne_bytes());
            }
            Element::Basic(basic) => value(rng, op, basic, &mut out),
        }
    }
    out
}

fn value(rng: &mut Rng, op: Operator, basic: ElementType, out: &mut Vec<u8>) {
    // MINLOC and MAXLOC get few different values, so that equal values occur. Factors are never zero.
    let few = matches!(op, Operator::Predefined(Minloc | Maxloc));
    let real = |rng: &mut Rng| match op {
        Operator::Predefined(Prod) => [1.0, -1.0, 2.0, 0.5, -2.0][rng.usize(..5)],
        _ => f64::from(rng.i32(1..=4)) * if rng.bool() { 1.0 } else { -1.0 },
    };
    match (basic.class(), basic.size()) {
        (Class::Float, 4) => out.extend((real(rng) as f32).to_ne_bytes()),
        (Class::Float, _) => out.extend(real(rng).to_ne_bytes()),
        (Class::Complex, 8) => (0..2).for_each(|_| out.extend((real(rng) as f32).to_ne_bytes())),
        (Class::Complex, _) => (0..2).for_each(|_| out.extend(real(rng).to_ne_bytes())),
        (Class::Logical, _) => out.push(u8::from(rng.bool())),
        (_, size) if few => out.extend(&rng.i64(-2..=2).to_ne_bytes()[..size]),
        (_, size) if matches!(op, Operator::Predefined(Land | Lor | Lxor)) && rng.bool() => {
            out.extend(&[0; 16][..size]);
        }
        (_, size) => out.extend((0..size).map(|_| rng.u8(..))),
    }
}

/// Computes `left` op `right`, both packed, element by element.
pub fn combine(op: Operator, element: Element, left: &[u8], right: &[u8]) -> Vec<u8> {
    assert_eq!(left.len(), right.len());
    let size = element.datatype().size();
    let one = |(a, b): (&[u8], &[u8])| match (op, element) {
        (Operator::User(user, _), _) => user.apply(a, b),
        (Operator::Predefined(op), Element::Pair(i)) => {
            located(op, ElementType::named(PAIRS[i].first), a, b)
        }
        (Operator::Predefined(op), Element::Basic(basic)) => plain(op, basic, a, b),
        (Operator::Predefined(_), Element::User(_)) => unreachable!("choose() makes no such pair"),
    };
    left.chunks(size).zip(right.chunks(size)).flat_map(one).collect()
}

impl UserOp {
    pub fn pairs(self, left: [u32; 2], right: [u32; 2]) -> [u32; 2] {
        let ([a, b], [c, d]) = (left, right);
        match self {
            UserOp::Affine => [a.wrapping_mul(c), c.wrapping_mul(b).wrapping_add(d)],
            UserOp::Mixed => [a.wrapping_add(c), b ^ d],
        }
    }

    fn apply(self, left: &[u8], right: &[u8]) -> Vec<u8> {
        let word = |x: &[u8], i: usize| u32::from_ne_bytes([x[i], x[i + 1], x[i + 2], x[i + 3]]);
        let pair = |x: &[u8]| [word(x, 0), word(x, 4)];
        let [a, b] = self.pairs(pair(left), pair(right));
        [a.to_ne_bytes(), b.to_ne_bytes()].concat()
    }
}

/// Returns an unsigned integer of up to 64 bits.
pub fn unsigned(bytes: &[u8]) -> i128 {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_ne_bytes(wide)
}

/// Returns a signed integer of up to 64 bits.
fn signed(bytes: &[u8]) -> i128 {
    let shift = 128 - 8 * bytes.len();
    unsigned(bytes) << shift >> shift
}

fn float(bytes: &[u8]) -> f64 {
    match bytes.try_into() {
        Ok(eight) => f64::from_ne_bytes(eight),
        Err(_) => f64::from(f32::from_ne_bytes(bytes.try_into().expect("4 or 8 bytes"))),
    }
}

/// Compares two values.
fn order(basic: ElementType, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    match basic.class() {
        Class::Float => float(a).total_cmp(&float(b)),
        Class::Signed => signed(a).cmp(&signed(b)),
        _ => unsigned(a).cmp(&unsigned(b)),
    }
}

fn located(op: StandardOp, first: ElementType, a: &[u8], b: &[u8]) -> Vec<u8> {
    let (x, i) = a.split_at(first.size());
    let (y, j) = b.split_at(first.size());
    let order = order(first, x, y);
    let left = if op == Minloc { order.is_lt() } else { order.is_gt() };
    if order.is_eq() {
        let index = if signed(i) < signed(j) { i } else { j };
        return [x, index].concat();
    }
    if left { a.to_vec() } else { b.to_vec() }
}

fn plain(op: StandardOp, basic: ElementType, a: &[u8], b: &[u8]) -> Vec<u8> {
    let size = basic.size();
    let zero = |x: &[u8]| x.iter().all(|v| *v == 0);
    let truth = |v: bool| {
        let mut out = vec![0; size];
        out[..size].copy_from_slice(&u128::from(v).to_ne_bytes()[..size]);
        out
    };
    let bits = |f: fn(u8, u8) -> u8| a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect();
    match op {
        Min | Max => {
            let left =
                if op == Min { order(basic, a, b).is_lt() } else { order(basic, a, b).is_gt() };
            if left { a.to_vec() } else { b.to_vec() }
        }
        Band => bits(|a, b| a & b),
        Bor => bits(|a, b| a | b),
        Bxor => bits(|a, b| a ^ b),
        Land => truth(!zero(a) && !zero(b)),
        Lor => truth(!zero(a) || !zero(b)),
        Lxor => truth(zero(a) != zero(b)),
        Sum | Prod => match basic.class() {
            Class::Float => arithmetic(op, a, b),
            Class::Complex => {
                let half = size / 2;
                [arithmetic(op, &a[..half], &b[..half]), arithmetic(op, &a[half..], &b[half..])]
                    .concat()
            }
            _ => {
                let (a, b) = (signed(a), signed(b));
                let value = if op == Sum { a.wrapping_add(b) } else { a.wrapping_mul(b) };
                value.to_ne_bytes()[..size].to_vec()
            }
        },
        Minloc | Maxloc => unreachable!("they work on pairs"),
    }
}

fn arithmetic(op: StandardOp, a: &[u8], b: &[u8]) -> Vec<u8> {
    let value = if op == Sum { float(a) + float(b) } else { float(a) * float(b) };
    if a.len() == 4 { (value as f32).to_ne_bytes().to_vec() } else { value.to_ne_bytes().to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_results() {
        let int = Element::Basic(ElementType::named("SHORT"));
        let of = |op, a: i16, b: i16| {
            let out = combine(Operator::Predefined(op), int, &a.to_ne_bytes(), &b.to_ne_bytes());
            i16::from_ne_bytes(out.try_into().unwrap())
        };
        assert_eq!(of(Sum, i16::MAX, 1), i16::MIN);
        assert_eq!((of(Min, -1, 1), of(Max, -1, 1)), (-1, 1));
        assert_eq!((of(Land, 256, 1), of(Lxor, 256, 1), of(Band, 256, 1)), (1, 0, 0));
        let byte = Element::Basic(ElementType::named("UINT8_T"));
        assert_eq!(combine(Operator::Predefined(Max), byte, &[200], &[100]), [200]);
        let pair = |x: f32, i: i32| [x.to_ne_bytes(), i.to_ne_bytes()].concat();
        let located =
            |op, a: &[u8], b: &[u8]| combine(Operator::Predefined(op), Element::Pair(0), a, b);
        assert_eq!(located(Minloc, &pair(1.0, 5), &pair(1.0, 3)), pair(1.0, 3));
        assert_eq!(located(Maxloc, &pair(1.0, 5), &pair(2.0, 7)), pair(2.0, 7));
    }

    #[test]
    fn every_order_gives_the_same_bytes() {
        for seed in 0..3000 {
            let mut rng = Rng::with_seed(seed);
            let (op, element) = choose(&mut rng);
            let all: Vec<_> = (0..9).map(|_| values(&mut rng, op, element, 3)).collect();
            let left = all.iter().cloned().reduce(|a, b| combine(op, element, &a, &b)).unwrap();
            let right =
                all.iter().rev().cloned().reduce(|b, a| combine(op, element, &a, &b)).unwrap();
            assert_eq!(left, right, "{op} {element:?}");
        }
    }
}
