//! Grid Engine (SGE, Univa, Open Cluster Scheduler). Sources: sge_pe(5), "$pe_hostfile": lines of host, slots, queue and processors;
//! qrsh(1), "-inherit", which starts a task of a parallel job on one of its hosts.

use super::{AllocatedHost, BatchSystem, FoundHosts, JobEnvironment, slots};
use crate::agent_command::AgentCommand;

pub(super) const GRID_ENGINE: BatchSystem = BatchSystem {
    name: "Grid Engine",
    is_here: |environment| environment.has(FILE),
    hosts,
    // Without -nostdin, which would take the agent's standard input.
    agent: |_| AgentCommand::remote_shell(["qrsh", "-inherit", "-V"]),
};

const FILE: &str = "PE_HOSTFILE";

fn hosts(environment: &JobEnvironment) -> Result<FoundHosts, String> {
    let (path, text) = environment.file(FILE)?;
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: String| format!("{FILE}: {path}, line {}: {why}", number + 1);
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let count = words.next().and_then(slots);
        let count = count.ok_or_else(|| wrong(format!("no number of slots follows {name:?}")))?;
        hosts.push(AllocatedHost::new(name, count).map_err(wrong)?);
    }
    Ok(FoundHosts { source: FILE.to_owned(), hosts })
}
