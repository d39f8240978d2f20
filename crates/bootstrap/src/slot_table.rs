//! The hosts for the job and for the processes that it spawns, and the maximum number of processes. The launcher passes both to
//! each process.

use std::{env, fmt};

/// Variable with the hosts. Without it there is only this machine.
pub const VARIABLE: &str = "WEFT_HOSTS";

/// Variable with the path of the `mpiexec` that has started the process, which the process uses to spawn other processes. The
/// path is valid on the machine of `mpiexec`.
pub const MPIEXEC: &str = "WEFT_MPIEXEC";

/// Variable with the number of processes for which there is room ([`Room`]).
pub const ROOM: &str = "WEFT_UNIVERSE";

/// Variable with the port of the parents, in the environment of a spawned job's `mpiexec`.
pub const PARENT: &str = "WEFT_PARENT";

/// Maximum number of processes, as given by the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limit {
    /// At most the number of slots of all hosts, or, without a list of hosts, the number of processors of the machine.
    #[default]
    System,
    /// At most this number of processes.
    Processes(usize),
    /// No limit is known.
    Infinite,
}

impl Limit {
    /// Parses `16`, `SYSTEM` or `INFINITE`.
    pub fn parse(text: &str) -> Option<Limit> {
        match text {
            "SYSTEM" => Some(Limit::System),
            "INFINITE" => Some(Limit::Infinite),
            number => number.parse().ok().filter(|&count| count > 0).map(Limit::Processes),
        }
    }
}

/// The room for processes, shared by all jobs that have spawned each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    /// Maximum number of processes.
    pub limit: Limit,
    /// Number of processes of ancestor jobs (parents, and their parents) that ran when this job was started.
    pub others: usize,
}

impl Room {
    /// Parses a limit and `:others`. Returns `None` if `text` is malformed.
    pub fn parse(text: &str) -> Option<Room> {
        let (limit, others) = text.split_once(':').unwrap_or((text, "0"));
        Some(Room { limit: Limit::parse(limit)?, others: others.parse().ok()? })
    }

    /// Returns the room of this process's job.
    pub fn of_this_job() -> Room {
        env::var(ROOM).ok().and_then(|text| Room::parse(&text)).unwrap_or_default()
    }

    /// Returns the number of processes for which there is room. It is at least the number of running processes: `own` processes
    /// of this job, and the processes of other jobs. Returns `None` if no limit is known.
    pub fn size(&self, own: usize) -> Option<usize> {
        let limit = match self.limit {
            Limit::Infinite => return None,
            Limit::Processes(count) => count,
            Limit::System => {
                let slots: usize = hosts().iter().map(|host| host.slots).sum();
                let processors = || std::thread::available_parallelism().map_or(1, usize::from);
                if slots > 0 { slots } else { processors() }
            }
        };
        Some(limit.max(own.saturating_add(self.others)))
    }

    /// Returns the room for a job that this job starts. The limit stays the same, independent of the hosts that are left for the
    /// new job. `own` is the number of processes of this job and of the jobs that it has started before.
    pub fn of_children(&self, own: usize) -> Room {
        let limit = self.size(own).map_or(Limit::Infinite, Limit::Processes);
        Room { limit, others: own.saturating_add(self.others) }
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Limit::System => write!(f, "SYSTEM:{}", self.others),
            Limit::Infinite => write!(f, "INFINITE:{}", self.others),
            Limit::Processes(count) => write!(f, "{count}:{}", self.others),
        }
    }
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSlots {
    /// Name as the user wrote it.
    pub name: String,
    /// Maximum number of processes on the host.
    pub slots: usize,
    /// Number of processes of the job on the host.
    pub taken: usize,
}

/// Encodes hosts as `name:slots:taken`, with commas between them.
pub fn encode(hosts: &[HostSlots]) -> String {
    let word = |HostSlots { name, slots, taken }: &HostSlots| format!("{name}:{slots}:{taken}");
    hosts.iter().map(word).collect::<Vec<_>>().join(",")
}

/// Decodes a list that [`encode`] has encoded. Returns an empty list if `text` is malformed.
pub fn decode(text: &str) -> Vec<HostSlots> {
    let host = |word: &str| {
        let mut parts = word.rsplitn(3, ':');
        let (taken, slots) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let name = parts.next().filter(|name| !name.is_empty())?;
        (slots > 0).then(|| HostSlots { name: name.to_owned(), slots, taken })
    };
    text.split(',').map(host).collect::<Option<_>>().unwrap_or_default()
}

/// Returns the hosts of this process's job. An empty list means this machine.
pub fn hosts() -> Vec<HostSlots> {
    env::var(VARIABLE).map_or_else(|_| Vec::new(), |text| decode(&text))
}

/// Returns the hosts for spawned processes as a list for `mpiexec -hosts`: free slots first, then all hosts in turn.
pub fn free_first(hosts: &[HostSlots]) -> String {
    let free = |host: &HostSlots| host.slots.saturating_sub(host.taken);
    let (some, none): (Vec<_>, Vec<_>) = hosts.iter().partition(|host| free(host) > 0);
    let some = some.into_iter().map(|host| format!("{}:{}", host.name, free(host)));
    let none = none.into_iter().map(|host| format!("{}:{}", host.name, host.slots));
    some.chain(none).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, slots: usize, taken: usize) -> HostSlots {
        HostSlots { name: name.to_owned(), slots, taken }
    }

    #[test]
    fn hosts_come_back() {
        let all = [host("a", 2, 2), host("[fd00::1]", 4, 1)];
        assert_eq!(decode(&encode(&all)), all);
        for wrong in ["", "a", "a:1", "a:0:0", ":1:1", "a:1:1,", "a:x:1"] {
            assert_eq!(decode(wrong), [], "{wrong:?}");
        }
    }

    #[test]
    fn room_is_for_all_that_run() {
        for (text, limit, others) in [
            ("16", Limit::Processes(16), 0),
            ("16:3", Limit::Processes(16), 3),
            ("SYSTEM:1", Limit::System, 1),
            ("INFINITE:2", Limit::Infinite, 2),
        ] {
            let room = Room { limit, others };
            assert_eq!(Room::parse(text), Some(room));
            assert_eq!(Room::parse(&room.to_string()), Some(room));
        }
        for wrong in ["", "0", "-1", "many", "1:", "1:x"] {
            assert_eq!(Room::parse(wrong), None, "{wrong:?}");
        }
        let parents = Room { limit: Limit::Processes(4), others: 0 };
        let children = parents.of_children(2);
        assert_eq!((children.size(1), children.size(3)), (Some(4), Some(5)));
        assert_eq!(children.of_children(3).size(2), Some(7));
        assert_eq!(Room { limit: Limit::Infinite, others: 0 }.of_children(2).size(1), None);
    }

    #[test]
    fn free_slots_are_taken_first() {
        assert_eq!(free_first(&[host("a", 2, 2), host("b", 4, 1)]), "b:3,a:2");
        assert_eq!(free_first(&[host("a", 1, 3)]), "a:1");
    }
}
