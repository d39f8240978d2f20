//! Flux. The resource set R names the hosts, the numbers of their brokers, and their cores. Sources: Flux RFC 20, "Resource Set
//! Specification Version 1"; flux-job(1), flux-exec(1).

use serde::Deserialize;

use super::{AllocatedHost, BatchSystem, FoundHosts, JobEnvironment, host_list, shown};
use crate::agent_command::AgentCommand;

pub(super) const FLUX: BatchSystem = BatchSystem {
    name: "Flux",
    is_here: |environment| environment.has(JOB) || environment.has("FLUX_URI"),
    hosts,
    // A broker starts the agent. A job of Flux would wait for cores that other jobs have.
    agent: |_| AgentCommand::exec(&["flux", "exec", "--rank={tag}", "--dir=/"], &[]),
};

/// Number of a job. A batch script's own instance of Flux is no job: then all of its resources are those of the job.
const JOB: &str = "FLUX_JOB_ID";

#[derive(Deserialize)]
struct ResourceSet {
    version: u32,
    execution: Execution,
}

#[derive(Deserialize)]
struct Execution {
    #[serde(rename = "R_lite")]
    parts: Vec<ResourcePart>,
    nodelist: Vec<String>,
}

/// Hosts with the same resources.
#[derive(Deserialize)]
struct ResourcePart {
    /// Numbers of the brokers.
    rank: String,
    children: PartCores,
}

#[derive(Deserialize)]
struct PartCores {
    core: String,
}

/// Reads a resource set.
fn read(text: &str) -> Result<Vec<AllocatedHost>, String> {
    let set: ResourceSet = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if set.version != 1 {
        return Err(format!("version {} of a resource set is not known", set.version));
    }
    let Execution { parts, nodelist } = set.execution;
    let names = host_list::expand(&nodelist.join(","))?;
    // Brokers and slots in the order of the names.
    let mut known = Vec::new();
    for ResourcePart { rank, children } in parts {
        let cores = host_list::numbers(&children.core)?.len();
        known.extend(host_list::numbers(&rank)?.into_iter().map(|broker| (broker, cores)));
        if known.len() > names.len() {
            return Err("there are more brokers than hosts".into());
        }
    }
    if known.len() < names.len() {
        return Err("there are more hosts than brokers".into());
    }
    let host = |(name, (broker, cores)): (&String, (u32, usize))| {
        let host = AllocatedHost::new(name, cores)?;
        Ok(AllocatedHost { tag: Some(broker.to_string()), ..host })
    };
    names.iter().zip(known).map(host).collect()
}

fn hosts(environment: &JobEnvironment) -> Result<FoundHosts, String> {
    let job = environment.text(JOB)?;
    if let Some(job) = job.as_deref().filter(|job| job.starts_with('-')) {
        return Err(format!("{JOB}={}: it is not the number of a job", shown(job)));
    }
    let command = match &job {
        Some(job) => vec!["flux", "job", "info", job, "R"],
        None => vec!["flux", "kvs", "get", "resource.R"],
    };
    let variable = if job.is_some() { JOB } else { "FLUX_URI" };
    let source = format!("{variable} and {}", command.join(" "));
    let wrong = |why: String| format!("{source}: {why}");
    let text = (environment.run)(&command).map_err(wrong)?;
    let hosts = read(&text).map_err(wrong)?;
    Ok(FoundHosts { source, hosts })
}
