//! Frames that find no room in a socket.

use super::*;

#[test]
fn what_waits_for_room_has_not_arrived() {
    let ends = pair();
    let mut message = content(200_000, 1);
    let mut sent = 0;
    // Nobody reads at the other end, which has no buffers.
    // SAFETY: `inject` needs bytes that are readable during the call. These are.
    while unsafe { ends[0].inject(0, &[sge(&mut message)]) } == 0 {
        sent += 1;
        ends.iter().for_each(|tcp| _ = tcp.take(&mut []));
    }
    assert!(ends[0].has_unsent() && !ends[0].has_arrived());
    let mut buffer = vec![0u8; 200_000];
    for number in 1..=sent {
        // SAFETY: `post` needs a buffer that is not touched until the operation is complete. The next line waits for the message.
        unsafe { ends[1].post(sge(&mut buffer), context(number)) };
        assert_eq!(wait(&ends, 1, number), message.len());
        assert_eq!(buffer, message);
    }
    let end = Instant::now() + Duration::from_secs(20);
    while !ends[0].has_arrived() && Instant::now() < end {
        ends.iter().for_each(|tcp| _ = tcp.take(&mut []));
    }
    assert!(ends[0].has_arrived() && !ends[0].has_unsent());
}
