//! Programs between hosts: over TCP with both versions of IP, and through libfabric, with its TCP provider and with its provider of
//! reliable datagrams.

use super::inside::{KILLED, NetTestsArgs, PROGRAMS};
use crate::test::cluster::job::both;
use crate::test::cluster::parts::TestParts;
use crate::test::tools::have_libfabric;
use crate::test::{python, random, skips};
use std::path::Path;
use std::process::{Command, Stdio};

/// Hosts and their slots.
pub const TWO: &str = "node0:2,node1:2";
const FOUR: &str = "node0,node1,node2,node3";

/// Maximum number of seconds of a program.
const LIMIT: &str = "120";

/// Files of mpi4py's suite whose tests send between the hosts. The soak runs all files.
const FILES: [&str; 6] =
    ["test_p2p_buf", "test_p2p_obj", "test_cco_buf", "test_cco_nb_buf", "test_rma", "test_spawn"];

/// Part of mpi4py's suite.
#[derive(Clone, Copy)]
struct Mpi4pySuite {
    /// Files of the part. Without any, all files but those of datatypes.
    files: &'static [&'static str],
    /// Minimum number of tests that run.
    least: usize,
}

/// Maximum number of seconds of mpi4py's suite.
const SUITE: &str = "400";

/// Number of random programs in a launch, and the launches: hosts, ranks, and settings.
const RANDOM: u64 = 50;
const LAUNCHES: [(&str, &str, &[&str]); 7] = [
    (TWO, "4", &[]),
    (FOUR, "4", &[]),
    (FOUR, "8", &[]),
    (TWO, "4", &["WEFT_PROGRESS=handover", "WEFT_EAGER=64"]),
    (TWO, "3", &["WEFT_RENDEZVOUS=write", "WEFT_OFI_CREDITS=4"]),
    (TWO, "3", &["WEFT_OFI_PROVIDER=tcp", "WEFT_RENDEZVOUS=write", "WEFT_OFI_CREDITS=4"]),
    (
        TWO,
        "4",
        &["WEFT_FENCE=RI", "WEFT_FAULT=seed=7,message_delay=0.3,completion_delay=0.3,reorder=1"],
    ),
];

/// Designs that are selected by name in tests between hosts. A design that needs multicast falls back to the automatic choice.
const DESIGNS: &[(&str, &[&str])] = &[
    ("kini", &["WEFT_BARRIER=RDS"]),
    ("kini", &["WEFT_BARRIER=RPE", "WEFT_ALLREDUCE=RPE"]),
    ("kini", &["WEFT_BARRIER=RGM", "WEFT_ALLREDUCE=RGM"]),
    ("collectives 1", &["WEFT_ALLTOALL=RDS", "WEFT_ALLGATHER=RDS"]),
    ("windows", &["WEFT_FENCE=2S"]),
    ("windows", &["WEFT_FENCE=1S"]),
    ("windows", &["WEFT_FENCE=1S-BARRIER"]),
    ("windows", &["WEFT_FENCE=RI"]),
    ("windows", &["WEFT_RMA_ORDER=turns"]),
    // The ranks of this program communicate through shared memory, so both are on one node.
    ("helper 1", &["WEFT_NODES=1", "WEFT_PROGRESS=handover"]),
    ("helper 1", &["WEFT_NODES=1", "WEFT_PROGRESS=signal", "WEFT_RENDEZVOUS=write"]),
    ("helper 1", &["WEFT_NODES=1", "WEFT_PROGRESS=locked"]),
];

/// Returns an mpiexec command for these hosts, for a program of tests/c.
pub fn mpiexec(inside: &NetTestsArgs, hosts: &str, ranks: &str) -> Command {
    mpiexec_within(inside, hosts, ranks, LIMIT)
}

/// Returns an mpiexec command for these hosts, with a time limit of `limit` seconds.
fn mpiexec_within(inside: &NetTestsArgs, hosts: &str, ranks: &str, limit: &str) -> Command {
    let mut command = Command::new(inside.prefix.join("bin/mpiexec"));
    command.args(["--timeout", limit, "--hosts", hosts, "-n", ranks]).stdin(Stdio::null());
    // The variable is removed because it would reach the ranks on the hosts.
    command.env_remove("WEFT_NODES").env("LD_LIBRARY_PATH", inside.prefix.join("lib"));
    command
}

/// Runs a helper of `cargo xtask net`.
pub fn net(words: &[&str]) -> Result<(), String> {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("{}: {e}", words[0]))?;
    if output.status.success() { Ok(()) } else { Err(format!("{words:?}: {}", both(&output))) }
}

/// Sets environment variables from `NAME=VALUE`.
pub fn set(command: &mut Command, settings: &[&str]) {
    command.envs(settings.iter().filter_map(|setting| setting.split_once('=')));
}

/// Runs a command and returns its output. Returns an error if the command fails or the output does not contain `says`.
pub fn said(command: &mut Command, says: &str) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("mpiexec: {e}"))?;
    let text = both(&output);
    match output.status.success() && text.contains(says) {
        true => Ok(text),
        false => Err(format!("{}, should say '{says}':\n{text}", output.status)),
    }
}

fn says(program: &str) -> &'static str {
    match program {
        "hello" => "rank 3 of 4",
        "ring" => "sum 6",
        _ => "correct",
    }
}

/// Runs a program with the words in `line`.
fn program(
    inside: &NetTestsArgs,
    parts: &mut TestParts,
    line: &str,
    hosts: &str,
    settings: &[&str],
) {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    // Some programs need exactly two ranks.
    let pair =
        ["threads", "tools_fabric", "helper", "overlap_stress", "out_of_order", "striped", "moves"];
    let ranks = if pair.contains(&name) { "2" } else { "4" };
    let hosts = match (ranks, settings.contains(&"WEFT_NODES=1")) {
        (_, true) => "node0:2",
        ("2", _) => "node0,node1",
        _ => hosts,
    };
    parts.test(&format!("{line} on {hosts} {}", settings.join(" ")), || {
        let mut command = mpiexec(inside, hosts, ranks);
        command.arg(inside.programs.join(name)).args(words);
        set(&mut command, settings);
        said(&mut command, says(name)).map(|_| String::new())
    });
}

pub fn run(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    parts.part("what connects hosts", |parts| {
        connections(inside, parts);
        Ok(())
    })?;
    parts.part("programs over TCP", |parts| {
        for (name, args) in PROGRAMS {
            let line = [&[*name][..], args].concat().join(" ");
            program(inside, parts, &line, TWO, &[]);
        }
        Ok(())
    })?;
    if have_libfabric() {
        through_libfabric(inside, parts)?;
    }
    parts.part("designs by name", |parts| {
        for (line, settings) in DESIGNS {
            program(inside, parts, line, TWO, settings);
        }
        Ok(())
    })?;
    parts.part("random programs between hosts", |parts| {
        let possible = |settings: &[&str]| {
            settings[..].iter().all(|s| !s.contains("PROVIDER=")) || have_libfabric()
        };
        for (hosts, ranks, settings) in LAUNCHES.into_iter().filter(|launch| possible(launch.2)) {
            let name = format!(
                "{RANDOM} random programs, {ranks} ranks on {hosts} {}",
                settings.join(" ")
            );
            parts.test(&name, || {
                let mut command = mpiexec(inside, hosts, ranks);
                set(&mut command, settings);
                random::words(&mut command, &inside.random, &inside.prefix, RANDOM, ranks);
                said(&mut command, "correct: ").map(|_| String::new())
            });
        }
        Ok(())
    })?;
    parts.part("processes that come later", |parts| {
        parts.test("a spawned process that is killed on another host", || {
            let mut command = mpiexec(inside, "node0,node1,node2", "1");
            command.arg(inside.programs.join(KILLED));
            let text = failed(&mut command)?;
            let words = "of another job, connected to this one, and has ended without";
            if text.contains(words) { Ok(String::new()) } else { Err(text) }
        });
        if have_libfabric() {
            program(inside, parts, "connect apart", TWO, &["WEFT_OFI_PROVIDER=tcp"]);
        }
        program(inside, parts, "spawn", FOUR, &["WEFT_FABRIC=ofi"]);
        Ok(())
    })?;
    // With three ranks, a rank has a peer on the same host and a peer on another host. A fourth rank would only take more time.
    let suite = Mpi4pySuite { files: &FILES, least: 360 };
    mpi4py_on(inside, parts, [("node0:2,node1", "3")], suite)
}

/// Runs the tests that take too long for the usual tests.
pub fn long(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    let suite = Mpi4pySuite { files: &[], least: python::MOST };
    mpi4py_on(inside, parts, [("node0:2,node1", "3"), (FOUR, "4")], suite)
}

fn mpi4py_on(
    inside: &NetTestsArgs,
    parts: &mut TestParts,
    places: impl IntoIterator<Item = (&'static str, &'static str)>,
    suite: Mpi4pySuite,
) -> Result<(), String> {
    parts.part("mpi4py between hosts", |parts| {
        for (hosts, ranks) in places {
            let name = format!("mpi4py's tests on {hosts}");
            parts.test(&name, || mpi4py(inside, hosts, ranks, suite));
        }
        Ok(())
    })
}

/// Tests libfabric's own TCP, and datagrams that libfabric makes reliable.
fn through_libfabric(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    const SOME: [&str; 6] =
        ["ring", "halo 20", "collectives 1", "semantics", "windows", "flood 4000 warm"];
    // libfabric before version 1.18 has plain TCP under the name `net`.
    for (provider, some) in [("tcp", &SOME[..]), ("net", &SOME[..4]), ("udp;ofi_rxd", &SOME[..])] {
        parts.part(&format!("programs through libfabric's {provider}"), |parts| {
            for name in some {
                program(inside, parts, name, TWO, &[&format!("WEFT_OFI_PROVIDER={provider}")]);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Tests cables that have only IPv6 addresses.
pub fn over_ipv6(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    parts.part("programs over IPv6", |parts| {
        for what in ["on eth0, network fd77::/64", "rail: eth1, network fd77:1::/64"] {
            parts.test(&format!("connected {what}"), || {
                let mut command = mpiexec(inside, TWO, "4");
                command.arg(inside.programs.join("hello")).env("WEFT_VERBOSE", "1");
                said(&mut command, what).map(|_| String::new())
            });
        }
        for line in ["ring", "halo 300", "collectives 1", "semantics", "windows", "striped 4"] {
            program(inside, parts, line, TWO, &[]);
        }
        if have_libfabric() {
            program(inside, parts, "collectives 1", TWO, &["WEFT_OFI_PROVIDER=udp;ofi_rxd"]);
        }
        Ok(())
    })
}

/// Tests which interface and which provider connect the hosts, and how the library reports this.
fn connections(inside: &NetTestsArgs, parts: &mut TestParts) {
    let cases: [(&str, &[&str], &str); 5] = [
        ("the first network that all have", &[], " on eth0, network 10.77.0.0/24"),
        ("why not verbs", &[], "not verbs, because of node0: "),
        (
            "an interface by its name",
            &["WEFT_OFI_INTERFACES=eth1"],
            "on eth1, network 10.77.1.0/24",
        ),
        (
            "TCP without a library",
            &["WEFT_OFI_LIBRARY="],
            "weft-tcp, which needs no library, on eth0",
        ),
        ("another provider", &["WEFT_OFI_PROVIDER=udp;ofi_rxd"], "udp;ofi_rxd on eth0"),
    ];
    let last = cases.len() - usize::from(!have_libfabric());
    for (what, settings, expected) in cases.into_iter().take(last) {
        parts.test(&format!("connected by {what}"), || {
            let mut command = mpiexec(inside, TWO, "4");
            command.arg(inside.programs.join("hello")).env("WEFT_VERBOSE", "1");
            set(&mut command, settings);
            said(&mut command, expected).map(|_| String::new())
        });
    }
    parts.test("two hosts of one name are two", || {
        renamed("node1", "node0", || {
            let mut command = mpiexec(inside, "node0,node1", "2");
            command.arg(inside.programs.join("ring")).env("WEFT_VERBOSE", "1");
            let text = said(&mut command, "sum 1")?;
            let over = " on eth0, network 10.77.0.0/24";
            if text.contains(over) { Ok(String::new()) } else { Err(format!("not{over}:\n{text}")) }
        })
    });
    parts.test("hosts that have nothing in common are named", || {
        let mut command = mpiexec(inside, "node0,node1", "2");
        command.arg(inside.programs.join("hello")).env("WEFT_OFI_INTERFACES", "eth0;eth7");
        let text = failed(&mut command)?;
        let named = text.contains("node1") && text.contains("eth7");
        if named { Ok(String::new()) } else { Err(format!("not named:\n{text}")) }
    });
}

/// Calls `what` while a host has a different name.
fn renamed<T>(
    host: &str,
    name: &str,
    what: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    net(&["net-run", host, &format!("hostname {name}")])?;
    let outcome = what();
    net(&["net-run", host, &format!("hostname {host}")])?;
    outcome
}

/// Returns the output of a command that fails.
pub fn failed(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("mpiexec: {e}"))?;
    let text = both(&output);
    if output.status.success() { Err(format!("it did not fail:\n{text}")) } else { Ok(text) }
}

fn mpi4py(
    inside: &NetTestsArgs,
    hosts: &str,
    ranks: &str,
    suite: Mpi4pySuite,
) -> Result<String, String> {
    let mut command = mpiexec_within(inside, hosts, ranks, SUITE);
    command.arg(&inside.python).args(python::suite_words(Path::new(&inside.sdist), suite.files));
    // With NumPy's arrays, each test is repeated with other buffers. The tests on one host already do this.
    command.arg("--no-numpy");
    let text = said(&mut command, "OK")?;
    skips::check(&text)?;
    match python::ran(&text) {
        n if n >= suite.least => Ok(format!("{n} ran")),
        n => Err(format!("only {n} ran:\n{text}")),
    }
}
