//! Sizes, bounds, packing and contents of types whose results can be checked by hand.

use weft_datatype::{Basic, Combiner, Datatype, DatatypeError, Predefined, Type, Width::Int};

fn bounds(t: &Datatype) -> (usize, i64, i64, i64, i64) {
    (t.size(), t.lb(), t.extent(), t.true_lb(), t.true_extent())
}

/// Packs elements that lie in `memory` at `base`, after a check that they lie inside.
fn pack(t: &Type, memory: &[u8], base: usize, count: usize) -> Vec<u8> {
    let (offset, len) = t.span(count).unwrap();
    let start = base as i64 + offset;
    assert!(start >= 0 && start as usize + len <= memory.len(), "{start}+{len}");
    let mut out = vec![0; t.packed_size(count).unwrap()];
    // SAFETY: `pack` needs the memory of the elements and room for the packed size: the span lies inside `memory`, and `out`
    // has the packed size.
    unsafe { t.pack(memory.as_ptr().add(base), count, out.as_mut_ptr()) };
    out
}

fn ramp(len: usize) -> Vec<u8> {
    (0..len).map(|i| i as u8).collect()
}

#[test]
fn a_vector_has_the_bounds_and_bytes_of_its_map() {
    let table = Predefined::new();
    let int = table.of(Basic::INT);
    let t = Datatype::vector(Int, 3, 2, 4, int).unwrap();
    assert_eq!(bounds(&t), (24, 0, 40, 0, 40));
    assert!(!t.contiguous());
    let expected: Vec<u8> = [0..8, 16..24, 32..40].into_iter().flatten().collect();
    assert_eq!(pack(&t, &ramp(40), 0, 1), expected);

    let back = Datatype::vector(Int, 3, 2, -4, int).unwrap();
    assert_eq!(bounds(&back), (24, -32, 40, -32, 40));
    let expected: Vec<u8> = [32..40, 16..24, 0..8].into_iter().flatten().collect();
    assert_eq!(pack(&back, &ramp(40), 32, 1), expected);
}

#[test]
fn structs_are_padded_as_c_does() {
    let table = Predefined::new();
    let (byte, double) = (table.of(Basic::CHAR), table.of(Basic::DOUBLE));
    let t = Datatype::structure(Int, &[1, 1], &[0, 8], &[double.clone(), byte.clone()]).unwrap();
    assert_eq!(bounds(&t), (9, 0, 16, 0, 9));
    assert_eq!(t.align(), 8);
    assert_eq!(t.uniform(), None);
    let two = Datatype::contiguous_of(Int, 2, &t).unwrap();
    assert_eq!(bounds(&two), (18, 0, 32, 0, 25));
    let expected: Vec<u8> = [0..9, 16..25].into_iter().flatten().collect();
    assert_eq!(pack(&two, &ramp(32), 0, 1), expected);

    // Members that follow each other without a gap form one run; in another order they do not.
    let (int, float) = (table.of(Basic::INT), table.of(Basic::FLOAT));
    let types = [int.clone(), float.clone()];
    assert!(Datatype::structure(Int, &[1, 1], &[0, 4], &types).unwrap().contiguous());
    assert!(!Datatype::structure(Int, &[1, 1], &[4, 0], &types).unwrap().contiguous());
}

/// Checks that blocks placed by strides get no padding, so that nested blocks never overlap.
#[test]
fn only_structs_are_padded() {
    let table = Predefined::new();
    let (byte, double) = (table.of(Basic::CHAR), table.of(Basic::DOUBLE));
    let inner = Datatype::hvector(Int, 3, 4, 49, double).unwrap();
    assert_eq!(bounds(&inner), (96, 0, 130, 0, 130));
    let outer = Datatype::hvector(Int, 2, 3, 4 * 130 + 1, &inner).unwrap();
    assert_eq!(bounds(&outer), (576, 0, 911, 0, 911));
    let indexed = Datatype::hindexed(Int, &[1, 1], &[-3, 10], double).unwrap();
    assert_eq!(bounds(&indexed), (16, -3, 21, -3, 21));
    let twice = Datatype::contiguous_of(Int, 2, &indexed).unwrap();
    assert_eq!(bounds(&twice), (32, -3, 42, -3, 42));

    // A struct that ends with a padded struct is padded from the bound of the inner struct on.
    let padded = Datatype::structure(Int, &[1, 1], &[0, 8], &[double.clone(), byte.clone()]);
    let members = [byte.clone(), padded.unwrap()];
    let whole = Datatype::structure(Int, &[1, 1], &[0, 10], &members).unwrap();
    assert_eq!(bounds(&whole), (10, 0, 32, 0, 19));
    let odd = Datatype::structure(Int, &[1, 1], &[0, 130], &[inner, byte.clone()]).unwrap();
    assert_eq!(bounds(&odd), (97, 0, 136, 0, 131));
}

#[test]
fn markers_of_a_resize_overrule_data_everywhere_above() {
    let table = Predefined::new();
    let int = table.of(Basic::INT);
    let wide = Datatype::resized(Int, int, -4, 12).unwrap();
    assert_eq!(bounds(&wide), (4, -4, 12, 0, 4));
    let s = Datatype::structure(Int, &[1, 1], &[0, 100], &[wide.clone(), int.clone()]).unwrap();
    assert_eq!(bounds(&s), (8, -4, 12, 0, 104));
    // This also holds if the resized type has no data. With a block length of zero the markers do not count.
    let none = Datatype::contiguous_of(Int, 0, int).unwrap();
    assert_eq!(bounds(&none), (0, 0, 0, 0, 0));
    let mark = Datatype::resized(Int, &none, 0, 64).unwrap();
    let s = Datatype::structure(Int, &[1, 1], &[0, 0], &[int.clone(), mark.clone()]).unwrap();
    assert_eq!(bounds(&s), (4, 0, 64, 0, 4));
    let s = Datatype::structure(Int, &[1, 0], &[0, 0], &[int.clone(), mark]).unwrap();
    assert_eq!(bounds(&s), (4, 0, 4, 0, 4));
}

#[test]
fn what_memory_holds_in_packed_order_needs_no_packing() {
    let table = Predefined::new();
    let int = table.of(Basic::INT);
    let t = Datatype::vector(Int, 4, 3, 3, int).unwrap();
    assert!(t.contiguous());
    assert_eq!(t.as_run(2), Some((0, 96)));
    let t = Datatype::indexed(Int, &[2, 3], &[5, 7], int).unwrap();
    assert!(!t.contiguous());
    assert_eq!(t.as_run(1), Some((20, 20)));
    let wide = Datatype::resized(Int, int, 0, 8).unwrap();
    assert_eq!((wide.as_run(1), wide.as_run(2)), (Some((0, 4)), None));
    assert!(Datatype::duplicate(int).unwrap().contiguous());
}

#[test]
fn counts_and_elements_of_received_bytes() {
    let table = Predefined::new();
    let (int, double) = (table.of(Basic::INT), table.of(Basic::DOUBLE));
    let t = Datatype::structure(Int, &[2, 1], &[0, 8], &[int.clone(), double.clone()]).unwrap();
    assert_eq!((t.size(), t.elements()), (16, 3));
    let counts: Vec<_> = [0, 16, 32, 4].map(|b| t.count_of(b)).into();
    assert_eq!(counts, [Some(0), Some(1), Some(2), None]);
    let elements: Vec<_> = [0, 4, 8, 12, 16, 20, 24, 32, 33].map(|b| t.elements_of(b)).into();
    let expected =
        [Some(0), Some(1), Some(2), None, Some(3), Some(4), Some(5), Some(6), None].to_vec();
    assert_eq!(elements, expected);
    let pair = table.get(0x229).unwrap();
    let elements: Vec<_> = [0, 8, 12, 4, 20, 24].map(|b| pair.elements_of(b)).into();
    assert_eq!(elements, [Some(0), Some(1), Some(2), None, Some(3), Some(4)]);
}

#[test]
fn pairs_leave_their_gaps_alone() {
    let table = Predefined::new();
    let t = table.get(0x229).unwrap();
    assert_eq!(bounds(t), (12, 0, 16, 0, 12));
    let packed = pack(t, &ramp(32), 0, 2);
    let mut memory = vec![0xff; 32];
    // SAFETY: `unpack` needs the memory of two elements (32 bytes) and their packed form: `memory` and `packed` have these
    // sizes.
    unsafe { t.unpack(memory.as_mut_ptr(), 2, packed.as_ptr()) };
    let mut expected = ramp(32);
    expected[12..16].fill(0xff);
    expected[28..32].fill(0xff);
    assert_eq!(memory, expected);
}

#[test]
fn contents_give_the_arguments_back() {
    let table = Predefined::new();
    let int = table.of(Basic::INT);
    let t = Datatype::hindexed(Int, &[1, 2], &[0, 40], int).unwrap();
    assert_eq!(t.combiner(), Combiner::Hindexed);
    let c = t.contents();
    assert_eq!(
        (&c.integers[..], &c.addresses[..], &c.counts[..]),
        (&[2, 1, 2][..], &[0, 40][..], &[][..])
    );
    assert!(std::rc::Rc::ptr_eq(&c.types[0], int));
    let t = Datatype::hindexed(weft_datatype::Width::Large, &[1, 2], &[0, 40], int).unwrap();
    assert_eq!(t.contents().counts, [2, 1, 2, 0, 40]);
    assert!(t.contents().integers.is_empty());
}

#[test]
fn wrong_arguments_and_overflow_are_named() {
    let table = Predefined::new();
    let double = table.of(Basic::DOUBLE);
    let text = |r: Result<Type, DatatypeError>| r.unwrap_err().to_string();
    assert_eq!(
        text(Datatype::contiguous_of(Int, -1, double)),
        "count is -1, but it must not be negative"
    );
    assert_eq!(
        text(Datatype::indexed(Int, &[1, -2], &[0, 0], double)),
        "array_of_blocklengths[1] is -2, but it must not be negative"
    );
    assert_eq!(
        text(Datatype::indexed(Int, &[1, 2], &[0], double)),
        "array_of_displacements has 1 entries, 2 are needed"
    );
    let big = Datatype::contiguous_of(Int, 1 << 59, double).unwrap();
    assert_eq!(big.size(), 1 << 62);
    for refused in [
        Datatype::contiguous_of(Int, 2, &big),
        Datatype::contiguous_of(Int, i64::MAX, &big),
        Datatype::vector(Int, i64::MAX, i64::MAX, i64::MAX, double),
        Datatype::vector(Int, 2, 1, i64::MIN, double),
        Datatype::hvector(Int, i64::MAX, 1, i64::MIN, double),
        Datatype::indexed(Int, &[1], &[i64::MAX], double),
        Datatype::hindexed(Int, &[1, 1], &[i64::MIN, i64::MAX - 8], double),
        Datatype::resized(Int, double, 1, i64::MAX),
        Datatype::resized(Int, double, i64::MIN, -1),
    ] {
        let error = refused.expect_err("too large");
        assert!(matches!(error, DatatypeError::Overflow { .. }), "{error}");
    }
    assert!(big.packed_size(2).is_err());
    assert!(big.span(2).is_err());
    assert!(big.span(1).is_ok());
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn nesting_has_a_limit_that_is_not_the_stack() {
    let table = Predefined::new();
    let mut t = table.of(Basic::INT).clone();
    let error = loop {
        match Datatype::hvector(Int, 2, 1, 1 << 20, &t).or_else(|_| Datatype::duplicate(&t)) {
            Ok(next) => t = next,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, DatatypeError::Depth { .. }));
    t.commit();
}
