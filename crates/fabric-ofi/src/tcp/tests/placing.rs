//! Places of the bytes that come in one read, and requests that are sent together.

use super::*;

/// Returns numbers that differ from call to call, and are the same in each run of the tests.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*state >> 33) as usize
}

/// Sends messages whose lengths sometimes stay and sometimes change, between reads to the same place and writes. The reader then
/// expects lengths that do not come.
#[test]
fn bytes_at_unexpected_places_are_not_lost() {
    let lens = [100_000, 0, 65_536, 5_000, 1_024, 40, 20_000];
    let ends = pair();
    let mut there = content(1 << 17, 1);
    let mut state = 7;
    for tcp in &ends {
        // SAFETY: `register` needs memory that stays mapped until it is withdrawn. It lives as long as the endpoints.
        assert!(unsafe { tcp.register(sge(&mut there), 9) });
    }
    let start = there.as_ptr().addr() as u64;
    for round in 0..150 {
        let mut sent = Vec::new();
        let mut len = lens[next(&mut state) % lens.len()];
        for _ in 0..1 + next(&mut state) % 24 {
            if next(&mut state).is_multiple_of(6) {
                len = lens[next(&mut state) % lens.len()];
            }
            sent.push(content(len, next(&mut state)));
        }
        let mut buffers = vec![vec![0u8; 128 << 10]; sent.len()];
        let mut got = vec![0u8; 70_000];
        let mut written = content(30_000, round);
        let (mut expected, mut reads) = (0, 0);
        for (number, buffer) in buffers.iter_mut().enumerate().rev() {
            // SAFETY: `post` needs a buffer that stays until the operation is complete. The loop below waits for all messages.
            unsafe { ends[1].post(sge(buffer), context(number + 1)) };
        }
        for message in &mut sent {
            // The reader reads its own registered memory by way of the peer, so its answers come between the messages.
            // SAFETY: `inject` and `transfer` need memory that lives until the operations are complete. The loop below waits.
            unsafe {
                if round % 2 == 0 && next(&mut state).is_multiple_of(3) {
                    let read =
                        ends[1].transfer(0, READ, sge(&mut got), key(start, 9), context(900));
                    assert_eq!(read, 0);
                    reads += 1;
                }
                if next(&mut state).is_multiple_of(5) {
                    let to = key(start + 70_000, 9);
                    assert_eq!(ends[0].transfer(0, WRITE, sge(&mut written), to, context(901)), 0);
                    expected += 1;
                }
                loop {
                    let posted = ends[0].inject(0, &[sge(message)]);
                    if posted == 0 {
                        break;
                    }
                    assert_eq!(posted, -libc::EAGAIN as isize);
                    ends.iter().for_each(|tcp| _ = tcp.inner().look());
                }
                expected += 1;
            }
            if next(&mut state).is_multiple_of(4) {
                ends.iter().for_each(|tcp| _ = tcp.inner().look());
            }
        }
        expected += reads;
        let mut order = Vec::new();
        until(&ends, |at, context, len| {
            expected -= 1;
            if at == 1 && context.addr() < 900 {
                order.push((context.addr() - 1, len));
            }
            expected == 0
        });
        for (turn, (number, len)) in order.into_iter().enumerate() {
            assert!(buffers[number][..len] == sent[turn], "round {round}, message {turn}");
        }
        assert!(reads == 0 || got == there[..70_000], "round {round}");
    }
}

#[test]
fn short_writes_behind_a_write_are_sent_together_and_before_a_message() {
    let ends = pair();
    let mut there = vec![0u8; 4096];
    let mut buffer = vec![0u8; 64];
    // SAFETY: `register` needs memory that stays mapped until it is withdrawn. It lives as long as the endpoints.
    assert!(unsafe { ends[1].register(sge(&mut there), 9) });
    let start = there.as_ptr().addr() as u64;
    let mut here = content(8 * 65, 1);
    let write = |number: usize, here: &mut [u8]| {
        let (memory, to) = (sge(&mut here[8 * number..][..8]), key(start + 8 * number as u64, 9));
        // SAFETY: `transfer` needs memory that lives until the operation is complete. The test waits for all writes.
        assert_eq!(unsafe { ends[0].transfer(0, WRITE, memory, to, context(1 + number)) }, 0);
    };
    // The first write opens the connection.
    write(0, &mut here);
    wait(&ends, 0, 1);
    write(0, &mut here);
    assert!(!ends[0].has_unsent(), "nothing makes sure of a poll");
    (1..64).for_each(|number| write(number, &mut here));
    assert!(ends[0].has_unsent() && !ends[0].may_sleep());
    assert!(!ends[0].inner().peers[0].wanted().contains(EpollFlags::EPOLLOUT), "there is room");
    // SAFETY: `post` and `inject` need bytes that live until the operations are complete. The test waits for them.
    unsafe {
        ends[1].post(sge(&mut buffer), context(100));
        assert_eq!(ends[0].inject(0, &[sge(&mut b"after".to_owned())]), 0);
    }
    assert!(!ends[0].has_unsent(), "all went with the message");
    write(64, &mut here);
    let mut over = 0;
    assert_eq!(wait(&ends, 1, 100), 5);
    assert!(there[..8 * 64] == here[..8 * 64], "what was written before the message");
    until(&ends, |at, context, _| {
        over += usize::from(at == 0);
        (at, context.addr()) == (0, 65)
    });
    assert!(there[..8 * 65] == here[..], "{over} writes");
}
