//! Sockets that collect the bytes of reads.

use super::*;
use crate::access::PollingThread;

/// Checks that two ends do not wait for each other. Both programs compute, each end reads the other's memory, and the helpers look
/// only when their descriptor is readable or their sleep has reached its limit. Until a sleep reaches its limit, each end may hold
/// back bytes for which the other end waits.
#[test]
fn two_ends_that_collect_do_not_wait_for_each_other() {
    const LEN: usize = 600_000;
    for round in 0..20 {
        let ends = pair();
        let mut there = [0, 1].map(|at| content(LEN, 7 * round + at));
        let mut here = [vec![0u8; LEN], vec![0u8; LEN]];
        for (tcp, memory) in ends.iter().zip(&mut there) {
            // SAFETY: `register` needs memory that stays mapped until it is withdrawn. It lives longer than the endpoints are used.
            assert!(unsafe { tcp.register(sge(memory), 9) });
        }
        let starts = [1, 0].map(|other| there[other].as_ptr().addr() as u64);
        let read = |at: usize, into: &mut [u8]| {
            let remote = key(starts[at], 9);
            // SAFETY: `transfer` needs memory that lives until the operation is complete. The test waits for all reads.
            assert_eq!(unsafe { ends[at].transfer(0, READ, sge(into), remote, context(1)) }, 0);
        };
        // A short read by each end opens the connection.
        for at in [0, 1] {
            read(at, &mut here[at][..1]);
            assert_eq!(wait(&ends, at, 1), 1);
        }
        ends.iter().for_each(|tcp| tcp.set_poller(PollingThread::Helper));
        for at in [0, 1] {
            read(at, &mut here[at]);
        }
        let (mut over, mut limits) = ([false; 2], 0);
        while over != [true; 2] {
            for (at, tcp) in ends.iter().enumerate() {
                let nothing = fi_cq_msg_entry { op_context: context(0), flags: 0, len: 0 };
                let mut entries = [nothing; 4];
                if let TcpPollOutcome::Over(count) = tcp.take(&mut entries) {
                    over[at] |= entries[..count].iter().any(|entry| entry.len > 1);
                }
            }
            let collect = ends.each_ref().map(Tcp::begin_collecting);
            let readable = ends.iter().any(|tcp| {
                let mut fd = libc::pollfd { fd: tcp.wait(), events: libc::POLLIN, revents: 0 };
                // SAFETY: `poll` needs as many entries as its second argument says, here one.
                !tcp.may_sleep() || unsafe { libc::poll(&raw mut fd, 1, 20) > 0 }
            });
            if !readable && over != [true; 2] {
                assert!(collect.contains(&true), "nothing ends the helpers' sleep");
                limits += 1;
                assert!(limits < 100, "the reads go on");
            }
            ends.iter().for_each(Tcp::end_collecting);
        }
        assert!(here[0] == there[1] && here[1] == there[0]);
    }
}
