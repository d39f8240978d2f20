use super::*;
use crate::algorithm::Requirement;
use crate::selection_key::{Near, RankPlacement, SelectionKey};

#[test]
fn names_are_unique_and_every_operation_has_one_that_always_serves() {
    for operation in CollectiveKind::ALL {
        let names: Vec<_> = operation.algorithms().map(|a| a.name).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{operation}: {name} twice");
            assert!(!name.contains([':', ' ', ',']), "{name}");
        }
        assert!(operation.algorithms().any(|a| a.usual && a.needs.is_empty()), "{operation}");
        assert_eq!(CollectiveKind::named(operation.name()), Ok(operation));
    }
}

#[test]
fn choices_are_read_as_they_are_written() {
    for algorithm in ALGORITHMS {
        let mut choices = vec![algorithm.usual()];
        if let Some(range) = algorithm.parameter {
            choices.extend(
                [range.least, range.most].map(|parameter| AlgorithmChoice { algorithm, parameter }),
            );
            assert!((range.least..=range.most).contains(&range.default), "{}", algorithm.name);
        }
        for choice in choices {
            assert_eq!(
                AlgorithmChoice::parse(algorithm.operation, &choice.to_string()),
                Ok(choice)
            );
        }
    }
}

#[test]
fn what_is_not_known_is_named_with_what_is() {
    let error = |text| AlgorithmChoice::parse(CollectiveKind::Barrier, text).unwrap_err();
    assert!(error("fast").starts_with("no algorithm \"fast\" for barrier; known: "));
    assert!(error("fast").contains("MPI-DS"), "{}", error("fast"));
    assert_eq!(error("MPI-DS:3"), "\"MPI-DS:3\": MPI-DS has no parameter");
    assert!(CollectiveKind::named("allreduc").unwrap_err().contains("known: barrier, bcast"));
}

#[test]
fn needs_say_why_they_do_not_hold() {
    let site = RankPlacement {
        near: Near { direct: Some(false), ..Near::default() },
        ..RankPlacement::apart(4)
    };
    let case =
        SelectionKey { ranks: 6, bytes: 100, element: 4, commutes: false, equal: true, site };
    for (need, why) in [
        (Requirement::Commutes, "the operator does not commute"),
        (Requirement::Together(64), "the ranks do not share memory"),
        (Requirement::AtMost(64), "100 bytes: at most 64"),
        (Requirement::BlocksAtMost(599), "6 blocks of 100 bytes: together at most 599"),
        (Requirement::Two, "6 ranks: it takes 2"),
        (Requirement::Direct, "a rank may not read another's own memory"),
        (Requirement::PowerOfTwo, "6 ranks: no power of two"),
        (Requirement::Multicast, "this network has no multicast"),
        (Requirement::Nodes, "it takes several nodes, one of them with several ranks"),
        (
            Requirement::EvenLevels,
            "the numbers of ranks in the caches, NUMA domains or sockets differ",
        ),
        (
            Requirement::Levels,
            "it takes ranks bound to several caches, NUMA domains or sockets, one of them with several ranks",
        ),
    ] {
        assert_eq!(need.check(&case), Err(why.to_owned()));
    }
    for need in [
        Requirement::BlocksAtMost(600),
        Requirement::Even,
        Requirement::EqualBlocks,
        Requirement::ElementEach,
        Requirement::SameArithmetic,
        Requirement::SameArithmeticOfTwo,
        Requirement::Atomics,
    ] {
        assert_eq!(need.check(&case), Ok(()));
    }
    let unlike = SelectionKey { site: RankPlacement { same_arithmetic: false, ..site }, ..case };
    let differ = Err("the ranks differ in arithmetic".to_owned());
    assert_eq!(Requirement::SameArithmetic.check(&unlike), differ);
    assert_eq!(Requirement::SameArithmeticOfTwo.check(&unlike), Ok(()));
    let two = SelectionKey { ranks: 2, ..unlike };
    assert_eq!(Requirement::SameArithmeticOfTwo.check(&two), differ);
}
