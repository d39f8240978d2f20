//! One-sided operations.

use super::rank::{ConformanceRank, pattern, sge};
use weft_fabric::{
    CompareSwap, Fabric, FabricExt, FaultCause, FetchAdd, FlagKind, Head, Key, RemoteAddr,
    RemoteFlag, RemoteRead, RemoteWrite, Sge,
};

/// Lengths around the limits that fabrics have.
const LENGTHS: [usize; 9] = [0, 1, 7, 8, 63, 64, 4097, 65_536, 300_001];

/// Checks that allocated memory has the requested length, begins at a multiple of 64 bytes, and is zero even if it was used before.
/// An exabyte is refused with a fault.
pub fn allocated_memory_is_zero_and_used_again(rank: &ConformanceRank) {
    for _ in 0..3 {
        let mut regions = Vec::new();
        for len in LENGTHS.into_iter().chain(1..100) {
            let region = rank.fabric.allocate(len).expect("a little memory");
            assert_eq!(region.local.len(), len);
            assert_eq!(region.local.ptr().addr() % 64, 0, "alignment");
            let mut bytes = vec![1; len];
            region.local.read(&mut bytes);
            assert!(bytes.iter().all(|&b| b == 0), "{len} bytes are not zero");
            region.local.fill(&vec![0xff; len]);
            regions.push(region);
        }
        regions.into_iter().for_each(|region| rank.fabric.withdraw(region));
    }
    match rank.fabric.allocate(1 << 60) {
        Err(fault)
            if matches!(fault.cause(), FaultCause::System { .. } | FaultCause::NoRoom { .. }) => {}
        other => panic!("an exabyte: {other:?}"),
    }
}

/// Checks that a rank that sees the flag sees all of the data, repeatedly over the same memory.
pub fn flags_come_after_their_data(rank: &ConformanceRank) {
    let (to, from) = neighbours(rank);
    for len in LENGTHS {
        let rounds = if len > 10_000 { 20 } else { 100 };
        let region = rank.fabric.allocate(len + 64).unwrap();
        let flag_at = len.next_multiple_of(8);
        let flag = rank.fabric.flag(&region, flag_at, FlagKind::Waking);
        let (start, flags) = (rank.gather_addresses(region.remote), flag_names(rank, flag.remote));
        for round in 1..=rounds {
            let mut data = pattern(round, len);
            rank.complete(|done| {
                rank.fabric.write_flag(
                    to,
                    &RemoteWrite::new(sge(&mut data), start[to], done),
                    &flags[to].with(round),
                )
            });
            rank.reach(flag.local, round);
            assert_eq!(rank.fabric.counters().value(flag.local), round);
            let mut got = vec![0; len];
            region.local.read(&mut got);
            let (wanted, before) = (pattern(round, len), pattern(round - 1, len));
            assert!(
                got == wanted,
                "round {round}: flag before data, {}",
                WrongBytes::new(&got, &wanted, &before)
            );
            // The neighbour may write again only after this rank has looked.
            rank.give(from, Head([round, 0, 0]), &mut []);
            assert_eq!(rank.take_bytes(Some(to)).1.0[0], round);
        }
        rank.barrier();
        rank.fabric.withdraw(region);
    }
}

/// The bytes in which received data differ from the expected data, for the message of a failed test.
struct WrongBytes {
    len: usize,
    /// Number of bytes that differ, and the range from the first such byte to the last.
    count: usize,
    range: std::ops::Range<usize>,
    /// Number of the differing bytes that are those of the previous write, which the new write should have replaced.
    previous: usize,
}

impl WrongBytes {
    fn new(got: &[u8], wanted: &[u8], before: &[u8]) -> WrongBytes {
        let differs = |&at: &usize| got[at] != wanted[at];
        let all: Vec<usize> = (0..got.len()).filter(differs).collect();
        WrongBytes {
            len: got.len(),
            count: all.len(),
            range: all.first().copied().unwrap_or(0)..all.last().map_or(0, |last| last + 1),
            previous: all.iter().filter(|&&at| got[at] == before[at]).count(),
        }
    }
}

impl std::fmt::Display for WrongBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let WrongBytes { len, count, range, previous } = self;
        write!(
            f,
            "{count} of {len} bytes are wrong, all in {range:?}, {previous} as in the round before"
        )
    }
}

fn flag_names(rank: &ConformanceRank, mine: RemoteFlag) -> Vec<RemoteFlag> {
    let at = rank.gather_addresses(mine.at);
    at.into_iter().map(|at| RemoteFlag { at, waking: mine.waking }).collect()
}

fn neighbours(rank: &ConformanceRank) -> (usize, usize) {
    let size = rank.size();
    ((rank.rank() + 1) % size, (rank.rank() + size - 1) % size)
}

/// Checks that an immediate's counter includes the immediates that came before anybody asked for the counter. When an immediate is
/// counted its data is there, and no message is mistaken for an immediate.
pub fn immediates_are_counted_even_before_they_are_asked_for(rank: &ConformanceRank) {
    let (to, _) = neighbours(rank);
    let len = 5000;
    let region = rank.fabric.allocate(len).unwrap();
    let start = rank.gather_addresses(region.remote);
    // A message that no rank receives yet must not delay immediates.
    rank.give(to, Head([9, 9, 9]), &mut [1, 2, 3]);
    let mut data = pattern(rank.rank() as u64, len);
    for _ in 0..50 {
        rank.complete(|done| {
            rank.fabric.write_imm(to, &RemoteWrite::new(sge(&mut data), start[to], done), 77)
        });
        rank.complete(|done| {
            rank.fabric.write_imm(to, &RemoteWrite::new(Sge::EMPTY, start[to], done), u32::MAX)
        });
    }
    rank.barrier();
    let (first, second) = (rank.fabric.immediate(77), rank.fabric.immediate(u32::MAX));
    assert_eq!(first, rank.fabric.immediate(77), "one counter for each immediate");
    rank.reach(first, 50);
    rank.reach(second, 50);
    let mut got = vec![0; len];
    region.local.read(&mut got);
    assert!(got == pattern(neighbours(rank).1 as u64, len), "data after the immediate");
    assert_eq!(rank.take_bytes(None).2, [1, 2, 3]);
    rank.barrier();
    rank.complete(|done| {
        rank.fabric.write_imm(to, &RemoteWrite::new(Sge::EMPTY, start[to], done), 77)
    });
    rank.reach(first, 51);
    rank.barrier();
    assert!(rank.fabric.receive(None).is_none(), "an immediate is not a message");
    let counters = rank.fabric.counters();
    assert_eq!((counters.value(first), counters.value(second)), (51, 50));
    rank.fabric.withdraw(region);
}

/// Lets all ranks add to and swap words of rank 0. Checks that nothing is lost and every result is unique.
pub fn atomics_are_atomic(rank: &ConformanceRank) {
    const ADDS: u64 = 1000;
    let region = rank.fabric.allocate(16).unwrap();
    let words = rank.gather_addresses(region.remote);
    let (sum, swapped) = (words[0], words[0].offset(8));
    let mut seen = Vec::new();
    for _ in 0..ADDS {
        let mut before = [0; 8];
        rank.complete(|done| {
            rank.fabric
                .fetch_add(0, &FetchAdd { target: sum, operand: 1, result: sge(&mut before), done })
        });
        seen.push(u64::from_ne_bytes(before));
        // An increment by compare and swap.
        let mut guess = 0;
        loop {
            let mut found = [0; 8];
            let result = sge(&mut found);
            rank.complete(|d| {
                rank.fabric.compare_swap(
                    0,
                    &CompareSwap {
                        target: swapped,
                        compare: guess,
                        swap: guess + 1,
                        result,
                        done: d,
                    },
                )
            });
            match u64::from_ne_bytes(found) {
                value if value == guess => break,
                value => guess = value,
            }
        }
    }
    assert!(seen.is_sorted_by(|a, b| a < b), "results of one rank ascend");
    let total = ADDS * rank.size() as u64;
    let all = rank.gather([seen.iter().sum(), 0]);
    assert_eq!(all.iter().map(|v| v[0]).sum::<u64>(), total * (total - 1) / 2, "results differ");
    if rank.rank() == 0 {
        let mut words = [0; 16];
        region.local.read(&mut words);
        let word = |i: usize| u64::from_ne_bytes(words[i..i + 8].try_into().unwrap());
        assert_eq!((word(0), word(8)), (total, total));
    }
    rank.barrier();
    rank.fabric.withdraw(region);
}

/// Checks that every byte of a neighbour's memory can be read and written, allocated or exposed. A fabric that does not reach
/// exposed memory says so in its capabilities and refuses the operation when it is posted.
pub fn reads_and_writes_reach_exposed_memory(rank: &ConformanceRank) {
    let (to, from) = neighbours(rank);
    let direct = rank.fabric.capabilities(to).direct;
    if !direct {
        eprintln!("SKIPPED in part: the fabric does not reach the program's memory here");
    }
    for len in LENGTHS {
        let mut own = pattern(rank.rank() as u64, len);
        let mut landing = vec![0; len];
        let allocated = rank.fabric.allocate(len).unwrap();
        allocated.local.fill(&own);
        let exposed = rank.fabric.expose(sge(&mut own)).unwrap();
        let target = rank.fabric.expose(sge(&mut landing)).unwrap();
        let allocated_at = rank.gather_addresses(allocated.remote);
        let exposed_at = rank.gather_addresses(exposed.remote);
        let target_at = rank.gather_addresses(target.remote);
        let mut got = vec![0; len];
        rank.complete(|done| {
            rank.fabric.read(to, &RemoteRead::new(sge(&mut got), allocated_at[to], done))
        });
        assert!(got == pattern(to as u64, len), "read of {len} allocated bytes");
        if direct {
            got.fill(0);
            rank.complete(|done| {
                rank.fabric.read(to, &RemoteRead::new(sge(&mut got), exposed_at[to], done))
            });
            assert!(got == pattern(to as u64, len), "read of {len} exposed bytes");
            let mut data = pattern(100 + rank.rank() as u64, len);
            rank.complete(|done| {
                rank.fabric.write(to, &RemoteWrite::new(sge(&mut data), target_at[to], done))
            });
        } else if len > 0 {
            let result =
                rank.fabric.read(to, &RemoteRead::new(sge(&mut got), exposed_at[to], None));
            let fault = result.unwrap_err();
            assert!(matches!(fault.cause(), FaultCause::Unsupported { .. }), "{fault}");
        }
        rank.barrier();
        if direct {
            let mut seen = vec![0; len];
            target.local.read(&mut seen);
            assert!(seen == pattern(100 + from as u64, len), "write of {len} exposed bytes");
        }
        for region in [allocated, exposed, target] {
            rank.fabric.withdraw(region);
        }
    }
}

/// Checks that an address that a peer could forge is refused when the operation is posted, and that no memory is touched.
pub fn bad_addresses_are_refused(rank: &ConformanceRank) {
    let fabric = &rank.fabric;
    let region = fabric.allocate(4096).unwrap();
    let good = rank.gather_addresses(region.remote);
    for (peer, &at) in good.iter().enumerate() {
        let mut bytes = [0; 8];
        let eight = sge(&mut bytes);
        let beyond = RemoteAddr { addr: 1 << 62, ..at };
        let wrapping = RemoteAddr { addr: u64::MAX - 3, ..at };
        assert_ne!(at.key, Key::NONE, "a region without a name");
        let nowhere = RemoteAddr { key: Key::NONE, ..at };
        let unknown = RemoteAddr { key: Key([5; 3]), ..at };
        for bad in [beyond, wrapping, nowhere, unknown] {
            assert!(
                fabric.write(peer, &RemoteWrite::new(eight, bad, None)).is_err(),
                "write to {bad:?}"
            );
            assert!(
                fabric.read(peer, &RemoteRead::new(eight, bad, None)).is_err(),
                "read from {bad:?}"
            );
            assert!(
                fabric
                    .fetch_add(
                        peer,
                        &FetchAdd { target: bad, operand: 1, result: eight, done: None }
                    )
                    .is_err(),
                "add at {bad:?}"
            );
            assert!(
                fabric
                    .compare_swap(
                        peer,
                        &CompareSwap {
                            target: bad,
                            compare: 0,
                            swap: 1,
                            result: eight,
                            done: None
                        }
                    )
                    .is_err(),
                "swap at {bad:?}"
            );
            assert!(
                fabric.write_imm(peer, &RemoteWrite::new(eight, bad, None), 5).is_err(),
                "immediate {bad:?}"
            );
            let flag = RemoteFlag { at: bad, waking: true };
            assert!(
                fabric.write_flag(peer, &RemoteWrite::new(eight, at, None), &flag.with(1)).is_err(),
                "flag {bad:?}"
            );
        }
        let odd = at.offset(4);
        assert!(
            fabric
                .fetch_add(peer, &FetchAdd { target: odd, operand: 1, result: eight, done: None })
                .is_err(),
            "a word across words"
        );
        let flag = RemoteFlag { at: odd, waking: true };
        assert!(
            fabric
                .write_flag(peer, &RemoteWrite::new(Sge::EMPTY, at, None), &flag.with(1))
                .is_err(),
            "odd flag"
        );
    }
    rank.barrier();
    let mut bytes = vec![1; 4096];
    region.local.read(&mut bytes);
    assert!(bytes.iter().all(|&b| b == 0), "a refused operation has left traces");
    assert_eq!(fabric.counters().value(fabric.immediate(5)), 0, "a refused immediate arrived");
    rank.barrier();
    fabric.withdraw(region);
}
