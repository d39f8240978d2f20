//! The maximum number of processes of a job and of the jobs that it spawns. Environment variables pass this number to each process.

use std::ffi::OsString;

use weft_bootstrap::host_names::is_local;
use weft_bootstrap::slot_table::{self, Limit, Room};

use super::Options;

/// Returns the variables that pass the maximum number of processes to each process. Returns none if the maximum is the default.
pub fn room(
    options: &Options,
    get: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<(OsString, OsString)> {
    let is_here = options.hosts.iter().all(|host| is_local(&host.name));
    let slots: usize = options.hosts.iter().map(|host| host.slots).sum();
    // A list of host names without slots sets no limit.
    let are_counted = slots > options.hosts.len() || options.allocation.is_some();
    let limit = match options.universe {
        None if is_here && are_counted => Some(Limit::Processes(slots)),
        limit => limit,
    };
    let is_spawned = get(slot_table::PARENT).is_some();
    // If this `mpiexec` runs in a script of another `mpiexec`'s job, the inherited variables belong to the other job. Then they are
    // replaced.
    let is_inherited = |name: &str| !is_spawned && get(name).is_some();
    let limit = limit.or(is_inherited(slot_table::ROOM).then_some(Limit::System));
    let all = limit.map(|limit| (slot_table::ROOM, Room { limit, others: 0 }.to_string()));
    let hosts = (is_here && is_inherited(slot_table::VARIABLE))
        .then(|| (slot_table::VARIABLE, String::new()));
    all.into_iter().chain(hosts).map(|(name, text)| (name.into(), text.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{CommandLine, parse};
    use super::*;

    #[test]
    fn the_room_is_passed_to_processes() {
        let variables = |line: &str, given: &[&str]| {
            let get = |name: &str| given.contains(&name).then(|| "9:1".into());
            let read = parse(line.split_whitespace().map(OsString::from), &get);
            let Ok(CommandLine::Run(options)) = read else { panic!("{line}") };
            options.apps[0].environment.clone()
        };
        let pair = |name: &str, text: &str| (OsString::from(name), OsString::from(text));
        let room = |text: &str| pair(slot_table::ROOM, text);
        assert_eq!(variables("a", &[]), []);
        assert_eq!(variables("-host localhost a", &[]), []);
        assert_eq!(variables("-hosts localhost:16 a", &[]), [room("16:0")]);
        assert_eq!(variables("-hosts localhost:16 -usize 20 a", &[]), [room("20:0")]);
        assert_eq!(variables("-hosts b:16 -usize INFINITE a", &[]), [room("INFINITE:0")]);
        assert_eq!(variables("--universe-size SYSTEM a", &[]), [room("SYSTEM:0")]);
        // The first job runs in a script of another job. The second job is spawned.
        let inherited = [slot_table::ROOM, slot_table::VARIABLE];
        assert_eq!(variables("a", &inherited), [room("SYSTEM:0"), pair(slot_table::VARIABLE, "")]);
        assert_eq!(
            variables("a", &[slot_table::ROOM, slot_table::VARIABLE, slot_table::PARENT]),
            []
        );
    }
}
