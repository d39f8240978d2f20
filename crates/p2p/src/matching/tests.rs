use super::*;

fn arrival(context: u64, rank: u32, tag: Tag, request: u32) -> Arrival {
    Arrival {
        kind: Kind::Rts,
        context: Context(context),
        rank,
        tag,
        peer: rank as usize,
        request,
        len: 10,
        body: Body::There(RemoteAddr::default()),
    }
}

fn one(rank: u32) -> Source {
    Source::Rank { rank, peer: rank as usize }
}

#[test]
fn receives_match_in_the_order_of_posting() {
    let mut m = Matching::new();
    let c = Context(1);
    m.post(c, Some(3), Some(5), 10);
    m.post(c, None, Some(5), 11);
    m.post(c, Some(3), None, 12);
    assert_eq!(m.match_posted(c, 3, 6), Some(12));
    assert_eq!(m.match_posted(c, 3, 5), Some(10));
    m.post(c, Some(3), Some(5), 13);
    assert_eq!(m.match_posted(c, 3, 5), Some(11), "posted before 13");
    assert_eq!(m.match_posted(Context(2), 3, 5), None);
    assert_eq!(m.match_posted(c, 3, 5), Some(13));
    assert!(m.idle());
}

#[test]
fn messages_are_taken_in_the_order_of_arrival() {
    let mut m = Matching::new();
    m.keep(arrival(1, 4, 7, 0));
    m.keep(arrival(1, 5, 7, 1));
    m.keep(arrival(1, 4, 8, 2));
    m.keep(arrival(1, 4, 7, 3));
    let c = Context(1);
    assert_eq!(m.peek(c, Source::Any, None), Some((4, 7, 10)));
    assert_eq!(m.take(c, one(4), Some(8)).unwrap().request, 2);
    assert_eq!(m.take(c, one(4), Some(7)).unwrap().request, 0);
    assert_eq!(m.take(c, Source::Any, Some(7)).unwrap().request, 1);
    assert_eq!(m.take(c, Source::Any, None).unwrap().request, 3);
    assert!(m.take(c, Source::Any, None).is_none());
    assert!(m.idle());
}

#[test]
fn a_withdrawn_receive_matches_nothing() {
    let mut m = Matching::new();
    let c = Context(9);
    m.post(c, Some(0), Some(1), 1);
    m.post(c, Some(0), Some(1), 2);
    assert!(m.withdraw(c, Some(0), 1));
    assert!(!m.withdraw(c, Some(0), 1));
    assert_eq!(m.match_posted(c, 0, 1), Some(2));
    assert_eq!(m.match_posted(c, 0, 1), None);
}

#[test]
fn a_cancelled_message_is_taken_back_once() {
    let mut m = Matching::new();
    m.keep(arrival(1, 4, 7, 33));
    assert!(!m.take_back(5, 33));
    assert!(m.take_back(4, 33));
    assert!(!m.take_back(4, 33));
    assert!(m.idle());
}

/// Random operations against the plainest possible matching.
#[test]
fn agrees_with_a_plain_list() {
    let mut seed = 12345u64;
    let mut random = move |n: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    let mut m = Matching::new();
    let mut posted: Vec<(u64, Option<u32>, Option<Tag>, u32)> = Vec::new();
    let mut kept: Vec<(u64, u32, Tag, u32)> = Vec::new();
    for id in 0..if cfg!(miri) { 300u32 } else { 20_000 } {
        let (context, rank, tag) = (random(3), random(6) as u32, random(4) as Tag);
        if random(2) == 0 {
            let wanted = |p: &(u64, Option<u32>, Option<Tag>, u32)| {
                p.0 == context && p.1.is_none_or(|r| r == rank) && p.2.is_none_or(|t| t == tag)
            };
            let expected = posted.iter().position(wanted).map(|i| posted.remove(i).3);
            let got = m.match_posted(Context(context), rank, tag);
            assert_eq!(got, expected);
            if got.is_none() {
                kept.push((context, rank, tag, id));
                m.keep(arrival(context, rank, tag, id));
            }
        } else {
            let source = (random(3) > 0).then_some(rank);
            let tag = (random(3) > 0).then_some(tag);
            let fits = |k: &(u64, u32, Tag, u32)| {
                k.0 == context && source.is_none_or(|r| r == k.1) && tag.is_none_or(|t| t == k.2)
            };
            let expected = kept.iter().position(fits).map(|i| kept.remove(i).3);
            let from = source.map_or(Source::Any, one);
            let got = m.take(Context(context), from, tag).map(|m| m.request);
            assert_eq!(got, expected);
            if got.is_none() {
                posted.push((context, source, tag, id));
                m.post(Context(context), source, tag, id);
            }
        }
    }
}

#[test]
fn names_of_memory_come_back_long_or_short() {
    let mut m = Matching::new();
    let keys = [Key([1, 0, 0]), Key([1, 2, 0]), Key::NONE, Key([u64::MAX, 3, 4])];
    let names = keys.map(|key| RemoteAddr { addr: 77, key });
    for (request, at) in (0..).zip(names) {
        m.keep(Arrival { body: Body::There(at), ..arrival(1, 4, 7, request) });
    }
    assert!(m.take_back(4, 3) && !m.take_back(4, 3), "a long one is cancelled, too");
    for at in &names[..3] {
        let taken = m.take(Context(1), Source::Any, None).unwrap();
        let Some(Body::There(found)) = taken.body else { panic!("no name") };
        assert_eq!((found, taken.kind), (*at, Kind::Rts));
    }
    assert!(m.idle());
}

#[test]
fn the_load_of_a_context_is_counted_by_itself() {
    let mut m = Matching::new();
    let (ours, theirs) = (Context(1), Context(2));
    m.post(ours, Some(3), Some(5), 1);
    m.post(ours, None, Some(6), 2);
    m.post(theirs, Some(3), Some(5), 3);
    m.keep(arrival(1, 4, 7, 0));
    m.keep(arrival(2, 4, 7, 1));
    m.keep(arrival(2, 5, 7, 2));
    assert_eq!(m.load_of(|c| c == ours), (2, 1));
    assert_eq!(m.load_of(|c| c == theirs), (1, 2));
    assert_eq!(m.posted(), (3, 3));
    m.take(theirs, Source::Any, None).unwrap();
    assert_eq!(m.match_posted(ours, 3, 6), Some(2));
    assert_eq!((m.load_of(|c| c == ours), m.load_of(|c| c == theirs)), ((1, 1), (1, 1)));
    assert_eq!((m.posted(), m.load().0, m.load().1), ((2, 3), 2, 3));
    m.restart_most();
    assert_eq!((m.posted(), m.load().1), ((2, 2), 2));
}
