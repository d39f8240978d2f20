//! Tests of two cables as two rails: together they have twice the rate, and if one cable is cut in the middle of a transfer, no
//! data is lost or duplicated.

use super::hosts::{mpiexec, net, said, set};
use super::inside::NetTestsArgs;
use super::trouble::{PATIENCE, running};
use crate::test::cluster::parts::TestParts;
use std::time::{Duration, Instant};

/// One rank on each of two hosts.
const PAIR: &str = "node0,node1";

/// Rate of a cable in tests of rails. It is low, so that the processors do not limit the rate.
const RATE: &str = "100mbit";

/// Minimum ratio of the rate of two rails to the rate of one rail. A quiet machine reaches 1.8 or more.
const RATIO: f64 = 1.5;

/// Calls `what` while both cables of both hosts carry no more than [`RATE`].
fn shaped<T>(what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let ends = || ["node0", "node1"].into_iter().flat_map(|host| [(host, "eth0"), (host, "eth1")]);
    for (host, end) in ends() {
        let add = format!("tc qdisc add dev {end} root tbf rate {RATE} burst 64kb latency 50ms");
        net(&["net-run", host, &add])?;
    }
    let outcome = what();
    for (host, end) in ends() {
        net(&["net-run", host, &format!("tc qdisc del dev {end} root")])?;
    }
    outcome
}

/// Returns the rate of messages of 4 MiB, in megabytes per second.
fn rate(inside: &NetTestsArgs, settings: &[&str]) -> Result<f64, String> {
    let mut command = mpiexec(inside, PAIR, "2");
    command.arg(inside.programs.join("striped")).arg("10");
    set(&mut command, settings);
    let text = said(&mut command, "correct")?;
    number(&text, "rate ").ok_or(format!("no rate:\n{text}"))
}

/// Returns the number after `word`.
fn number(text: &str, word: &str) -> Option<f64> {
    text.split_once(word)?.1.split_whitespace().next()?.parse().ok()
}

/// Cuts a cable of the second host while both cables carry data. The remaining data must go over the other cable.
fn cut(inside: &NetTestsArgs) -> Result<String, String> {
    let mut command = mpiexec(inside, PAIR, "2");
    command.arg(inside.programs.join("striped")).arg("12");
    let job = running(&mut command)?;
    std::thread::sleep(Duration::from_secs(2));
    net(&["net-cut", "node1", "1"])?;
    let began = Instant::now();
    let ended = job.end();
    net(&["net-join", "node1", "1"])?;
    let (well, text) = ended?;
    let repeated = number(&text, "repeated ").unwrap_or(0.0);
    if !well || !text.contains("correct") || repeated == 0.0 {
        return Err(format!("should be correct, with something repeated:\n{text}"));
    }
    let took = began.elapsed().as_secs_f64();
    Ok(format!(
        "{repeated} transfers repeated, over {took:.1} s after the cut (patience {PATIENCE} s)"
    ))
}

/// Tests rails whose cables have only IPv6 addresses.
pub fn over_ipv6(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    parts.part("rails over IPv6", |parts| {
        parts.test("a cable that is cut in the middle of a transfer", || shaped(|| cut(inside)));
        Ok(())
    })
}

pub fn run(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    parts.part("rails", |parts| {
        parts.test("both cables are rails", || {
            let mut command = mpiexec(inside, PAIR, "2");
            command.arg(inside.programs.join("ring")).env("WEFT_VERBOSE", "1");
            said(&mut command, "rail: eth1, network 10.77.1.0/24").map(|_| String::new())
        });
        parts.test("two cables carry more than one", || {
            let (one, two) = shaped(|| Ok((rate(inside, &["WEFT_RAILS=1"])?, rate(inside, &[])?)))?;
            let ratio = two / one;
            let told = format!("4 MiB: {one:.1} and {two:.1} MB/s, {ratio:.2} times");
            if ratio > RATIO { Ok(told) } else { Err(told) }
        });
        parts.test("a cable that is cut in the middle of a transfer", || shaped(|| cut(inside)));
        Ok(())
    })
}
