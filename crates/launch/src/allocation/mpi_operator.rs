//! Kubeflow's MPI Operator on Kubernetes, and the variables of other launchers by which it names its host file. Sources:
//! kubeflow/mpi-operator, pkg/controller/mpi_job_controller.go (`ompiEnvVars`, `intelEnvVars`, `mpichEnvVars`, `newConfigMap`:
//! lines `host slots=N` for Open MPI, `host:N` for Intel and MPICH); kubeflow/training-operator,
//! pkg/controller.v1/mpi/mpijob_controller.go (`OMPI_MCA_plm_rsh_agent` is a script that takes ssh's place).

use super::{AllocatedHost, BatchSystem, FoundHosts, JobEnvironment};
use crate::agent_command::{AgentCommand, SSH};
use crate::hosts;

pub(super) const MPI_OPERATOR: BatchSystem = BatchSystem {
    name: "the MPI Operator",
    is_here: |environment| kind(environment).is_some() || is_launcher(environment),
    hosts: host_file,
    agent,
};

/// Variables of a launcher whose place this `mpiexec` takes.
struct LauncherVariables {
    /// Path of the host file.
    file: &'static str,
    /// Names of the variable with the command in place of ssh. The first that is set counts.
    command: &'static [&'static str],
    /// Names of the variable with more arguments for the command.
    arguments: &'static [&'static str],
}

const KINDS: &[LauncherVariables] = &[
    LauncherVariables {
        file: "OMPI_MCA_orte_default_hostfile",
        command: &["OMPI_MCA_plm_rsh_agent"],
        arguments: &["OMPI_MCA_plm_rsh_args"],
    },
    LauncherVariables {
        file: "I_MPI_HYDRA_HOST_FILE",
        command: &["I_MPI_HYDRA_BOOTSTRAP_EXEC"],
        arguments: &["I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"],
    },
    // Hydra reads the names with LAUNCHER. The operator sets the older names with LAUNCH.
    LauncherVariables {
        file: "HYDRA_HOST_FILE",
        command: &["HYDRA_LAUNCHER_EXEC", "HYDRA_LAUNCH_EXEC", "HYDRA_BOOTSTRAP_EXEC"],
        arguments: &["HYDRA_LAUNCHER_EXTRA_ARGS", "HYDRA_LAUNCH_EXTRA_ARGS"],
    },
];

/// The host file where no variable names another.
const FILE: &str = "/etc/mpi/hostfile";

/// Returns true in the operator's launcher.
fn is_launcher(environment: &JobEnvironment) -> bool {
    environment.text("K_MPI_JOB_ROLE").is_ok_and(|role| role.as_deref() == Some("launcher"))
}

fn kind(environment: &JobEnvironment) -> Option<&'static LauncherVariables> {
    KINDS.iter().find(|kind| environment.has(kind.file))
}

fn host_file(environment: &JobEnvironment) -> Result<FoundHosts, String> {
    let (name, (path, text)) = match kind(environment) {
        Some(kind) => (kind.file, environment.file(kind.file)?),
        None => {
            let text = hosts::read(FILE.as_ref());
            let text = text.map_err(|why| format!("K_MPI_JOB_ROLE: {FILE}: {why}"))?;
            ("K_MPI_JOB_ROLE", (FILE.to_owned(), text))
        }
    };
    let mut all = Vec::new();
    hosts::file(&path, &text, &mut all).map_err(|why| format!("{name}: {why}"))?;
    let hosts = all.into_iter().map(|host| AllocatedHost { host, tag: None }).collect();
    Ok(FoundHosts { source: format!("{name} ({path})"), hosts })
}

/// Returns the words of the first of the variables that is set.
fn words(environment: &JobEnvironment, names: &[&str]) -> Vec<String> {
    let mut texts = names.iter().filter_map(|name| environment.text(name).ok().flatten());
    let text = texts.next().unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn agent(environment: &JobEnvironment) -> AgentCommand {
    let kind = kind(environment);
    let of = |names: Option<&[&str]>| names.map_or(Vec::new(), |names| words(environment, names));
    let mut command = of(kind.map(|kind| kind.command));
    // Open MPI takes a list of commands, `ssh : rsh`.
    if let Some(end) = command.iter().position(|word| word == ":") {
        command.truncate(end);
    }
    if command.is_empty() {
        command = SSH.map(str::to_owned).to_vec();
    }
    AgentCommand::remote_shell(command.into_iter().chain(of(kind.map(|kind| kind.arguments))))
}
