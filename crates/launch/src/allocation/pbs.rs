//! PBS and Torque. Agents are started through ssh: `pbs_tmrsh` and `pbsdsh` pass no standard input on. Source: PBS Professional
//! User's Guide, "The PBS Node File": a line for each MPI process, with the name of its host.

use super::{AllocatedHost, BatchSystem, FoundHosts, JobEnvironment};
use crate::agent_command::{AgentCommand, SSH};

pub(super) const PBS: BatchSystem = BatchSystem {
    name: "PBS",
    is_here: |environment| environment.has(NODES),
    hosts: |environment| each_line(environment, NODES),
    agent: |_| AgentCommand::remote_shell(SSH),
};

const NODES: &str = "PBS_NODEFILE";

/// Reads the file that a variable names. Each line names a host for one slot.
pub(super) fn each_line(environment: &JobEnvironment, name: &str) -> Result<FoundHosts, String> {
    let (path, text) = environment.file(name)?;
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let host = |(number, line)| {
        AllocatedHost::new(line, 1)
            .map_err(|why| format!("{name}: {path}, line {}: {why}", number + 1))
    };
    Ok(FoundHosts { source: name.to_owned(), hosts: lines.map(host).collect::<Result<_, _>>()? })
}
