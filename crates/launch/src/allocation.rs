//! The hosts and slots that a batch system has given to this job. Each batch system is a file that describes it and a line of
//! [`BATCH_SYSTEMS`].

mod flux;
mod grid_engine;
mod host_list;
mod lsf;
mod mpi_operator;
mod output;
mod pbs;
mod slurm;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use weft_bootstrap::host_names::{is_same, without_domain};

use crate::agent_command::AgentCommand;
use crate::hosts::{self, Host};

/// The known batch systems. A batch system that may run within another batch system's job comes before it.
const BATCH_SYSTEMS: &[BatchSystem] = &[
    flux::FLUX,
    slurm::SLURM,
    lsf::LSF,
    pbs::PBS,
    grid_engine::GRID_ENGINE,
    mpi_operator::MPI_OPERATOR,
];

/// Maximum number of hosts of an allocation. A host without a rank is of no use.
const MAX_HOSTS: usize = hosts::MAX_RANKS;

/// A batch system.
struct BatchSystem {
    /// Name in messages.
    name: &'static str,
    /// Returns true if this process runs in a job of the batch system.
    is_here: fn(&JobEnvironment) -> bool,
    /// Returns the hosts of the job. An error begins with the name of the variable that is wrong.
    hosts: fn(&JobEnvironment) -> Result<FoundHosts, String>,
    /// Returns the command that starts an agent on a host of the job.
    agent: fn(&JobEnvironment) -> AgentCommand,
}

/// The environment of this process, in which batch systems leave their variables.
struct JobEnvironment<'e> {
    get: &'e dyn Fn(&str) -> Option<OsString>,
    /// Runs a command. Returns its output.
    run: &'e dyn Fn(&[&str]) -> Result<String, String>,
}

/// Hosts as a batch system names them. A host may be named several times.
struct FoundHosts {
    /// The variables or commands that name the hosts.
    source: String,
    hosts: Vec<AllocatedHost>,
}

/// A host of an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocatedHost {
    /// Name and slots.
    pub host: Host,
    /// The batch system's own designation of the host, which its command needs.
    pub tag: Option<String>,
}

/// The hosts of this job, and the command that reaches them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// Name of the batch system.
    pub system: &'static str,
    /// The variables or commands that named the hosts.
    pub source: String,
    /// The hosts, each only once.
    pub hosts: Vec<AllocatedHost>,
    /// Command that starts an agent on a host.
    pub agent: AgentCommand,
}

impl JobEnvironment<'_> {
    /// Returns true if the variable is set and not empty.
    fn has(&self, name: &str) -> bool {
        (self.get)(name).is_some_and(|value| !value.is_empty())
    }

    /// Returns the text of a variable that is set and not empty.
    fn text(&self, name: &str) -> Result<Option<String>, String> {
        let value = (self.get)(name).filter(|value| !value.is_empty());
        let text = value.map(|value| value.into_string());
        text.transpose().map_err(|value| format!("{name}: {value:?} is not UTF-8 text"))
    }

    /// Reads the file that a variable names. Returns its path and its text.
    fn file(&self, name: &str) -> Result<(String, String), String> {
        let path = self.text(name)?.ok_or_else(|| format!("{name}: it is not set"))?;
        let text = hosts::read(Path::new(&path)).map_err(|why| format!("{name}: {path}: {why}"))?;
        Ok((path, text))
    }
}

impl AllocatedHost {
    /// Checks a name. An address may be in brackets.
    pub fn new(name: &str, slots: usize) -> Result<AllocatedHost, String> {
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_plain = |c: char| c.is_alphanumeric() || "._-:%@".contains(c);
        // ssh and other commands would take a name that begins with a dash for an option.
        if bare.is_empty() || bare.starts_with('-') || !bare.chars().all(is_plain) {
            return Err(format!("{name:?} is not the name of a host"));
        }
        Ok(AllocatedHost { host: Host { name: bare.into(), slots, most: None }, tag: None })
    }
}

impl Allocation {
    /// Returns the host with this name, given with or without its domain.
    pub fn find(&self, name: &str) -> Option<&AllocatedHost> {
        let equal = self.hosts.iter().find(|known| known.host.name == name);
        equal.or_else(|| self.hosts.iter().find(|known| is_same(&known.host.name, name)))
    }
}

/// Parses a number of slots.
fn slots(text: &str) -> Option<usize> {
    text.parse::<u32>().ok().filter(|&count| count > 0).map(|count| count as usize)
}

/// Shortens a value for an error message.
fn shown(value: &str) -> String {
    const MAX: usize = 60;
    match value.char_indices().nth(MAX) {
        Some((end, _)) => format!("{:?}...", &value[..end]),
        None => format!("{value:?}"),
    }
}

/// Adds the slots of a host that is named several times, with or without its domain.
fn merge(found: Vec<AllocatedHost>) -> Result<Vec<AllocatedHost>, String> {
    let mut hosts: Vec<AllocatedHost> = Vec::new();
    // Positions in `hosts`, by name, and by name without domain for names with a domain.
    let mut full: HashMap<String, usize> = HashMap::new();
    let mut short: HashMap<String, usize> = HashMap::new();
    for more in found {
        let name = more.host.name.to_ascii_lowercase();
        let bare = without_domain(&name).to_owned();
        let other = if bare == name { short.get(&name) } else { full.get(&bare) };
        if let Some(&place) = full.get(&name).or(other) {
            let host = &mut hosts[place].host;
            host.slots = host.slots.saturating_add(more.host.slots);
            host.most = host.most.zip(more.host.most).map(|(a, b)| a.saturating_add(b));
            continue;
        }
        if hosts.len() == MAX_HOSTS {
            return Err(format!("there are more than {MAX_HOSTS} hosts"));
        }
        if bare != name {
            short.entry(bare).or_insert(hosts.len());
        }
        full.insert(name, hosts.len());
        hosts.push(more);
    }
    Ok(hosts)
}

/// Returns the allocation of the first batch system that is here. Returns `None` if there is no batch system.
fn find_in(environment: &JobEnvironment) -> Result<Option<Allocation>, String> {
    let Some(system) = BATCH_SYSTEMS.iter().find(|system| (system.is_here)(environment)) else {
        return Ok(None);
    };
    let wrong = |why: String| {
        format!("the hosts of {}: {why}; --hosts or --hostfile names hosts instead", system.name)
    };
    let FoundHosts { source, hosts } = (system.hosts)(environment).map_err(wrong)?;
    let hosts = merge(hosts).map_err(|why| wrong(format!("{source}: {why}")))?;
    if hosts.is_empty() {
        return Err(wrong(format!("{source}: no host is named")));
    }
    let agent = (system.agent)(environment);
    Ok(Some(Allocation { system: system.name, source, hosts, agent }))
}

/// Returns the allocation of this job. Returns `None` if no batch system is here. `get` looks up a variable of the environment.
pub fn find(get: &dyn Fn(&str) -> Option<OsString>) -> Result<Option<Allocation>, String> {
    find_in(&JobEnvironment { get, run: &output::of })
}

#[cfg(test)]
mod tests;
