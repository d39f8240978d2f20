//! The hosts that a launcher of several hosts has for the job and for what it spawns, as it tells the processes.

use std::env;

/// The variable that tells it; without it there is this machine.
pub const VARIABLE: &str = "WEFT_HOSTS";

/// The variable that tells which `mpiexec` has started the process, on its own machine: a library that lies elsewhere spawns by it.
pub const MPIEXEC: &str = "WEFT_MPIEXEC";

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// As the user named it.
    pub name: String,
    /// Processes that it takes.
    pub slots: usize,
    /// Processes of the job that run there.
    pub taken: usize,
}

/// What travels: `name:slots:taken`, commas between.
pub fn encode(hosts: &[Host]) -> String {
    let word = |Host { name, slots, taken }: &Host| format!("{name}:{slots}:{taken}");
    hosts.iter().map(word).collect::<Vec<_>>().join(",")
}

/// What has travelled; what makes no sense is nothing.
pub fn decode(text: &str) -> Vec<Host> {
    let host = |word: &str| {
        let mut parts = word.rsplitn(3, ':');
        let (taken, slots) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let name = parts.next().filter(|name| !name.is_empty())?;
        (slots > 0).then(|| Host { name: name.to_owned(), slots, taken })
    };
    text.split(',').map(host).collect::<Option<_>>().unwrap_or_default()
}

/// The hosts of this process's job; empty: this machine.
pub fn hosts() -> Vec<Host> {
    env::var(VARIABLE).map_or_else(|_| Vec::new(), |text| decode(&text))
}

/// Where spawned processes go, in the words of `mpiexec -hosts`: to free slots first, then to all hosts in turn.
pub fn free_first(hosts: &[Host]) -> String {
    let free = |host: &Host| host.slots.saturating_sub(host.taken);
    let (some, none): (Vec<_>, Vec<_>) = hosts.iter().partition(|host| free(host) > 0);
    let some = some.into_iter().map(|host| format!("{}:{}", host.name, free(host)));
    let none = none.into_iter().map(|host| format!("{}:{}", host.name, host.slots));
    some.chain(none).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, slots: usize, taken: usize) -> Host {
        Host { name: name.to_owned(), slots, taken }
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
    fn free_slots_are_taken_first() {
        assert_eq!(free_first(&[host("a", 2, 2), host("b", 4, 1)]), "b:3,a:2");
        assert_eq!(free_first(&[host("a", 1, 3)]), "a:1");
    }
}
