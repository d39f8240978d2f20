//! Two ranks on two rails, which are the cables of the project's virtual machine, `vaN` to `vbN`. Tests cut and shape the
//! cables with netem.

#![allow(dead_code)]

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weft_bootstrap::{Bootstrap, ThreadBootstrap, threads};
use weft_fabric::{
    Counter, Fabric, FabricExt, Head, PostOutcome, Region, RemoteAddr, RemoteRead, RemoteWrite, Sge,
};
use weft_fabric_testing::{adapters, not_run};
use weft_fabric_verbs::{Verbs, VerbsOptions};

/// The rail of the secondary connection of ranks 0 and 1.
pub const FURTHER: usize = 0;

/// Size in bytes of the memory that ranks expose to each other.
pub const LEN: usize = 4 << 20;
/// Number of bytes that a round writes and reads, and size of its parts in bytes.
pub const ROUND: usize = 1 << 20;
pub const PART: usize = 32 << 10;
pub const PARTS: usize = ROUND / PART;

/// Lock for the cables, whose shape is shared by all tests.
pub static CABLES: Mutex<()> = Mutex::new(());

/// The two cables. The drop removes their shape.
pub struct Cables {
    pub nodes: Vec<Vec<String>>,
    _alone: MutexGuard<'static, ()>,
}

impl Cables {
    /// Takes both cables. If there are none, prints a notice and returns `None`.
    pub fn take() -> Option<Cables> {
        let nodes = adapters::nodes()?;
        let alone = CABLES.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = if nodes.len() != 2 || nodes[0].len() != 2 {
            Some(format!(
                "two cables are needed, between interfaces vaN and vbN; there is {nodes:?}"
            ))
        } else {
            tc(&["qdisc", "show"]).err()
        };
        if let Some(missing) = missing {
            not_run("tests of several rails", missing, adapters::VERBS);
            return None;
        }
        let cables = Cables { nodes, _alone: alone };
        cables.free();
        Some(cables)
    }

    /// Shapes the outgoing traffic at one end by these arguments of netem.
    pub fn shape(&self, end: &str, netem: &[&str]) {
        let words = ["qdisc", "replace", "dev", end, "root", "netem", "limit", "10000"];
        tc(&[&words, netem].concat()).unwrap();
    }

    pub fn free(&self) {
        for end in ["va0", "vb0", "va1", "vb1"] {
            // If there is no shape, `del` fails.
            let _ = tc(&["qdisc", "del", "dev", end, "root"]);
        }
    }
}

impl Drop for Cables {
    fn drop(&mut self) {
        self.free();
    }
}

pub fn tc(words: &[&str]) -> Result<(), String> {
    run("tc", words)
}

pub fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let error =
        || format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    output.status.success().then_some(()).ok_or_else(error)
}

/// Returns the number of bytes that an interface has sent.
pub fn sent(interface: &str) -> u64 {
    let path = format!("/sys/class/net/{interface}/statistics/tx_bytes");
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Returns, for each cable, the number of bytes sent at both ends.
pub fn carried() -> [u64; 2] {
    [0, 1].map(|rail| sent(&format!("va{rail}")) + sent(&format!("vb{rail}")))
}

/// A rank that is connected with the other rank over both rails.
pub struct Side {
    pub verbs: Verbs,
    /// Memory that the peer writes to.
    pub region: Region,
    pub theirs: RemoteAddr,
    /// Memory that the peer reads from.
    pub source: Region,
    pub their_source: RemoteAddr,
}

/// Returns byte `i` of a round: of the data that rank 0 writes, or, for round 0, of the memory that rank 1 exposes.
pub fn content(round: u64, i: usize) -> u8 {
    ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ round << 17) >> 40) as u8
}

pub fn fill(memory: Sge, round: u64) {
    let bytes: Vec<u8> = (0..memory.len()).map(|i| content(round, i)).collect();
    memory.fill(&bytes);
}

pub fn check(memory: Sge, round: u64, what: &str) {
    let mut bytes = vec![0; memory.len()];
    memory.read(&mut bytes);
    let wrong = (0..bytes.len()).find(|&i| bytes[i] != content(round, i));
    assert_eq!(wrong, None, "round {round}: the first wrong byte that was {what}");
}

impl Side {
    pub fn new(
        world: &mut ThreadBootstrap,
        cables: &Cables,
        change: fn(&mut VerbsOptions),
    ) -> Side {
        let mut options = adapters::options(&cables.nodes, world.rank());
        change(&mut options);
        let verbs = Verbs::connect_with(world, options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(verbs.capabilities(1 - world.rank()).rails, 2);
        let [region, source] = [(); 2].map(|()| verbs.allocate(LEN).unwrap());
        fill(source.local.part(0, ROUND), 0);
        let theirs = adapters::exchange(world, "region", region.remote);
        let their_source = adapters::exchange(world, "source", source.remote);
        Side { verbs, region, theirs, source, their_source }
    }

    pub fn progress(&self) {
        assert_eq!(self.verbs.fault(), None, "{:?}", self.verbs.trouble());
        if !self.verbs.progress() {
            std::thread::yield_now();
        }
    }

    pub fn until(&self, what: &str, mut over: impl FnMut() -> bool) {
        let start = Instant::now();
        while !over() {
            let text = || self.verbs.describe().join("\n");
            assert!(start.elapsed() < Duration::from_secs(100), "{what}:\n{}", text());
            self.progress();
        }
    }

    pub fn tell(&self, number: u64) {
        let peer = 1 - self.verbs.rank();
        let posted = self.verbs.send(peer, Head([number, 0, 0]), Sge::EMPTY, None);
        assert_eq!(posted, PostOutcome::Done);
    }

    pub fn hear(&self) -> u64 {
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

    /// Opens the secondary rail (called by rank 0).
    pub fn open(&self) {
        let done = self.verbs.counters().allocate();
        let from = self.source.local.part(0, 8);
        // The counter may have been used before, so its value need not be zero.
        let mut posted = self.verbs.counters().value(done);
        self.tell(READY);
        assert_eq!(self.hear(), READY);
        self.until("the secondary rail opens", || {
            if self.verbs.counters().value(done) == posted {
                self.verbs
                    .write_over(0, 1, &RemoteWrite::new(from, self.theirs, Some(done)))
                    .unwrap();
                self.verbs
                    .write_over(1, 1, &RemoteWrite::new(from, self.theirs, Some(done)))
                    .unwrap();
                posted += 2;
            }
            self.verbs.secondary_connections() == 1
        });
        self.until("writes", || self.verbs.counters().value(done) == posted);
        assert!(self.verbs.rail_works(0, 1) && self.verbs.rail_works(1, 1));
    }

    /// Posts part `i` of a round over the rails in turn: writes it, and reads the same part of the memory that rank 1
    /// exposes.
    pub fn post(&self, i: usize, into: Sge, done: Counter) {
        let (at, rail) = (i * PART, i % 2);
        let from = self.source.local.part(at, PART);
        let to = self.theirs.offset(at as u64);
        self.verbs.write_over(rail, 1, &RemoteWrite::new(from, to, Some(done))).unwrap();
        let from = self.their_source.offset(at as u64);
        self.verbs
            .read_over(rail, 1, &RemoteRead::new(into.part(at, PART), from, Some(done)))
            .unwrap();
    }

    /// Checks the written data, round by round (called by rank 1).
    pub fn serve(&self) {
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

pub const READY: u64 = 1 << 40;
pub const END: u64 = 1 << 41;

/// Runs `first` on rank 0, while rank 1 checks the written data and then runs `last`.
pub fn pair(
    cables: &Cables,
    change: fn(&mut VerbsOptions),
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

/// Runs a round of writes and reads; `between` is called when half of them are posted.
pub fn round(side: &Side, number: u64, between: impl FnOnce()) {
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
