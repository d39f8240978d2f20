//! `cargo xtask net -- COMMAND`: hosts made of network namespaces, to test traffic between hosts on one machine. Each host has one
//! or more cables (veth), and each of its cables leads to a different switch (bridge).
//!
//! ```text
//!                 switch 0: 10.77.0.0/24, fd77:0::/64
//!        eth0 ───────┬─────────┬──────── eth0
//!   node0          eth0      eth0          node3      host names by /etc/hosts: nodeI on cable 0,
//!        eth1      node1    node2        eth1         nodeI-1 on cable 1
//!          └─────────┴────┬────┴──────────┘
//!                 switch 1: 10.77.1.0/24, fd77:1::/64
//! ```
//! All processes are in a process namespace. When its first process ends or is killed, the kernel ends all other processes, and
//! removes the hosts, the cables and the mounts. Outside of the namespaces nothing is visible, and no packet leaves the namespaces.

mod beyond;
mod host;
mod inside;

pub use beyond::main as beyond;
pub use inside::run as inside;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Folder with the helpers in COMMAND's PATH, and with the process of each host (`NAME.pid`). The folder is a separate mount.
const FOLDER: &str = "/run/weft-net";

/// Replacement for `net-run` on hosts other than node0.
const BEYOND: &str = "net-run-beyond";

/// Exit code if this machine cannot make the hosts; the same code as in `cargo xtask vm`.
pub const NOT_RUN: u8 = weft_vm::NOT_RUN;

/// The hosts and the command.
#[derive(clap::Args, Clone)]
#[command(
    after_help = "COMMAND runs on node0. It finds the hosts' names in WEFT_NET_HOSTS, and in its PATH: `net-run HOST WORDS` (a launch \
agent with ssh's arguments; WEFT_RSH names it), `net-cut HOST CABLE` and `net-join HOST CABLE`, `net-kill HOST`.\nExit codes: COMMAND's \
own; 77 this machine cannot run it (a line NOT RUN says why); 124 COMMAND took too long; 125 the hosts could not be made."
)]
pub struct NetArgs {
    /// Number of hosts.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=8))]
    pub hosts: u8,
    /// Number of cables of each host.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub cables: u8,
    /// Rate of a cable in each direction, in the form of tc(8), as in 1gbit.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Delay of a packet on a cable, as in 100us.
    #[arg(long, value_name = "TIME")]
    pub delay: Option<String>,
    /// Part of the packets that a cable loses, as in 1%.
    #[arg(long, value_name = "PERCENT")]
    pub loss: Option<String>,
    /// Give the cables only IPv6 addresses.
    #[arg(long)]
    pub ipv6: bool,
    /// Maximum number of seconds of COMMAND.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub timeout: u64,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// Programs that make hosts, each with Debian's package.
const TOOLS: [(&str, &str); 4] =
    [("unshare", "util-linux"), ("nsenter", "util-linux"), ("ip", "iproute2"), ("tc", "iproute2")];

/// Returns the reason why this machine cannot make the hosts, if the reason can be found without making them.
fn missing() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("network namespaces need root".to_owned());
    }
    let absent = |tool: &str| {
        !Command::new(tool)
            .arg("--help")
            .output()
            .is_ok_and(|o| !o.stderr.is_empty() || !o.stdout.is_empty())
    };
    let (tool, package) = TOOLS.into_iter().find(|(tool, _)| absent(tool))?;
    Some(format!("the program {tool} is not there (Debian's package {package})"))
}

/// Replaces this process by COMMAND between its hosts. Returns only if the replacement fails.
pub fn main(args: &NetArgs) -> ExitCode {
    if let Some(reason) = missing() {
        eprintln!("NOT RUN: {reason}");
        return ExitCode::from(NOT_RUN);
    }
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => {
            eprintln!("net: this program's path: {error}");
            return ExitCode::from(weft_vm::FAILED);
        }
    };
    let mut command = Command::new("unshare");
    command.args([
        "--net",
        "--mount",
        "--ipc",
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--mount-proc",
        "--",
    ]);
    command.arg(own).arg("net-inside").args(args.words());
    // COMMAND must replace this process, because a signal that ends this process must also end the hosts.
    let error = command.exec();
    eprintln!("NOT RUN: unshare: {error}");
    ExitCode::from(NOT_RUN)
}

impl NetArgs {
    /// Returns the arguments as words of a command line.
    fn words(&self) -> Vec<String> {
        let mut words = vec![
            format!("--hosts={}", self.hosts),
            format!("--cables={}", self.cables),
            format!("--timeout={}", self.timeout),
        ];
        for (name, value) in [("rate", &self.rate), ("delay", &self.delay), ("loss", &self.loss)] {
            words.extend(value.iter().map(|value| format!("--{name}={value}")));
        }
        words.extend(self.ipv6.then(|| "--ipv6".to_owned()));
        words.push("--".to_owned());
        words.extend(self.command.iter().cloned());
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        args: NetArgs,
    }

    #[test]
    fn words_come_back() {
        let given = ["net", "--hosts", "4", "--delay", "1ms", "--ipv6", "--", "sh", "-c", "exit 3"];
        let first = Whole::parse_from(given).args;
        let again = Whole::parse_from(std::iter::once("net".to_owned()).chain(first.words())).args;
        assert_eq!((again.hosts, again.cables, again.ipv6), (4, 2, true));
        assert_eq!((again.delay, again.rate), (Some("1ms".to_owned()), None));
        assert_eq!(again.command, ["sh", "-c", "exit 3"]);
    }

    #[test]
    fn numbers_of_hosts_have_bounds() {
        for bad in [["--hosts", "1"], ["--hosts", "9"], ["--cables", "3"]] {
            assert!(Whole::try_parse_from(["net"].into_iter().chain(bad).chain(["true"])).is_err());
        }
    }
}
