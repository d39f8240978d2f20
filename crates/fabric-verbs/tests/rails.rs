//! Several rails to one peer: all carry, one that dies loses nothing, and two are nearly twice as fast as one.
//!
//! The rails are the cables of the project's virtual machine, `vaN` to `vbN`, which netem cuts and shapes here.

mod common;

use std::io::Write;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weft_bootstrap::{Bootstrap, ThreadBootstrap, threads};
use weft_channel::rails::{Rails, Waits, Way};
use weft_fabric::{Counter, Fabric, Head, Posted, Region, RemoteAddr, Sge};
use weft_fabric_verbs::{Options, Verbs};

/// Bytes of the memory that ranks show each other.
const LEN: usize = 4 << 20;
/// Bytes that a round writes and reads, in parts of so many.
const ROUND: usize = 1 << 20;
const PART: usize = 32 << 10;
const PARTS: usize = ROUND / PART;

/// The shape of a cable is one for all tests.
static CABLES: Mutex<()> = Mutex::new(());

/// The two cables, unshaped again at the end.
struct Cables {
    nodes: Vec<Vec<String>>,
    _alone: MutexGuard<'static, ()>,
}

impl Cables {
    /// Both, or a loud word that there are none.
    fn take() -> Option<Cables> {
        let nodes = common::nodes()?;
        let alone = CABLES.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = if nodes.len() != 2 || nodes[0].len() != 2 {
            Some(format!(
                "two cables are needed, between interfaces vaN and vbN; there is {nodes:?}"
            ))
        } else {
            tc(&["qdisc", "show"]).err()
        };
        if let Some(missing) = missing {
            let _ = writeln!(std::io::stderr(), "\nNOT RUN: tests of several rails: {missing}");
            assert!(std::env::var_os("WEFT_TEST_VERBS").is_none(), "{missing}");
            return None;
        }
        let cables = Cables { nodes, _alone: alone };
        cables.free();
        Some(cables)
    }

    /// Gives the way out at one end the shape that netem is told.
    fn shape(&self, end: &str, netem: &[&str]) {
        let words = ["qdisc", "replace", "dev", end, "root", "netem", "limit", "10000"];
        tc(&[&words, netem].concat()).unwrap();
    }

    fn free(&self) {
        for end in ["va0", "vb0", "va1", "vb1"] {
            // Where there is no shape, this is an error.
            let _ = tc(&["qdisc", "del", "dev", end, "root"]);
        }
    }
}

impl Drop for Cables {
    fn drop(&mut self) {
        self.free();
    }
}

fn tc(words: &[&str]) -> Result<(), String> {
    run("tc", words)
}

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let error =
        || format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    output.status.success().then_some(()).ok_or_else(error)
}

/// Bytes that have left by an interface.
fn sent(interface: &str) -> u64 {
    let path = format!("/sys/class/net/{interface}/statistics/tx_bytes");
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Bytes that have left at both ends of each cable.
fn carried() -> [u64; 2] {
    [0, 1].map(|rail| sent(&format!("va{rail}")) + sent(&format!("vb{rail}")))
}

/// One rank, connected with the other over both rails.
struct Side {
    verbs: Verbs,
    /// The peer writes here.
    region: Region,
    theirs: RemoteAddr,
    /// The peer reads from here.
    source: Region,
    their_source: RemoteAddr,
}

/// What is in the memory that rank 1 offers, and what rank 0 writes in a round.
fn content(round: u64, i: usize) -> u8 {
    ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ round << 17) >> 40) as u8
}

fn fill(memory: Sge, round: u64) {
    let bytes: Vec<u8> = (0..memory.len()).map(|i| content(round, i)).collect();
    memory.fill(&bytes);
}

fn check(memory: Sge, round: u64, what: &str) {
    let mut bytes = vec![0; memory.len()];
    memory.read(&mut bytes);
    let wrong = (0..bytes.len()).find(|&i| bytes[i] != content(round, i));
    assert_eq!(wrong, None, "round {round}: the first wrong byte that was {what}");
}

impl Side {
    fn new(world: &mut ThreadBootstrap, cables: &Cables, change: fn(&mut Options)) -> Side {
        let mut options = common::options(&cables.nodes, world.rank());
        change(&mut options);
        let verbs = Verbs::connect_with(world, options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(verbs.capabilities(1 - world.rank()).rails, 2);
        let [region, source] = [(); 2].map(|()| verbs.allocate(LEN).unwrap());
        fill(source.local.part(0, ROUND), 0);
        let theirs = common::exchange(world, "region", region.remote);
        let their_source = common::exchange(world, "source", source.remote);
        Side { verbs, region, theirs, source, their_source }
    }

    fn progress(&self) {
        assert_eq!(self.verbs.fault(), None, "{:?}", self.verbs.trouble());
        if !self.verbs.progress() {
            std::thread::yield_now();
        }
    }

    fn until(&self, what: &str, mut over: impl FnMut() -> bool) {
        let start = Instant::now();
        while !over() {
            let text = || self.verbs.describe().join("\n");
            assert!(start.elapsed() < Duration::from_secs(100), "{what}:\n{}", text());
            self.progress();
        }
    }

    fn tell(&self, number: u64) {
        let peer = 1 - self.verbs.rank();
        let posted = self.verbs.send(peer, Head([number, 0, 0]), Sge::EMPTY, None);
        assert_eq!(posted, Posted::Done);
    }

    fn hear(&self) -> u64 {
        let mut number = None;
        self.until("a message", || {
            let message = self.verbs.receive(Some(1 - self.verbs.rank()));
            number = message.map(|message| {
                let number = message.head.0[0];
                self.verbs.release(message);
                number
            });
            number.is_some()
        });
        number.unwrap()
    }

    /// Rank 0: opens the further rail.
    fn open(&self) {
        let done = self.verbs.counters().allocate();
        let from = self.source.local.part(0, 8);
        // A counter may have been another's before.
        let mut posted = self.verbs.counters().value(done);
        self.tell(READY);
        assert_eq!(self.hear(), READY);
        self.until("the further rail opens", || {
            if self.verbs.counters().value(done) == posted {
                self.verbs.write_over(0, 1, from, self.theirs, Some(done)).unwrap();
                self.verbs.write_over(1, 1, from, self.theirs, Some(done)).unwrap();
                posted += 2;
            }
            self.verbs.further_connections() == 1
        });
        self.until("writes", || self.verbs.counters().value(done) == posted);
        assert!(self.verbs.rail_works(0, 1) && self.verbs.rail_works(1, 1));
    }

    /// Posts part `i` of a round: written, and read back from what rank 1 offers; by turns over both rails.
    fn post(&self, i: usize, into: Sge, done: Counter) {
        let (at, rail) = (i * PART, i % 2);
        let from = self.source.local.part(at, PART);
        let to = self.theirs.offset(at as u64);
        self.verbs.write_over(rail, 1, from, to, Some(done)).unwrap();
        let from = self.their_source.offset(at as u64);
        self.verbs.read_over(rail, 1, into.part(at, PART), from, Some(done)).unwrap();
    }

    /// Rank 1: looks at what was written, round by round.
    fn serve(&self) {
        loop {
            match self.hear() {
                END => return,
                READY => self.tell(READY),
                round => {
                    check(self.region.local.part(0, ROUND), round, "written");
                    self.tell(round);
                }
            }
        }
    }
}

const READY: u64 = 1 << 40;
const END: u64 = 1 << 41;

/// Runs `first` on rank 0, while rank 1 looks at what is written, and then does `last`.
fn pair(
    cables: &Cables,
    change: fn(&mut Options),
    first: impl FnOnce(&Side) + Send,
    last: impl FnOnce(&Side) + Send,
) {
    let mut worlds = threads(2);
    let (mut b, mut a) = (worlds.pop().unwrap(), worlds.pop().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let side = Side::new(&mut a, cables, change);
            side.open();
            first(&side);
            side.tell(END);
            side.until("all is sent", || side.verbs.idle());
            a.fence().unwrap();
        });
        scope.spawn(move || {
            let side = Side::new(&mut b, cables, change);
            side.serve();
            last(&side);
            side.until("all is sent", || side.verbs.idle());
            b.fence().unwrap();
        });
    });
}

/// One round of writes and reads; `between` is called when half of them are posted.
fn round(side: &Side, number: u64, between: impl FnOnce()) {
    let counters = side.verbs.counters();
    let done = counters.allocate();
    let all = counters.value(done) + 2 * PARTS as u64;
    let into = side.region.local.part(0, ROUND);
    into.fill(&vec![0; ROUND]);
    fill(side.source.local.part(0, ROUND), number);
    (0..PARTS / 2).for_each(|i| side.post(i, into, done));
    between();
    (PARTS / 2..PARTS).for_each(|i| side.post(i, into, done));
    side.until("all operations are over", || counters.value(done) >= all);
    check(into, 0, "read");
    side.tell(number);
    assert_eq!(side.hear(), number);
    side.until("nothing is under way", || side.verbs.idle());
    assert_eq!(counters.value(done), all, "each operation counts once");
    counters.free(done);
}

#[test]
fn both_rails_carry_and_every_byte_is_right() {
    let Some(cables) = Cables::take() else { return };
    let first = |side: &Side| {
        for number in 1..4 {
            let before = carried();
            round(side, number, || ());
            let after = carried();
            // Half of what is written and of what is read.
            for rail in 0..2 {
                let bytes = after[rail] - before[rail];
                eprintln!("round {number}: rail {rail} has carried {bytes} bytes");
                assert!(bytes > ROUND as u64, "rail {rail} has carried {bytes} bytes only");
                assert!(bytes < 3 * ROUND as u64 / 2, "rail {rail} has carried {bytes} bytes");
            }
        }
    };
    pair(&cables, |_| (), first, |_| ());
}

/// The rail that is not the one of the first connection of ranks 0 and 1.
const FURTHER: usize = 0;

/// A further rail dies in the middle of a round, by `kill`.
fn death(cables: &Cables, kill: impl Fn() + Send + Sync) {
    let died = |side: &Side, peer| {
        side.until("the dead rail is out", || !side.verbs.rail_works(FURTHER, peer));
        assert!(side.verbs.rail_works(1 - FURTHER, peer));
        assert_eq!(side.verbs.further_connections(), 0);
        let text = side.verbs.describe().join("\n");
        assert!(text.contains(&format!("rail {FURTHER} is not used any more")), "{text}");
    };
    let first = |side: &Side| {
        let before = carried();
        round(side, 1, || ());
        assert!(carried()[FURTHER] - before[FURTHER] > ROUND as u64, "it has carried its part");
        assert!(side.verbs.rail_works(FURTHER, 1));
        round(side, 2, &kill);
        died(side, 1);
        round(side, 3, || ());
    };
    pair(cables, |options| options.timeout = 14, first, |side| died(side, 0));
}

#[test]
fn a_rail_that_is_cut_loses_nothing() {
    let Some(cables) = Cables::take() else { return };
    death(&cables, || {
        cables.shape(&format!("va{FURTHER}"), &["loss", "100%"]);
        cables.shape(&format!("vb{FURTHER}"), &["loss", "100%"]);
    });
}

/// All arrives, but nobody is told: what is repeated was done before.
#[test]
fn a_rail_that_loses_the_answers_counts_nothing_twice() {
    let Some(cables) = Cables::take() else { return };
    death(&cables, || cables.shape(&format!("vb{FURTHER}"), &["loss", "100%"]));
}

/// Interfaces forget their routes and neighbours when they go down.
struct Down {
    routes: Vec<(String, String)>,
}

impl Down {
    fn text(words: &[&str]) -> String {
        let output = Command::new("ip").args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn take(ends: &[String]) -> Down {
        let mut routes = Vec::new();
        for end in ends {
            for line in Down::text(&["-4", "route", "show", "table", "all", "dev", end]).lines() {
                if line.contains("table 10") {
                    routes.push((end.clone(), format!("route replace {line}")));
                }
            }
            for line in Down::text(&["neigh", "show", "nud", "permanent", "dev", end]).lines() {
                let words: Vec<&str> = line.split_whitespace().take(3).collect();
                routes.push((
                    end.clone(),
                    format!("neigh replace {} nud permanent", words.join(" ")),
                ));
            }
        }
        assert!(routes.len() >= 2 * ends.len(), "{routes:?}");
        Down { routes }
    }
}

impl Drop for Down {
    fn drop(&mut self) {
        for (end, _) in &self.routes {
            run("ip", &["link", "set", end, "up"]).unwrap();
        }
        for (end, line) in &self.routes {
            let words: Vec<&str> = line.split_whitespace().chain(["dev", end]).collect();
            run("ip", &words).unwrap();
        }
    }
}

#[test]
fn a_rail_whose_link_goes_down_loses_nothing() {
    let Some(cables) = Cables::take() else { return };
    let ends = ["va", "vb"].map(|end| format!("{end}{FURTHER}"));
    let down = Down::take(&ends);
    death(&cables, || {
        ends.iter().for_each(|end| run("ip", &["link", "set", end, "down"]).unwrap())
    });
    drop(down);
    // The ports come up again for whatever runs next.
    let start = Instant::now();
    while common::nodes().is_none_or(|nodes| nodes[0].len() < 2) {
        assert!(start.elapsed() < Duration::from_secs(20), "a port stays down");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Writes all of `source`, spread over the first `number` rails; how long that takes.
fn transfer(side: &Side, rails: &Rails, number: usize) -> Duration {
    let (verbs, counters) = (&side.verbs, side.verbs.counters());
    let mut waits = Waits::new();
    let began = verbs.now();
    let memory = (side.source.local, side.theirs);
    rails.stripe(verbs, Way::Write, (1, number), memory, &mut waits).unwrap();
    assert_eq!(waits.len(), number, "a fragment on each rail");
    side.until("the transfer is over", || {
        // Each rail is seen to end when it does, so that its rate is its own.
        rails.observe(counters, verbs.now());
        waits.iter().all(|&(counter, value)| counters.value(counter) >= value)
    });
    let took = began.elapsed();
    rails.observe(counters, verbs.now());
    waits.iter().for_each(|&(counter, _)| counters.free(counter));
    eprintln!("{number} rails: {took:?}, rates now {:.0?}", rails.rates(Way::Write));
    took
}

/// A stripe of the program's own memory makes one registration, however many parts it is posted in.
#[test]
fn a_stripe_of_program_memory_is_registered_once() {
    let Some(cables) = Cables::take() else { return };
    let first = |side: &Side| {
        let mut memory: Vec<u8> = vec![0; LEN];
        // SAFETY: the memory outlives the operations, which are waited for.
        let here = unsafe { Sge::new(memory.as_mut_ptr(), LEN) };
        let rails = Rails::default();
        let mut parts = 0;
        for way in [Way::Write, Way::Read, Way::Write] {
            let made = || side.verbs.registrations().made;
            let before = made();
            let mut waits = Waits::new();
            rails.stripe(&side.verbs, way, (1, 2), (here, side.theirs), &mut waits).unwrap();
            side.until("a stripe", || {
                waits.iter().all(|&(counter, value)| side.verbs.counters().value(counter) >= value)
            });
            waits.iter().for_each(|&(counter, _)| side.verbs.counters().free(counter));
            parts += waits.len();
            assert_eq!(made() - before, 1, "{way:?} of {LEN} bytes");
        }
        assert!(parts >= 6, "{parts} fragments: both rails carry");
    };
    pair(&cables, |_| (), first, |_| ());
}

/// Rails shaped to one rate, low enough for the processors of an emulated machine. The best of several transfers counts:
/// what else the machine does makes some of them long, and none shorter than the rate allows; so the last turns are for a
/// machine that is busy.
#[test]
fn two_rails_are_nearly_twice_as_fast_as_one() {
    const RATE: &str = "20mbit";
    let Some(cables) = Cables::take() else { return };
    let first = |side: &Side| {
        for end in ["va0", "vb0", "va1", "vb1"] {
            cables.shape(end, &["rate", RATE]);
        }
        let rails = Rails::default();
        let mut best = [Duration::MAX; 2];
        let mut ratio = 0.0;
        for turn in 1..=6 {
            for number in [1, 2] {
                let round = turn * 10 + number as u64;
                fill(side.source.local.part(0, ROUND), round);
                best[number - 1] = best[number - 1].min(transfer(side, &rails, number));
                side.tell(round);
                assert_eq!(side.hear(), round);
            }
            ratio = best[0].as_secs_f64() / best[1].as_secs_f64();
            if turn >= 3 && ratio >= 1.7 {
                break;
            }
        }
        let [one, two] = best;
        eprintln!("{LEN} bytes at {RATE} a rail: one {one:?}, two {two:?}: {ratio:.2} times");
        assert!(ratio >= 1.7, "one rail takes {one:?}, two {two:?}: only {ratio:.2} times as fast");
    };
    // What waits in the queue of a slow cable is not lost.
    pair(&cables, |options| options.timeout = 18, first, |_| ());
}
