//! Hosts of a call, which the kernel's network code connects: their number, or their names if jobs run on them.

use weft_collective::installed_maps;
use weft_fabric_sim::Machine;

/// Hosts of a call. Each has the same number of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedHosts {
    pub count: usize,
    /// Names, if they are given in place of the number.
    pub names: Vec<String>,
}

impl ExplainedHosts {
    /// Parses a number, or a list of names.
    pub fn parse(text: &str) -> Result<ExplainedHosts, String> {
        match text.parse::<usize>() {
            Ok(0) => Err("at least 1 host".to_owned()),
            Ok(count) => Ok(ExplainedHosts { count, names: Vec::new() }),
            Err(_) => {
                let names: Vec<String> = text.split(',').map(str::to_owned).collect();
                if names.iter().any(|name| name.is_empty() || name.contains(':')) {
                    return Err("a number of hosts, or names as in node0,node1".to_owned());
                }
                Ok(ExplainedHosts { count: names.len(), names })
            }
        }
    }

    /// Returns the machine with these hosts and `ranks` ranks. `name` is its machine file; by default that of Ethernet.
    pub fn machine(&self, name: Option<&str>, ranks: usize) -> Result<Machine, String> {
        // The placement of the ranks reports a remainder.
        let each = ranks.div_ceil(self.count).max(1).to_string();
        let changes = [("nodes", self.count.to_string()), ("ranks_per_node", each)];
        let changes = changes.map(|(path, value)| (path.to_owned(), value));
        let name = name.unwrap_or(installed_maps::BY_KERNEL);
        Machine::load_with(name, &changes).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_a_number_or_names() {
        let parse =
            |text: &str| ExplainedHosts::parse(text).map(|hosts| (hosts.count, hosts.names));
        assert_eq!(parse("4"), Ok((4, Vec::new())));
        assert_eq!(parse("a,b"), Ok((2, vec!["a".to_owned(), "b".to_owned()])));
        for wrong in ["0", "", "a,,b", "a:2,b:2"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_machine_has_the_hosts_and_their_ranks() {
        let machine = ExplainedHosts::parse("4").unwrap().machine(None, 8).unwrap();
        assert_eq!((machine.nodes.0, machine.ranks_per_node.0), (4, 2));
        assert!(machine.rail[0].round_trip.0 > 0, "the kernel carries messages");
    }
}
