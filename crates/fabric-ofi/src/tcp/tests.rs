mod collecting;
mod placing;
mod room;

use super::*;
use crate::access::TransferKind::{Read as READ, Write as WRITE};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const SECRET: u128 = 77;

fn key(at: u64, key: u64) -> RemoteKey {
    RemoteKey { at, key }
}

/// Maximum time for connecting to a peer, in most tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// Opens an endpoint at addresses of this machine.
fn open(addresses: &[&str], patience: Duration) -> Tcp {
    let interface = |address: &&str| Interface {
        name: format!("at {address}"),
        address: address.parse().unwrap(),
        network: format!("{address}/32"),
    };
    let own = addresses.iter().map(interface).collect();
    Tcp::open(own, KeepaliveTimes { keepalive: Duration::from_secs(2), patience }).unwrap()
}

/// Returns two endpoints that know each other. Each has number 0 for the other.
fn pair() -> [Tcp; 2] {
    let ends = [(); 2].map(|()| open(&["127.0.0.1"], PATIENCE));
    meet(&ends);
    ends
}

fn meet(ends: &[Tcp; 2]) {
    for (me, other) in [(0, 1), (1, 0)] {
        assert_eq!(ends[me].insert(ends[other].names(), None), 0);
        ends[me].let_in(SECRET);
    }
}

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: `Sge::new` needs memory that stays until the operation is complete. Each test below keeps its bytes until then.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn context(number: usize) -> OperationContext {
    std::ptr::without_provenance_mut(number)
}

/// Polls both endpoints until `what` returns true. Other results of the same poll are lost.
fn until(ends: &[Tcp; 2], mut what: impl FnMut(usize, OperationContext, usize) -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        for (at, tcp) in ends.iter().enumerate() {
            let nothing = fi_cq_msg_entry { op_context: context(0), flags: 0, len: 0 };
            let mut entries = [nothing; 4];
            if let TcpPollOutcome::Over(count) = tcp.take(&mut entries) {
                for entry in &entries[..count] {
                    if what(at, entry.op_context, entry.len) {
                        return;
                    }
                }
            }
        }
        assert!(Instant::now() < end, "it does not come");
    }
}

/// Waits for the end of an operation at one of the two endpoints.
fn wait(ends: &[Tcp; 2], at: usize, wanted: usize) -> usize {
    let mut found = 0;
    until(ends, |who, context, len| {
        found = len;
        (who, context.addr()) == (at, wanted)
    });
    found
}

fn failed(ends: &[Tcp; 2], at: usize) -> (usize, i32) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some((context, error)) = ends[at].take_failed() {
            return (context.addr(), error);
        }
        ends.iter().for_each(|tcp| _ = tcp.take(&mut []));
        assert!(Instant::now() < end, "it does not fail");
    }
}

/// Returns bytes that differ from place to place.
fn content(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(31) + i / 251 + seed * 17) as u8).collect()
}

#[test]
fn who_both_connect_have_one_connection() {
    for _ in 0..50 {
        let ends = pair();
        let mut buffers = [[0u8; 64]; 4];
        for (at, buffer) in buffers.iter_mut().enumerate() {
            // SAFETY: `post` needs a buffer that stays until the operation is complete. The buffers outlive the round.
            unsafe { ends[at % 2].post(sge(buffer), context(1)) };
        }
        for tcp in &ends {
            for text in ["first", "second"] {
                let mut text = text.to_owned().into_bytes();
                // SAFETY: `inject` needs bytes that are readable during the call. These bytes are.
                assert_eq!(unsafe { tcp.inject(0, &[sge(&mut text)]) }, 0);
            }
        }
        let mut lens = [Vec::new(), Vec::new()];
        until(&ends, |at, _, len| {
            lens[at].push(len);
            lens.iter().all(|one| one.len() == 2)
        });
        assert_eq!(lens, [[5, 6], [5, 6]], "in their order");
        for tcp in &ends {
            let inner = tcp.inner();
            assert_eq!(inner.open.len(), 1);
            assert!(inner.door.strangers.is_empty());
            assert!(inner.timer_at.is_none(), "a timer without a use");
        }
    }
}

#[test]
fn all_lengths_come_whole_between_other_frames() {
    let ends = pair();
    let lens = [1, 31, 32, 33, 16 << 10, (16 << 10) + 1, 100_000, 1 << 20, 3_000_001];
    let mut there = content(*lens.last().unwrap(), 1);
    let mut message = vec![0u8; 4096];
    // SAFETY: `register` needs memory that stays mapped until it is withdrawn. It lives as long as the endpoints.
    assert!(unsafe { ends[1].register(sge(&mut there), 9) });
    let start = there.as_ptr().addr() as u64;
    for (round, len) in lens.into_iter().enumerate() {
        let mut got = vec![0u8; len];
        let mut sent = content(len, round);
        let text = content(500 + round, 3);
        // SAFETY: `post` and `transfer` need memory that lives until the operations are complete. The loop below waits for them.
        unsafe {
            ends[1].post(sge(&mut message), context(5));
            assert_eq!(ends[0].transfer(0, READ, sge(&mut got), key(start, 9), context(1)), 0);
            assert_eq!(ends[0].inject(0, &[sge(&mut text.clone())]), 0);
            assert_eq!(ends[0].transfer(0, WRITE, sge(&mut sent), key(start, 9), context(2)), 0);
            assert_eq!(ends[0].transfer(0, READ, sge(&mut got), key(start, 9), context(3)), 0);
        }
        let before = there[..len].to_vec();
        let mut over = Vec::new();
        until(&ends, |at, context, _| {
            if at == 1 {
                assert_eq!(message[..text.len()], text, "the message");
            } else if context.addr() == 1 {
                over.push(1);
            } else {
                over.push(context.addr());
            }
            over.len() == 3
        });
        assert_eq!(got, sent, "read after the write, {len} bytes");
        assert_eq!(there[..len], sent[..], "written, {len} bytes");
        assert_ne!(before, sent);
    }
}

#[test]
fn what_names_no_memory_is_refused_and_nothing_else() {
    let ends = pair();
    let (mut there, here) = (vec![0u8; 100_000], content(100_000, 5));
    let start = there.as_ptr().addr() as u64;
    // SAFETY: `register` needs memory that stays mapped until it is withdrawn. It lives as long as the endpoints.
    assert!(unsafe { ends[1].register(sge(&mut there[..50_000]), 9) });
    // SAFETY: `register` needs memory that stays mapped until it is withdrawn. It lives as long as the endpoints.
    assert!(!unsafe { ends[1].register(sge(&mut there), 9) }, "a key twice");
    let ask = |at: RemoteKey, len: usize, kind, number| {
        // SAFETY: `Sge::new` needs memory that stays until the operation is complete. `here` lives until the end of the test.
        let local = unsafe { Sge::new(here.as_ptr().cast_mut(), len) };
        // SAFETY: `transfer` needs local memory that lives until the operation is complete. `here` lives until the end of the test.
        assert_eq!(unsafe { ends[0].transfer(0, kind, local, at, context(number)) }, 0);
    };
    ask(key(start, 9), 50_000, WRITE, 1);
    ask(key(start, 8), 50_000, WRITE, 2);
    ask(key(start, 9), 50_001, WRITE, 3);
    ask(key(start - 1, 9), 10, WRITE, 4);
    ask(key(u64::MAX - 3, 9), 10, WRITE, 5);
    ask(key(start + 49_999, 9), 1, WRITE, 6);
    let mut over = Vec::new();
    until(&ends, |_, context, _| {
        over.push(context.addr());
        over.len() == 2
    });
    assert_eq!(over, [1, 6]);
    let refused: Vec<_> = (0..4).map(|_| failed(&ends, 0)).collect();
    assert_eq!(refused, [2, 3, 4, 5].map(|number| (number, libc::EACCES)));
    assert_eq!(there[..49_999], here[..49_999]);
    assert_eq!((there[49_999], &there[50_000..]), (here[0], &[0; 50_000][..]), "nothing beyond");
    for (number, at) in [key(start, 8), key(start + 1, 9)].into_iter().enumerate() {
        ask(at, 50_000, READ, 10 + number);
        assert_eq!(failed(&ends, 0), (10 + number, libc::EACCES));
    }
    ends[1].withdraw(9);
    ask(key(start, 9), 8, WRITE, 20);
    assert_eq!(failed(&ends, 0), (20, libc::EACCES), "withdrawn");
}

#[test]
fn messages_wait_for_buffers() {
    let ends = pair();
    let mut sent: Vec<Vec<u8>> = (0..40).map(|i| content(5000 + i * 700, i)).collect();
    for message in &mut sent {
        // SAFETY: `inject` needs bytes that are readable during the call. These bytes are.
        while unsafe { ends[0].inject(0, &[sge(message)]) } != 0 {
            ends.iter().for_each(|tcp| _ = tcp.take(&mut []));
        }
    }
    for (number, message) in sent.iter().enumerate() {
        assert!(ends.iter().all(|tcp| tcp.take(&mut []) != TcpPollOutcome::Over(1)));
        let mut buffer = vec![0u8; 64 << 10];
        // SAFETY: `post` needs a buffer that is not touched until the operation is complete. The next line waits for the message.
        unsafe { ends[1].post(sge(&mut buffer), context(number + 1)) };
        assert_eq!(wait(&ends, 1, number + 1), message.len());
        assert_eq!(buffer[..message.len()], message[..], "message {number}");
    }
}

/// Reads the random bytes of the challenge that an endpoint sends to a new connection.
fn asked(stream: &mut TcpStream) -> frame::Nonce {
    let mut bytes = [0; frame::CHALLENGE];
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.read_exact(&mut bytes).unwrap();
    frame::challenged(&bytes).unwrap()
}

#[test]
fn strangers_are_sent_away() {
    let ends = pair();
    let mut talk = std::net::TcpStream::connect(ends[1].names()[0]).unwrap();
    let mut silent: Vec<TcpStream> =
        (0..300).map(|_| TcpStream::connect(ends[1].names()[0]).unwrap()).collect();
    talk.write_all(&content(5000, 3)).unwrap();
    // A stranger from another job.
    let mut other = TcpStream::connect(ends[1].names()[0]).unwrap();
    // Each poll reads a part of the bytes.
    (0..5).for_each(|_| _ = ends[1].take(&mut []));
    let words = frame::GreetingWords {
        from: ends[0].names()[0],
        to: ends[1].names()[0],
        asked: asked(&mut other),
        drawn: [1; 16],
    };
    other.write_all(&words.hello(SECRET + 1)).unwrap();
    let mut buffer = [0u8; 64];
    // SAFETY: `post` needs a buffer that is not touched until the operation is complete. `wait` below ensures it.
    unsafe { ends[1].post(sge(&mut buffer), context(1)) };
    // SAFETY: `inject` needs bytes that are readable during the call. These bytes are.
    assert_eq!(unsafe { ends[0].inject(0, &[sge(&mut b"hello".to_owned())]) }, 0);
    assert_eq!(wait(&ends, 1, 1), 5);
    asked(&mut silent[0]);
    for stranger in [&mut other, &mut silent[0]] {
        stranger.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut bytes = [0; 8];
        assert!(matches!(stranger.read(&mut bytes), Ok(0) | Err(_)), "no more is said to them");
    }
    assert!(ends[1].inner().door.strangers.len() <= 128);
}

#[test]
fn the_end_of_a_peer_is_seen_after_all_that_it_has_sent() {
    let ends = pair();
    let mut buffers = vec![vec![0u8; 64 << 10]; 3];
    for (number, buffer) in buffers.iter_mut().enumerate() {
        // SAFETY: `post` needs a buffer that stays until the operation is complete. The buffers live until the end of the test.
        unsafe { ends[1].post(sge(buffer), context(number + 1)) };
    }
    let mut message = content(60_000, 2);
    // SAFETY: `inject` needs bytes that are readable during the call. These bytes are.
    assert_eq!(unsafe { ends[0].inject(0, &[sge(&mut message)]) }, 0);
    until(&ends, |_, _, len| len == 60_000);
    // SAFETY: as above.
    assert_eq!(unsafe { ends[0].inject(0, &[sge(&mut message)]) }, 0);
    while !ends[0].has_arrived() || ends[0].inner().peers[0].has_waiting() {
        ends[0].take(&mut []);
    }
    ends[0].shut();
    until(&ends, |_, _, len| {
        assert_eq!(ends[1].take_gone(), None, "there is more");
        len == 60_000
    });
    let end = Instant::now() + Duration::from_secs(20);
    let gone = loop {
        ends[1].take(&mut []);
        if let Some(gone) = ends[1].take_gone() {
            break gone;
        }
        assert!(Instant::now() < end);
    };
    assert_eq!(gone.0, 0);
    // SAFETY: `inject` needs bytes that are readable during the call. These bytes are.
    assert!(unsafe { ends[1].inject(0, &[sge(&mut message)]) } < 0, "nobody is there");
}

#[test]
fn a_peer_that_is_not_there_is_told_of() {
    let ends = [(); 2].map(|()| open(&["127.0.0.1"], Duration::from_millis(300)));
    meet(&ends);
    // Nobody listens at this address.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let number = ends[0].insert(&[nobody], None);
    let mut place = [0u8; 200_000];
    // SAFETY: `inject` and `transfer` need memory that lives until the operations are complete. `place` lives longer.
    unsafe {
        assert_eq!(ends[0].inject(number, &[sge(&mut b"hello".to_owned())]), 0);
        for at in 1..4 {
            assert_eq!(ends[0].transfer(number, READ, sge(&mut place), key(0, 0), context(at)), 0);
        }
    }
    let mut all: Vec<_> = (0..3).map(|_| failed(&ends, 0)).collect();
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3].map(|context| (context, libc::ECONNREFUSED)), "each once");
    assert_eq!(ends[0].take_failed(), None);
    assert!(!ends[0].may_sleep(), "there is something to tell");
    assert_eq!(ends[0].take_gone(), Some((number, libc::ECONNREFUSED)));
    assert!(ends[0].may_sleep());
}

/// Polls both endpoints until `what` returns true.
fn look_until(ends: &[Tcp; 2], what: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !what() {
        ends.iter().for_each(|tcp| _ = tcp.take(&mut []));
        assert!(Instant::now() < end, "it does not come");
    }
}

/// Sends a message from the first endpoint to the second. The message must not arrive before `seen` returns true, and must arrive
/// after `then`.
fn comes_late(ends: &[Tcp; 2], seen: impl Fn() -> bool, then: impl FnOnce()) {
    let mut buffer = [0u8; 64];
    // SAFETY: `post` needs a buffer that lives until the message has arrived, which `wait` ensures below. `inject` reads its bytes
    // before it returns.
    unsafe {
        ends[1].post(sge(&mut buffer), context(1));
        assert_eq!(ends[0].inject(0, &[sge(&mut b"late".to_owned())]), 0);
    }
    look_until(ends, seen);
    assert!(ends[0].way(0) == ConnectionState::BeingMade && ends[0].take_gone().is_none());
    then();
    assert_eq!(wait(ends, 1, 1), 4);
    assert_eq!((&buffer[..4], ends[0].way(0)), (&b"late"[..], ConnectionState::There));
}

#[test]
fn who_refuses_connections_is_tried_again() {
    let ends = pair();
    // No socket listens for a while, as while a firewall is loaded.
    let name = ends[1].names()[0];
    ends[1].inner().door.listeners.clear();
    let has_failed = || ends[0].inner().peers[0].tries.failed >= 4;
    comes_late(&ends, has_failed, || {
        let listener = TcpListener::bind(name).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut inner = ends[1].inner();
        inner.epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, DOOR)).unwrap();
        inner.door.listeners.push(listener);
    });
}

#[test]
fn a_greeting_that_is_cut_short_is_tried_again() {
    // The second endpoint does not know the first endpoint yet, as between jobs that are being connected.
    let ends = [(); 2].map(|()| open(&["127.0.0.1"], Duration::ZERO));
    ends[0].insert(ends[1].names(), None);
    ends.iter().for_each(|tcp| tcp.let_in(SECRET));
    let has_failed = || ends[0].inner().peers[0].tries.failed >= 3;
    comes_late(&ends, has_failed, || _ = ends[1].insert(ends[0].names(), None));
}

#[test]
fn another_way_is_taken_where_the_first_leads_nowhere() {
    let ends = [["127.0.0.1", "127.0.0.2"], ["127.0.0.1", "127.0.0.3"]]
        .map(|addresses| open(&addresses, PATIENCE));
    meet(&ends);
    drop(ends[1].inner().door.listeners.remove(0));
    comes_late(&ends, || ends[0].inner().peers[0].tries.failed >= 1, || ());
    let detour = ends[0].take_detour().unwrap();
    assert_eq!((detour.number, detour.error), (0, libc::ECONNREFUSED));
    assert_eq!([detour.first, detour.taken], ends[1].names());
    assert!(ends[0].take_detour().is_none() && ends[1].take_detour().is_none());
}

#[test]
fn a_hello_that_was_heard_is_of_no_use_to_others() {
    let ends = pair();
    let [first, second] = [(); 2].map(|()| TcpStream::connect(ends[1].names()[0]).unwrap());
    let mut both = [first, second];
    ends[1].take(&mut []);
    let [asked, again] = both.each_mut().map(asked);
    assert_ne!(asked, again);
    let (from, to) = (ends[0].names()[0], ends[1].names()[0]);
    let hello = frame::GreetingWords { from, to, asked, drawn: [1; 16] }.hello(SECRET);
    // The same hello again. A stranger that has recorded the first connection could send it.
    both[1].write_all(&hello).unwrap();
    look_until(&ends, || ends[1].inner().door.strangers.len() == 1);
    assert_eq!(both[1].read(&mut [0; 16]).unwrap_or(0), 0, "no answer");
    assert!(matches!(ends[1].inner().peers[0].link, TcpConnectionState::None));
    both[0].write_all(&hello).unwrap();
    look_until(&ends, || ends[1].way(0) == ConnectionState::There);
    // A process that answers without the secret also does not belong to the job.
    let false_peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let number = ends[0].insert(&[false_peer.local_addr().unwrap()], None);
    // SAFETY: `inject` needs bytes that are readable during the call. These bytes are.
    assert_eq!(unsafe { ends[0].inject(number, &[sge(&mut b"hello".to_owned())]) }, 0);
    let (mut stream, _) = false_peer.accept().unwrap();
    stream.write_all(&frame::challenge([2; 16])).unwrap();
    let asked_it =
        || matches!(ends[0].inner().peers[number as usize].link, TcpConnectionState::Asked(..));
    look_until(&ends, asked_it);
    stream.write_all(&[3; frame::ANSWER]).unwrap();
    look_until(&ends, || ends[0].way(number) == ConnectionState::Gone);
}

#[test]
fn strangers_go_without_a_newcomer() {
    let ends = pair();
    let strangers: Vec<TcpStream> =
        (0..40).map(|_| TcpStream::connect(ends[1].names()[0]).unwrap()).collect();
    look_until(&ends, || ends[1].inner().door.strangers.len() == strangers.len());
    assert!(ends[1].inner().timer_at.is_some(), "somebody is woken for them");
    let later = Instant::now() + Duration::from_secs(6);
    ends[1].inner().expire_strangers(later);
    assert!(ends[1].inner().door.strangers.len() <= 16, "many have less time than few");
    ends[1].inner().expire_strangers(later + Duration::from_secs(60));
    assert!(ends[1].inner().door.strangers.is_empty());
}

#[test]
fn what_breaks_in_the_middle_fails_once_each() {
    for _ in 0..20 {
        let ends = pair();
        let mut there = content(3_000_000, 1);
        // SAFETY: `register` needs memory that stays mapped until it is withdrawn. It lives as long as the endpoints.
        assert!(unsafe { ends[1].register(sge(&mut there), 9) });
        let start = there.as_ptr().addr() as u64;
        let mut places = vec![vec![0u8; 1_000_000]; 6];
        for (at, place) in places.iter_mut().enumerate() {
            let kind = if at % 2 == 1 { WRITE } else { READ };
            let (place, at) = (sge(place), context(at + 1));
            // SAFETY: `transfer` needs local memory that lives until the operation is complete. `places` lives as long as `ends`.
            assert_eq!(unsafe { ends[0].transfer(0, kind, place, key(start, 9), at) }, 0);
        }
        let mut over = Vec::new();
        let end = Instant::now() + Duration::from_secs(20);
        let mut shut = false;
        while over.len() < places.len() && Instant::now() < end {
            let nothing = fi_cq_msg_entry { op_context: context(0), flags: 0, len: 0 };
            let mut entries = [nothing; 8];
            if let TcpPollOutcome::Over(count) = ends[0].take(&mut entries) {
                over.extend(entries[..count].iter().map(|entry| entry.op_context.addr()));
            }
            over.extend(ends[0].take_failed().map(|(context, _)| context.addr()));
            match over.is_empty() {
                true => _ = ends[1].take(&mut []),
                false if !std::mem::replace(&mut shut, true) => ends[1].shut(),
                false => {}
            }
        }
        over.sort_unstable();
        assert_eq!(over, [1, 2, 3, 4, 5, 6], "each ends once, well or not");
        assert!(ends[0].take_gone().is_some());
    }
}
