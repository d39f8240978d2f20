use super::*;
use crate::algorithm::Need;
use crate::selection_key::{Near, SelectionKey, Topology};

#[test]
fn names_are_unique_and_every_operation_has_one_that_always_serves() {
    for operation in Operation::ALL {
        let names: Vec<_> = operation.algorithms().map(|a| a.name).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{operation}: {name} twice");
            assert!(!name.contains([':', ' ', ',']), "{name}");
        }
        assert!(operation.algorithms().any(|a| a.usual && a.needs.is_empty()), "{operation}");
        assert_eq!(Operation::named(operation.name()), Ok(operation));
    }
}

#[test]
fn choices_are_read_as_they_are_written() {
    for algorithm in ALGORITHMS {
        let mut choices = vec![algorithm.usual()];
        if let Some(range) = algorithm.parameter {
            choices
                .extend([range.least, range.most].map(|parameter| Choice { algorithm, parameter }));
            assert!((range.least..=range.most).contains(&range.default), "{}", algorithm.name);
        }
        for choice in choices {
            assert_eq!(Choice::parse(algorithm.operation, &choice.to_string()), Ok(choice));
        }
    }
}

#[test]
fn what_is_not_known_is_named_with_what_is() {
    let error = |text| Choice::parse(Operation::Barrier, text).unwrap_err();
    assert!(error("fast").starts_with("no algorithm \"fast\" for barrier; known: "));
    assert!(error("fast").contains("MPI-DS"), "{}", error("fast"));
    assert_eq!(error("MPI-DS:3"), "\"MPI-DS:3\": MPI-DS has no parameter");
    assert!(Operation::named("allreduc").unwrap_err().contains("known: barrier, bcast"));
}

#[test]
fn needs_say_why_they_do_not_hold() {
    let site = Topology {
        same_node: false,
        nodes: 4,
        ranks_per_node: 1,
        by_kernel: false,
        multicast: 0,
        same_arithmetic: true,
        atomics: true,
        near: Near { direct: Some(false), ..Near::default() },
    };
    let case =
        SelectionKey { ranks: 6, bytes: 100, element: 4, commutes: false, equal: true, site };
    for (need, why) in [
        (Need::Commutes, "the operator does not commute"),
        (Need::Together(64), "the ranks do not share memory"),
        (Need::AtMost(64), "100 bytes: at most 64"),
        (Need::BlocksAtMost(599), "6 blocks of 100 bytes: together at most 599"),
        (Need::Two, "6 ranks: it takes 2"),
        (Need::Direct, "a rank may not read another's own memory"),
        (Need::PowerOfTwo, "6 ranks: no power of two"),
        (Need::Multicast, "this network has no multicast"),
        (Need::Nodes, "it takes several nodes, one of them with several ranks"),
    ] {
        assert_eq!(need.check(&case), Err(why.to_owned()));
    }
    for need in [
        Need::BlocksAtMost(600),
        Need::Even,
        Need::EqualBlocks,
        Need::ElementEach,
        Need::SameArithmetic,
        Need::SameArithmeticOfTwo,
        Need::Atomics,
    ] {
        assert_eq!(need.check(&case), Ok(()));
    }
    let unlike = SelectionKey { site: Topology { same_arithmetic: false, ..site }, ..case };
    let differ = Err("the ranks differ in arithmetic".to_owned());
    assert_eq!(Need::SameArithmetic.check(&unlike), differ);
    assert_eq!(Need::SameArithmeticOfTwo.check(&unlike), Ok(()));
    let two = SelectionKey { ranks: 2, ..unlike };
    assert_eq!(Need::SameArithmeticOfTwo.check(&two), differ);
}
