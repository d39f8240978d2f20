//! `mpiexec -show-allocation`: the hosts on which a job would run, and the command that would reach them.

use weft_bootstrap::host_names::is_local;

use crate::agent_line::agent_line;
use crate::hosts::Host;
use crate::options::Options;

/// Maximum number of hosts that are listed.
const LISTED: usize = 16;

fn line(name: &str, value: &str) -> String {
    format!("{name:<10} {value}\n")
}

/// Lists the hosts with their slots, up to [`LISTED`] hosts.
fn list(hosts: &[Host]) -> String {
    let host = |Host { name, slots, .. }: &Host| {
        let here = if is_local(name) { " (this host)" } else { "" };
        if name.contains(':') {
            format!("[{name}]:{slots}{here}")
        } else {
            format!("{name}:{slots}{here}")
        }
    };
    let mut all: Vec<String> = hosts.iter().take(LISTED).map(host).collect();
    if hosts.len() > LISTED {
        all.push(format!("and {} more", hosts.len() - LISTED));
    }
    all.join(", ")
}

/// Returns the command line of the first agent.
fn agent(options: &Options) -> String {
    let needs_agent = |host: &&Host| options.launch_agent.is_some() || !is_local(&host.name);
    let Some(host) = options.hosts.iter().find(needs_agent) else {
        return "none: all processes run on this host".into();
    };
    match agent_line(options, &host.name) {
        Ok(line) => {
            let words: Vec<_> = line.words.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        }
        Err(error) => error.to_string(),
    }
}

/// Returns the text for the user.
pub fn text(options: &Options) -> String {
    let system = match &options.allocation {
        Some(allocation) => format!("{} ({})", allocation.system, allocation.source),
        None => {
            "none is here: processes run on this host, or on those of --hosts or --hostfile".into()
        }
    };
    let mut text = line("system", &system);
    if !options.hosts.is_empty() {
        let slots = options.hosts.iter().fold(0usize, |sum, host| sum.saturating_add(host.slots));
        let hosts = options.hosts.len();
        let words =
            [if hosts == 1 { "host" } else { "hosts" }, if slots == 1 { "slot" } else { "slots" }];
        let [host, slot] = words;
        text +=
            &line("hosts", &format!("{hosts} {host}, {slots} {slot}: {}", list(&options.hosts)));
        text += &line("agents", &agent(options));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{CommandLine, parse};

    #[test]
    fn what_would_be_done_is_shown() {
        let show = |list: &str| {
            let get = |name: &str| {
                (name == "SLURM_JOB_NODELIST" && !list.is_empty()).then(|| list.into())
            };
            match parse(["--show-allocation".into()], &get) {
                Ok(CommandLine::ShowAllocation(options)) => text(&options),
                other => panic!("{list}: {other:?}"),
            }
        };
        assert!(show("").starts_with("system     none is here"));
        let two = show("localhost,n[1-20]");
        for words in [
            "system     Slurm (SLURM_JOB_NODELIST)",
            "hosts      21 hosts, 21 slots: localhost:1 (this host), n1:1, ",
            "n15:1, and 5 more",
            "agents     srun --nodes=1 --ntasks=1 --nodelist=n1 --overlap",
        ] {
            assert!(two.contains(words), "{words}: {two}");
        }
        assert!(show("localhost").ends_with("1 host, 1 slot: localhost:1 (this host)\nagents     none: all processes run on this host\n"));
    }
}
