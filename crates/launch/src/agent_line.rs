//! The choice among the commands that reach a host.

use std::io;

use weft_bootstrap::host_names::is_local;

use crate::agent_command::{AgentCommand, AgentLine, SSH};
use crate::options::Options;

/// Returns the command line that starts the agent of `host`: the user's command, or none but `mpiexec` for this host, or the batch
/// system's command for a host of the allocation, or ssh.
pub fn agent_line(options: &Options, host: &str) -> io::Result<AgentLine> {
    let program = std::env::current_exe()?;
    if let Some(words) = &options.launch_agent {
        return Ok(AgentCommand::remote_shell(words).line(host, None, &program));
    }
    if is_local(host) {
        return Ok(AgentLine { words: vec![program.into(), "--agent".into()], hidden: &[] });
    }
    let allocation = options.allocation.as_ref();
    let found = allocation.and_then(|allocation| Some((allocation, allocation.find(host)?)));
    Ok(match found {
        Some((allocation, known)) => {
            allocation.agent.line(&known.host.name, known.tag.as_deref(), &program)
        }
        None => AgentCommand::remote_shell(SSH).line(host, None, &program),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::{AllocatedHost, Allocation};

    fn words(options: &Options, host: &str) -> Vec<String> {
        let line = agent_line(options, host).unwrap();
        line.words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn hosts_are_reached_through_ssh_or_the_given_command() {
        let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let mut options = Options::default();
        assert_eq!(words(&options, "localhost").last().unwrap(), "--agent");
        let line = words(&options, "far");
        assert_eq!(line[..4], SSH);
        assert_eq!(line[4..], ["far", &program, "--agent"]);
        options.launch_agent = Some(vec!["rsh".into(), "-n".into()]);
        assert_eq!(words(&options, "localhost"), ["rsh", "-n", "localhost", &program, "--agent"]);
    }

    #[test]
    fn hosts_of_the_allocation_are_reached_through_the_batch_system() {
        let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let hosts = vec![
            AllocatedHost::new("n1", 2).unwrap(),
            AllocatedHost { tag: Some("1".into()), ..AllocatedHost::new("n2.org", 1).unwrap() },
        ];
        let agent = AgentCommand::exec(&["srun", "--het-group={tag}", "-w{host}"], &["X"]);
        let allocation = Allocation { system: "Slurm", source: String::new(), hosts, agent };
        let mut options = Options { allocation: Some(allocation), ..Options::default() };
        assert_eq!(words(&options, "n1"), ["srun", "-wn1", &program, "--agent"]);
        // The batch system gets the name that it gave.
        let line = words(&options, "n2");
        assert_eq!(line, ["srun", "--het-group=1", "-wn2.org", &program, "--agent"]);
        assert_eq!(agent_line(&options, "n2").unwrap().hidden, ["X"]);
        assert_eq!(words(&options, "n3")[..5], [&SSH[..], &["n3"]].concat());
        options.launch_agent = Some(vec!["rsh".into()]);
        assert_eq!(words(&options, "n1")[..2], ["rsh", "n1"]);
    }
}
