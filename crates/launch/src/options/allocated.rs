//! Hosts and number of processes that the user has not given: a batch system's.

use weft_bootstrap::host_names::is_local;
use weft_bootstrap::slot_table;

use super::{Options, Parser};
use crate::allocation::{self, Allocation};

impl Parser<'_> {
    /// Finds the batch system's hosts. Hosts that the user names count before them.
    fn find_allocation(&self, options: &Options) -> Result<Option<Allocation>, String> {
        let is_set = |name: &str| (self.get)(name).is_some_and(|value| !value.is_empty());
        if options.hosts.is_empty() {
            // A job that a process of this host has spawned stays on this host, unless the process names the hosts.
            return if is_set(slot_table::PARENT) { Ok(None) } else { allocation::find(self.get) };
        }
        if options.launch_agent.is_some() || options.hosts.iter().all(|host| is_local(&host.name)) {
            return Ok(None);
        }
        // The allocation only tells how to reach the hosts, so an error in it does not matter.
        Ok(allocation::find(self.get).unwrap_or_default())
    }

    /// Sets hosts and numbers of processes that the user has not given.
    pub(super) fn allocate(&mut self, options: &mut Options) -> Result<(), String> {
        let is_named = !options.hosts.is_empty();
        options.allocation = self.find_allocation(options)?;
        if let Some(allocation) = options.allocation.as_ref().filter(|_| !is_named) {
            options.hosts = allocation.hosts.iter().map(|known| known.host.clone()).collect();
        }
        for host in &mut options.hosts {
            host.slots = self.each.unwrap_or(host.slots);
        }
        let all = options.hosts.iter().fold(0usize, |sum, host| sum.saturating_add(host.slots));
        let takes_all = options.allocation.is_some() && !is_named && options.apps.len() == 1;
        for app in options.apps.iter_mut().filter(|app| app.count == 0) {
            app.count = if takes_all { all } else { 1 };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::{CommandLine, parse};
    use super::*;

    fn read(line: &str, variables: &[(&str, &str)]) -> Result<Options, String> {
        let get = |name: &str| {
            let mut values = variables.iter().filter(|(key, _)| *key == name);
            values.next().map(|(_, value)| OsString::from(value))
        };
        match parse(line.split_whitespace().map(OsString::from), &get)? {
            CommandLine::Run(options) => Ok(*options),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn hosts(options: &Options) -> Vec<(&str, usize)> {
        options.hosts.iter().map(|host| (host.name.as_str(), host.slots)).collect()
    }

    const SLURM: [(&str, &str); 2] =
        [("SLURM_JOB_NODELIST", "n[1-2]"), ("SLURM_TASKS_PER_NODE", "3,2")];

    #[test]
    fn hosts_and_processes_are_those_of_the_allocation() {
        let options = read("a", &SLURM).unwrap();
        assert_eq!((hosts(&options), options.size()), (vec![("n1", 3), ("n2", 2)], 5));
        let options = read("-n 2 a", &SLURM).unwrap();
        assert_eq!((hosts(&options).len(), options.size()), (2, 2));
        let options = read("-ppn 1 a", &SLURM).unwrap();
        assert_eq!((hosts(&options), options.size()), (vec![("n1", 1), ("n2", 1)], 2));
        // Of several programs, none can have all slots.
        assert_eq!(read("a : -n 2 b", &SLURM).unwrap().size(), 3);
        assert_eq!(read("a", &[]).unwrap().size(), 1);
    }

    #[test]
    fn named_hosts_count_before_the_allocation() {
        let options = read("-hosts n2:4,x a", &SLURM).unwrap();
        assert_eq!((hosts(&options), options.size()), (vec![("n2", 4), ("x", 1)], 1));
        let allocation = options.allocation.unwrap();
        assert!(allocation.find("n2").is_some() && allocation.find("x").is_none());
        let wrong = [("SLURM_JOB_NODELIST", "n[1-")];
        assert_eq!(hosts(&read("-hosts x a", &wrong).unwrap()), [("x", 1)]);
        assert!(read("a", &wrong).unwrap_err().contains("SLURM_JOB_NODELIST"));
        assert_eq!(read("-hosts localhost a", &wrong).unwrap().allocation, None);
        let spawned = [&wrong[..], &[(slot_table::PARENT, "p")]].concat();
        assert_eq!(read("-n 2 a", &spawned).unwrap().hosts, []);
    }

    #[test]
    fn an_allocation_of_this_host_needs_no_agent() {
        let own = nix::unistd::gethostname().unwrap().to_string_lossy().into_owned();
        let variables = [("SLURM_JOB_NODELIST", &*own), ("SLURM_TASKS_PER_NODE", "3")];
        let options = read("a", &variables).unwrap();
        assert_eq!((hosts(&options), options.size()), (vec![], 3));
        // The slots limit the processes of the job and of the jobs that it spawns.
        let room = (OsString::from(slot_table::ROOM), OsString::from("3:0"));
        assert_eq!(options.apps[0].environment, [room]);
    }
}
