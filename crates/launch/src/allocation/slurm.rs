//! Slurm. Sources: sbatch(1), "OUTPUT ENVIRONMENT VARIABLES"; srun(1) of 20.11, 22.05 and 24.05; "Heterogeneous Job Support",
//! "Environment Variables" (slurm.schedmd.com/heterogeneous_jobs.html).

use super::{AllocatedHost, BatchSystem, FoundHosts, JobEnvironment, host_list, shown, slots};
use crate::agent_command::AgentCommand;

pub(super) const SLURM: BatchSystem = BatchSystem {
    name: "Slurm",
    is_here: |environment| [NODES, OLD_NODES, FIRST_GROUP].iter().any(|name| environment.has(name)),
    hosts,
    agent: |_| AgentCommand::exec(SRUN, HIDDEN),
};

const NODES: &str = "SLURM_JOB_NODELIST";
/// Older name of the same variable.
const OLD_NODES: &str = "SLURM_NODELIST";
/// The nodes of a heterogeneous job's first component. Under salloc, such a job has no variable without the number of a component.
const FIRST_GROUP: &str = "SLURM_JOB_NODELIST_HET_GROUP_0";
const TASKS: &str = "SLURM_TASKS_PER_NODE";
const PROCESSORS: &str = "SLURM_JOB_CPUS_PER_NODE";
const PROCESSORS_EACH: &str = "SLURM_CPUS_PER_TASK";
/// Maximum number of components of a heterogeneous job. Slurm's own limit is 128 (MAX_HET_JOB_COMPS).
const MAX_GROUPS: usize = 1024;

/// A job step of one task for each agent. All options exist since 20.11, the first version with `--overlap`: without it, a step
/// waits for processors that the job's other steps have. No interface of MPI is offered, because the agent serves its ranks itself.
/// Where a cluster binds no tasks at all, srun remarks that for `--cpu-bind`.
const SRUN: &[&str] = &[
    "srun",
    "--nodes=1",
    "--ntasks=1",
    "--nodelist={host}",
    "--het-group={tag}",
    "--overlap",
    "--mpi=none",
    "--cpu-bind=none",
    "--chdir=/",
];

/// Variables that srun takes for options (srun(1), "INPUT ENVIRONMENT VARIABLES"). They are meant for the programs of the job: they
/// would label or redirect the agent's output, or give the agent a part of the processors.
const HIDDEN: &[&str] = &[
    "SLURM_LABELIO",
    "SLURM_UNBUFFEREDIO",
    "SLURM_STDINMODE",
    "SLURM_STDOUTMODE",
    "SLURM_STDERRMODE",
    "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",
    "SLURM_TRES_PER_TASK",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_SOCKET",
    "SLURM_NTASKS_PER_GPU",
    "SLURM_NTASKS_PER_TRES",
    "SLURM_GPUS_PER_TASK",
    "SLURM_CORE_SPEC",
    "SLURM_THREADS_PER_CORE",
    "SLURM_DISTRIBUTION",
    "SLURM_HINT",
    "SLURM_EXACT",
    "SLURM_EXCLUSIVE",
    "SLURM_WORKING_DIR",
    "SLURM_TASK_PROLOG",
    "SLURM_TASK_EPILOG",
    "SLURM_MULTI_PROG",
];

/// Reads `2(x3),1`, the values of consecutive hosts. Returns `None` if the text is malformed or has another number of values.
fn values(text: &str, hosts: usize) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for word in text.split(',') {
        let (value, times) = match word.split_once("(x") {
            Some((value, times)) => (value, slots(times.strip_suffix(')')?)?),
            None => (word, 1),
        };
        let value = slots(value)?;
        if all.len().saturating_add(times) > hosts {
            return None;
        }
        all.extend(std::iter::repeat_n(value, times));
    }
    (all.len() == hosts).then_some(all)
}

/// Returns the hosts of a job, or of a component of a heterogeneous job. `suffix` ends the names of the component's variables.
fn component(environment: &JobEnvironment, suffix: &str) -> Result<FoundHosts, String> {
    let named = |name: &str| format!("{name}{suffix}");
    let is_old = !environment.has(&named(NODES));
    let nodes = named(if is_old { OLD_NODES } else { NODES });
    let list = environment.text(&nodes)?.unwrap_or_default();
    let names =
        host_list::expand(&list).map_err(|why| format!("{nodes}={}: {why}", shown(&list)))?;
    // Within a step, the number of tasks may be that of the step, which has other hosts.
    let (tasks, processors) = (named(TASKS), named(PROCESSORS));
    let read = |name: &str| Ok::<_, String>(environment.text(name)?.unwrap_or_default());
    let of_tasks = values(&read(&tasks)?, names.len());
    let each =
        environment.text(&named(PROCESSORS_EACH))?.and_then(|text| slots(&text)).unwrap_or(1);
    let of_processors = values(&read(&processors)?, names.len())
        .map(|all| all.into_iter().map(|count| (count / each).max(1)).collect::<Vec<_>>());
    let (counts, from) = match (of_tasks, of_processors) {
        (Some(counts), _) => (counts, format!(" and {tasks}")),
        (None, Some(counts)) => (counts, format!(" and {processors}")),
        _ if !environment.has(&tasks) && !environment.has(&processors) => {
            (vec![1; names.len()], String::new())
        }
        _ => {
            let name = if environment.has(&tasks) { tasks } else { processors };
            return Err(format!(
                "{name}={}: it is not like 2(x3),1 for {} hosts",
                shown(&read(&name)?),
                names.len()
            ));
        }
    };
    let host = |(name, slots): (&String, usize)| {
        AllocatedHost::new(name, slots).map_err(|why| format!("{nodes}: {why}"))
    };
    let hosts = names.iter().zip(counts).map(host).collect::<Result<_, _>>()?;
    Ok(FoundHosts { source: format!("{nodes}{from}"), hosts })
}

fn hosts(environment: &JobEnvironment) -> Result<FoundHosts, String> {
    let suffix = |group: usize| format!("_HET_GROUP_{group}");
    let is_there = |group: &usize| environment.has(&format!("{NODES}{}", suffix(*group)));
    let groups = (0..MAX_GROUPS).take_while(is_there).count();
    if groups == 0 {
        return component(environment, "");
    }
    let mut hosts = Vec::new();
    for group in 0..groups {
        let FoundHosts { hosts: more, .. } = component(environment, &suffix(group))?;
        let tag = Some(group.to_string());
        hosts.extend(more.into_iter().map(|host| AllocatedHost { tag: tag.clone(), ..host }));
    }
    Ok(FoundHosts { source: format!("{NODES}_HET_GROUP_0 to _{}", groups - 1), hosts })
}
