//! LSF. Sources: IBM Spectrum LSF 10.1, "Environment variable reference" (LSB_DJOB_HOSTFILE: a line for each slot; LSB_MCPU_HOSTS:
//! `hostA 2 hostB 4`) and blaunch(1), which takes the place of ssh for the hosts of a job.

use super::{AllocatedHost, BatchSystem, FoundHosts, JobEnvironment, pbs, shown, slots};
use crate::agent_command::AgentCommand;

pub(super) const LSF: BatchSystem = BatchSystem {
    name: "LSF",
    is_here: |environment| environment.has(FILE) || environment.has(COUNTS),
    hosts,
    // blaunch gets no option -n, because -n closes the standard input that the agent needs.
    agent: |_| AgentCommand::remote_shell(["blaunch"]),
};

const FILE: &str = "LSB_DJOB_HOSTFILE";
const COUNTS: &str = "LSB_MCPU_HOSTS";

fn hosts(environment: &JobEnvironment) -> Result<FoundHosts, String> {
    if environment.has(FILE) {
        return pbs::each_line(environment, FILE);
    }
    let text = environment.text(COUNTS)?.unwrap_or_default();
    let wrong = |why: String| format!("{COUNTS}={}: {why}", shown(&text));
    let words: Vec<&str> = text.split_whitespace().collect();
    let host = |pair: &[&str]| {
        let count = pair.get(1).and_then(|count| slots(count));
        let count =
            count.ok_or_else(|| wrong(format!("no number of slots follows {:?}", pair[0])))?;
        AllocatedHost::new(pair[0], count).map_err(wrong)
    };
    let hosts = words.chunks(2).map(host).collect::<Result<_, _>>()?;
    Ok(FoundHosts { source: COUNTS.to_owned(), hosts })
}
