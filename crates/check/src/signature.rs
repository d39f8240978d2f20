//! Type signatures: the sequences of predefined types that messages consist of, without places in memory (MPI 5.0, section 5.1).
//!
//! A signature is a tree of repetitions and sequences with a hash. The hash of a sequence is a polynomial of its elements modulo
//! 2^61 - 1, so it depends on the elements alone and not on the way in which a type was built (Langou, Bosilca, Fagg, Dongarra:
//! "Hash functions for datatype signatures in MPI", EuroPVM/MPI 2005). A receive may have a longer signature than its message, so
//! the hash of each prefix can be computed, too.

use std::sync::Arc;

const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0123_4567_89ab_cdef % PRIME;

fn multiply(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}

/// Hash of a sequence of elements, with its length.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SequenceHash {
    pub elements: u64,
    pub hash: u64,
}

impl SequenceHash {
    fn element(class: u8) -> SequenceHash {
        SequenceHash { elements: 1, hash: u64::from(class) + 1 }
    }

    /// Returns the hash of this sequence and then another.
    fn then(self, next: SequenceHash) -> SequenceHash {
        let shifted = multiply(self.hash, power(BASE, next.elements));
        SequenceHash {
            elements: self.elements.wrapping_add(next.elements),
            hash: (shifted + next.hash) % PRIME,
        }
    }

    /// Returns the hash of `count` repetitions.
    pub fn times(self, count: u64) -> SequenceHash {
        let (mut result, mut unit, mut rest) = (SequenceHash::default(), self, count);
        while rest > 0 {
            if rest & 1 == 1 {
                result = result.then(unit);
            }
            unit = unit.then(unit);
            rest >>= 1;
        }
        result
    }
}

enum Node {
    Element(u8),
    Repeat(u64, TypeSignature),
    Sequence(Vec<TypeSignature>),
}

/// Signature of a datatype.
#[derive(Clone)]
pub struct TypeSignature {
    pub hash: SequenceHash,
    node: Arc<Node>,
}

impl TypeSignature {
    /// Returns the signature of a predefined type of a class.
    pub fn element(class: u8) -> TypeSignature {
        TypeSignature { hash: SequenceHash::element(class), node: Arc::new(Node::Element(class)) }
    }

    /// Returns the signature of `count` repetitions.
    pub fn repeat(&self, count: u64) -> TypeSignature {
        match count {
            1 => self.clone(),
            _ => TypeSignature {
                hash: self.hash.times(count),
                node: Arc::new(Node::Repeat(count, self.clone())),
            },
        }
    }

    /// Returns the signature of parts in their order.
    pub fn sequence(parts: Vec<TypeSignature>) -> TypeSignature {
        let hash = parts.iter().fold(SequenceHash::default(), |hash, part| hash.then(part.hash));
        TypeSignature { hash, node: Arc::new(Node::Sequence(parts)) }
    }

    /// Returns the hash of the first elements. All elements are taken if there are fewer.
    pub fn prefix(&self, elements: u64) -> SequenceHash {
        if elements >= self.hash.elements {
            return self.hash;
        }
        match &*self.node {
            Node::Element(_) => SequenceHash::default(),
            Node::Repeat(_, unit) => {
                let each = unit.hash.elements;
                let whole = unit.hash.times(elements / each);
                whole.then(unit.prefix(elements % each))
            }
            Node::Sequence(parts) => {
                let (mut hash, mut rest) = (SequenceHash::default(), elements);
                for part in parts {
                    if rest < part.hash.elements {
                        return hash.then(part.prefix(rest));
                    }
                    hash = hash.then(part.hash);
                    rest -= part.hash.elements;
                }
                hash
            }
        }
    }

    /// Returns the class of the first element, if there is an element.
    pub fn first(&self) -> Option<u8> {
        match &*self.node {
            Node::Element(class) => Some(*class),
            Node::Repeat(count, unit) => (*count > 0).then(|| unit.first()).flatten(),
            Node::Sequence(parts) => parts.iter().find_map(TypeSignature::first),
        }
    }

    /// Returns true if an element has this class.
    pub fn contains(&self, wanted: u8) -> bool {
        match &*self.node {
            Node::Element(class) => *class == wanted,
            Node::Repeat(count, unit) => *count > 0 && unit.contains(wanted),
            Node::Sequence(parts) => parts.iter().any(|part| part.contains(wanted)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(classes: &[u8]) -> TypeSignature {
        TypeSignature::sequence(
            classes.iter().map(|&class| TypeSignature::element(class)).collect(),
        )
    }

    #[test]
    fn a_hash_does_not_depend_on_the_way_in_which_a_type_is_built() {
        let pair = flat(&[1, 2]);
        let built = TypeSignature::sequence(vec![pair.repeat(3), TypeSignature::element(1)]);
        assert_eq!(built.hash, flat(&[1, 2, 1, 2, 1, 2, 1]).hash);
        assert_ne!(built.hash, flat(&[1, 2, 1, 2, 1, 1, 2]).hash);
        assert_ne!(flat(&[0]).hash, flat(&[0, 0]).hash);
        let large = TypeSignature::element(3).repeat(1 << 40);
        assert_eq!(large.hash, TypeSignature::element(3).repeat(1 << 20).repeat(1 << 20).hash);
    }

    #[test]
    fn prefixes_of_all_lengths_are_those_of_the_flat_sequence() {
        let classes = [1, 2, 2, 1, 2, 2, 7, 1, 2, 2, 1, 2, 2, 7];
        let inner = TypeSignature::sequence(vec![
            TypeSignature::element(1),
            TypeSignature::element(2).repeat(2),
        ]);
        let built =
            TypeSignature::sequence(vec![inner.repeat(2), TypeSignature::element(7)]).repeat(2);
        for n in 0..=classes.len() {
            assert_eq!(built.prefix(n as u64), flat(&classes[..n]).hash, "{n}");
        }
        assert_eq!(built.prefix(100), built.hash);
        assert_eq!(built.first(), Some(1));
        assert!(built.contains(7) && !built.contains(3));
    }
}
