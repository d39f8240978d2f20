//! Several rails to one peer: all rails carry data and each byte is right. If a rail dies in the middle of a round, no operation
//! is lost or takes effect twice.
//!
//! The rails are two connections over loopback. The second rail dies when the test ends its connections, which it can do because
//! the ranks are threads of this process.

use nix::sys::socket::{Shutdown, SockaddrStorage, getpeername, getsockname, shutdown};
use std::os::fd::RawFd;
use weft_bootstrap::threads;
use weft_fabric::{Fabric, FabricExt, FlagKind, RemoteAddr, RemoteRead, RemoteWrite, Sge};
use weft_fabric_ofi::{Ofi, OfiOptions};
use weft_fabric_testing::conformance::{ConformanceRank, Maker, run};
use weft_fabric_testing::libfabric;

const PART: usize = 64 << 10;
const PARTS: usize = 64;
const ROUNDS: u8 = 20;
/// The round in which the second rail dies.
const DEATH: u8 = 7;

/// libfabric's TCP, and the built-in TCP.
const PROVIDERS: [&str; 2] = ["tcp", "weft-tcp"];

fn makers(provider: &str) -> Option<Vec<Maker<Ofi>>> {
    let make = |mut world: weft_bootstrap::ThreadBootstrap| {
        let provider = Some(provider.to_owned());
        let options = OfiOptions { provider, paths: 2, ..OfiOptions::default() };
        Box::new(move || Ofi::connect(&mut world, options).unwrap_or_else(|e| panic!("{e}")))
            as Maker<Ofi>
    };
    (!libfabric::missing(Some(provider))).then(|| threads(2).into_iter().map(make).collect())
}

/// Returns the byte at `at` in a round.
fn byte(round: u8, at: usize) -> u8 {
    (at / 7).wrapping_mul(31).wrapping_add(usize::from(round) * 13) as u8
}

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: `Sge::new` needs memory that stays until the operation is complete. Each user below keeps its bytes until then.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Returns the port of this process's end of the second rail.
fn port(rank: &ConformanceRank<Ofi>) -> u64 {
    let lines = rank.fabric.describe();
    let line = lines.iter().find(|line| line.starts_with("rail: ")).expect("a second rail");
    let address = line.split(';').next().unwrap();
    address.rsplit(':').next().unwrap().parse().expect("a port")
}

/// Ends all connections from or to a port in `ports`. Returns their number.
fn end_connections(ports: &[u64]) -> usize {
    let port = |address: SockaddrStorage| Some(u64::from(address.as_sockaddr_in()?.port()));
    let is_it = |fd: RawFd| {
        let own = getsockname::<SockaddrStorage>(fd).ok().and_then(port);
        let other = getpeername::<SockaddrStorage>(fd).ok().and_then(port);
        other.is_some() && [own, other].iter().flatten().any(|port| ports.contains(port))
    };
    let all = std::fs::read_dir("/proc/self/fd").expect("this process's descriptors");
    let all: Vec<RawFd> =
        all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let ended = |&&fd: &&RawFd| is_it(fd) && shutdown(fd, Shutdown::Both).is_ok();
    all.iter().filter(ended).count()
}

/// Reads over the second rail until the rail has carried data. A rail is tried when a transfer first names it.
fn open(rank: &ConformanceRank<Ofi>, there: RemoteAddr) {
    let mut own = [0; 8];
    while rank.fabric.usage().carried[1] == 0 {
        let here = sge(&mut own);
        rank.complete(|done| {
            rank.fabric.read_over(1, 1 - rank.rank(), &RemoteRead::new(here, there, done))
        });
    }
}

/// Moves each round in parts over both rails. Rank 0 writes, or rank 1 reads if `reads` is true. Rank 1 checks every byte. If
/// `kill` is true, the second rail dies in the middle of a round.
fn rounds(rank: &ConformanceRank<Ofi>, reads: bool, kill: bool) {
    let me = rank.rank();
    let region = rank.fabric.allocate(PART * PARTS).unwrap();
    let at: Vec<RemoteAddr> = rank.gather_addresses(region.remote);
    let ports: Vec<u64> = rank.gather([port(rank), 0]).iter().map(|words| words[0]).collect();
    let mut own = vec![0; PART * PARTS];
    let mover = usize::from(reads);
    if me == mover {
        open(rank, at[1 - me]);
    }
    let before_all = rank.fabric.usage().carried;
    for round in 0..ROUNDS {
        if me == 0 {
            own.iter_mut().enumerate().for_each(|(at, b)| *b = byte(round, at));
            if reads {
                region.local.fill(&own);
            }
        }
        rank.barrier();
        if kill && round == DEATH && me != mover {
            // This rank does not answer for a while, so that operations are under way when the rail dies.
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        if me == mover {
            let (done, before) = rank.completion();
            for i in 0..PARTS {
                let part = sge(&mut own[i * PART..(i + 1) * PART]);
                let there = at[1 - me].offset((i * PART) as u64);
                match reads {
                    true => rank
                        .fabric
                        .read_over(i % 2, 1 - me, &RemoteRead::new(part, there, done))
                        .unwrap(),
                    false => rank
                        .fabric
                        .write_over(i % 2, 1 - me, &RemoteWrite::new(part, there, done))
                        .unwrap(),
                }
                if kill && round == DEATH && i == PARTS / 2 {
                    assert!(rank.fabric.rail_works(1, 1 - me), "it has opened");
                    assert!(end_connections(&ports) > 0, "there is a connection to end");
                }
            }
            rank.finish(done, before + PARTS as u64);
            assert!(rank.fabric.idle(), "all is over");
        }
        rank.barrier();
        if me == 1 {
            if !reads {
                region.local.read(&mut own);
            }
            let wrong = own.iter().enumerate().find(|&(at, &b)| b != byte(round, at));
            assert_eq!(wrong, None, "round {round}");
        }
        rank.barrier();
    }
    let text = rank.fabric.describe().join("\n");
    if me == mover {
        assert_eq!(rank.fabric.rail_works(1, 1 - me), !kill, "{text}");
        assert_eq!(text.contains("carries nothing to process"), kill, "{text}");
        let usage = rank.fabric.usage();
        assert_eq!(usage.repeated > 0, kill, "{usage:?}");
        let all = u64::from(ROUNDS) * (PART * PARTS) as u64;
        let [first, second] = [0, 1].map(|rail| usage.carried[rail] - before_all[rail]);
        assert_eq!(first + second, all, "nothing is done twice");
        if kill {
            let until_then = u64::from(DEATH) * all / u64::from(2 * ROUNDS);
            assert!(second >= until_then && second < all / 2, "{usage:?}");
        } else {
            assert_eq!(second, all / 2);
        }
    }
    assert!(rank.fabric.rail_works(0, 1 - me));
    rank.barrier();
}

fn with(check: impl Fn(&ConformanceRank<Ofi>) + Sync) {
    for makers in PROVIDERS.into_iter().filter_map(makers) {
        run(makers, &check);
    }
}

#[test]
fn both_rails_carry_writes() {
    with(|rank| rounds(rank, false, false));
}

#[test]
fn both_rails_carry_reads() {
    with(|rank| rounds(rank, true, false));
}

#[test]
fn a_rail_that_dies_loses_no_write() {
    with(|rank| rounds(rank, false, true));
}

#[test]
fn a_rail_that_dies_loses_no_read() {
    with(|rank| rounds(rank, true, true));
}

/// Checks flags behind the data of each rail. If the flag cannot follow the data yet, the caller waits for the writes first.
#[test]
fn flags_come_after_the_data_of_their_rail() {
    with(|rank| {
        let (me, peer) = (rank.rank(), 1 - rank.rank());
        let region = rank.fabric.allocate(PART + 8).unwrap();
        let flag = rank.fabric.flag(&region, PART, FlagKind::Waking);
        let data = rank.gather_addresses(region.remote);
        let flags = rank.gather_addresses(flag.remote.at);
        let remote = weft_fabric::RemoteFlag { at: flags[peer], waking: true };
        for round in 1..=100u64 {
            if me == 0 {
                let mut own = vec![round as u8; PART];
                let rail = round as usize % 2;
                let (done, before) = rank.completion();
                rank.fabric
                    .write_over(rail, peer, &RemoteWrite::new(sge(&mut own), data[peer], done))
                    .unwrap();
                if !rank.fabric.write_flag_after(rail, peer, &remote.with(round)).unwrap() {
                    rank.finish(done, before + 1);
                    assert!(rank.fabric.write_flag_after(rail, peer, &remote.with(round)).unwrap());
                } else {
                    rank.finish(done, before + 1);
                }
            } else {
                rank.until(|| rank.fabric.counters().value(flag.local) >= round);
                let mut got = vec![0; PART];
                region.local.read(&mut got);
                assert!(got.iter().all(|&b| b == round as u8), "round {round}");
            }
            rank.barrier();
        }
    });
}
