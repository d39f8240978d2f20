//! Tests of the first message to a peer: while the network is down, and when the most likely network does not lead to the peer.

use super::hosts::{failed, mpiexec, net, said};
use super::inside::NetTestsArgs;
use super::trouble::running_with;
use crate::test::cluster::parts::TestParts;
use std::process::Command;
use std::time::Duration;

/// Program of tests/c in which each rank sends its first message late.
pub const PROGRAM: &str = "first_message";

/// Number of seconds without a network. It is longer than the time for which the system looks for a neighbour's adapter. After this
/// time the system reports that there is no route.
const OUT: u64 = 6;

/// Returns a command that starts one rank on each of two hosts. The ranks send nothing for `silent` milliseconds.
fn pair(inside: &NetTestsArgs, silent: &str) -> Command {
    let mut command = mpiexec(inside, "node0,node1", "2");
    command.arg(inside.programs.join(PROGRAM)).arg(silent);
    command
}

pub fn run(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    parts.part("first messages", |parts| {
        parts.test("a first message while a cable is out loses nothing", || {
            let mut command = pair(inside, "1000");
            command.env("WEFT_OFI_INTERFACES", "eth0");
            let job = running_with(&mut command, 30)?;
            net(&["net-cut", "node1", "0"])?;
            std::thread::sleep(Duration::from_secs(OUT));
            net(&["net-join", "node1", "0"])?;
            match job.end()? {
                (true, text) if text.contains("correct") => Ok(String::new()),
                (_, text) => Err(text),
            }
        });
        parts.test("a network that all have, but that leads nowhere", || {
            let there = |rule: &str| net(&["net-run", "node1", &format!("nft '{rule}'")]);
            there("add table inet weft")?;
            there("add chain inet weft in { type filter hook input priority 0 ; }")?;
            there("add rule inet weft in iifname eth0 drop")?;
            let text = said(&mut pair(inside, "0"), "correct");
            there("delete table inet weft")?;
            let (text, one) = (text?, "it is reached at 10.77.1.");
            match text.matches(one).count() {
                1 | 2 => Ok(String::new()),
                n => Err(format!("{n} times '{one}':\n{text}")),
            }
        });
        parts.test("hosts with loopback alone: why, and what containers lack", || {
            let mut command = pair(inside, "0");
            command.env("WEFT_OFI_INTERFACES", "lo");
            let text = failed(&mut command)?;
            let words = ["no network leads", "node1: weft-tcp lo", "within the host", "--net=host"];
            match words.iter().find(|word| !text.contains(**word)) {
                None => Ok(String::new()),
                Some(word) => Err(format!("does not say '{word}':\n{text}")),
            }
        });
        Ok(())
    })
}

/// Tests that the cables are used if the first interface in the order has the same address on all hosts. This interface has IPv4,
/// and the cables have only IPv6.
pub fn over_ipv6(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    parts.part("an address that all hosts have", |parts| {
        parts.test("is not chosen", || {
            let all = |what: &str| {
                ["node0", "node1"].iter().try_for_each(|host| net(&["net-run", host, what]))
            };
            all(
                "ip link add usb0 type veth peer name usb1 && ip address add 10.55.0.1/24 dev usb0",
            )?;
            all("ip link set usb0 up && ip link set usb1 up")?;
            let mut command = pair(inside, "0");
            command.env("WEFT_VERBOSE", "1");
            let text = said(&mut command, "correct");
            all("ip link del usb0")?;
            let (text, over) = (text?, "on eth0, network fd77::/64");
            if text.contains(over) {
                Ok(String::new())
            } else {
                Err(format!("not {over}:\n{text}"))
            }
        });
        Ok(())
    })
}
