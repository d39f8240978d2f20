//! Variables of launchers other than Weft's, by which a process finds the launcher that started it. They include launchers whose
//! protocol Weft does not speak, so that a job of N processes does not silently become N jobs of a single process.

use crate::BootstrapError;

/// Variables by which a process recognises the launcher that started it.
struct Launcher {
    name: &'static str,
    /// Variable that is set in each process of a job, and only there.
    rank: &'static str,
    /// Variables with the number of processes of the job. The first variable that is set counts.
    sizes: &'static [&'static str],
    /// Advice to the user, which is printed before "or use Weft's mpiexec".
    remedy: &'static str,
}

// Slurm sets SLURM_NTASKS and SLURM_PROCID also in a batch script and under `salloc`, where no task was started. So only the
// variables of a step count.
const LAUNCHERS: &[Launcher] = &[
    Launcher {
        name: "Open MPI's mpirun",
        rank: "OMPI_COMM_WORLD_RANK",
        sizes: &["OMPI_COMM_WORLD_SIZE"],
        remedy: "use an Open MPI of version 5 or later, whose mpirun offers PMIx",
    },
    Launcher {
        name: "Slurm's srun",
        rank: "SLURM_STEP_ID",
        sizes: &["SLURM_STEP_NUM_TASKS"],
        remedy: "start the program with srun --mpi=pmi2 or srun --mpi=pmix (srun --mpi=list shows \
                 what there is)",
    },
    Launcher { name: "PALS", rank: "PALS_RANKID", sizes: &["PMI_SIZE"], remedy: PMI },
    Launcher { name: "ALPS' aprun", rank: "ALPS_APP_PE", sizes: &["PMI_SIZE"], remedy: PMI },
    Launcher { name: "Flux", rank: "FLUX_TASK_RANK", sizes: &["FLUX_JOB_SIZE"], remedy: PMI },
    Launcher {
        name: "LSF's jsrun",
        rank: "JSM_NAMESPACE_RANK",
        sizes: &["JSM_NAMESPACE_SIZE"],
        remedy: PMI,
    },
    Launcher {
        name: "a PMI launcher (MPICH, Intel MPI)",
        rank: "PMI_RANK",
        sizes: &["PMI_SIZE"],
        remedy: "see that nothing between it and the program closes the socket that PMI_FD names",
    },
    Launcher {
        name: "a PMIx launcher",
        rank: "PMIX_RANK",
        sizes: &["OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"],
        remedy: "see that PMIX_NAMESPACE and the other variables of PMIx reach the program",
    },
];

const PMI: &str = "have it offer PMI-1, PMI-2 or PMIx";

/// Further variables of launchers, which their clients read.
const MORE: &[&str] =
    &["PMIX_NAMESPACE", "PMI_FD", "PMI_PORT", "PMI_ID", "PMI_SIZE", "PMI_JOBID", "PMI_SPAWNED"];

/// Returns the variables of other launchers. `mpiexec` removes them from the environment of its processes, and the library
/// removes them from the environment of a rank. So an MPI program that a rank starts is a world of one, even inside `srun`.
pub fn variables() -> impl Iterator<Item = &'static str> {
    LAUNCHERS.iter().map(|l| l.rank).chain(MORE.iter().copied())
}

/// Returns true if another launcher started this process or an ancestor of it.
pub(crate) fn is_there(get: &dyn Fn(&str) -> Option<String>) -> bool {
    variables().any(|name| get(name).is_some())
}

/// Returns the number of processes of the job, if the launcher's variables have it.
pub(crate) fn size(get: &dyn Fn(&str) -> Option<String>) -> Option<usize> {
    let started = LAUNCHERS.iter().filter(|launcher| get(launcher.rank).is_some());
    let mut names = started.flat_map(|launcher| launcher.sizes).chain(&["PMI_SIZE"]);
    names.find_map(|name| get(name)?.trim().parse().ok().filter(|&size| size > 0))
}

/// Fails if another launcher started this process together with other processes. `why` is the reason why this process cannot
/// join.
pub(crate) fn check(
    get: &dyn Fn(&str) -> Option<String>,
    why: Option<&str>,
) -> Result<(), BootstrapError> {
    for launcher in LAUNCHERS {
        let Some(rank) = get(launcher.rank) else { continue };
        let size = launcher.sizes.iter().find_map(|name| Some((name, get(name)?)));
        let size = match &size {
            Some((_, value)) if value.trim() == "1" => continue,
            Some((name, value)) => format!(" and {name}={value}"),
            None => String::new(),
        };
        let Launcher { name, rank: variable, remedy, .. } = launcher;
        let why = why.unwrap_or("there is no PMI-1, PMI-2 or PMIx through which it could join");
        return Err(BootstrapError(format!(
            "this process was started by {name} ({variable}={rank}{size}), but {why}. To join its \
             job, {remedy}; or start the program with Weft's mpiexec; or unset {variable} to run \
             it alone"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<(), BootstrapError> {
        let get =
            |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
        check(&get, None)
    }

    #[test]
    fn a_plain_environment_is_fine() {
        with(&[]).unwrap();
    }

    #[test]
    fn several_processes_of_another_launcher_are_an_error_that_names_it() {
        for (variables, words) in [
            (&[("PMI_RANK", "1"), ("PMI_SIZE", "4")][..], "PMI_SIZE=4"),
            (&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")], "Open MPI"),
            (&[("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "8")], "--mpi=pmi2"),
            (&[("PMIX_RANK", "3"), ("PMIX_NAMESPACE", "x")], "PMIX_RANK=3"),
            (&[("PALS_RANKID", "3")], "PALS"),
            (&[("ALPS_APP_PE", "3")], "ALPS"),
        ] {
            let error = with(variables).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("mpiexec"), "{error}");
        }
    }

    #[test]
    fn one_process_is_a_world_of_one() {
        with(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]).unwrap();
        with(&[("PMIX_RANK", "0"), ("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")])
            .unwrap();
    }

    #[test]
    fn a_batch_script_of_slurm_is_not_a_task() {
        with(&[("SLURM_NTASKS", "16"), ("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "7")]).unwrap();
    }
}
