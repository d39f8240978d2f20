//! Distance of an adapter from the processors that this process may use.

use std::fs;
use std::path::Path;

/// Returns the distance that the firmware reports (10: the same node) between NUMA node `node` and the nearest node on which
/// this process may run. `None`: sysfs has no distance.
pub fn distance(node: usize) -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    distance_in(Path::new("/sys/devices/system/node"), node, allowed)
}

fn distance_in(nodes: &Path, node: usize, allowed: &str) -> Option<u32> {
    let row = fs::read_to_string(nodes.join(format!("node{node}/distance"))).ok()?;
    let online = fs::read_to_string(nodes.join("online")).ok()?;
    let allowed = list(allowed);
    let runs_on = |other: usize| {
        let cpus = fs::read_to_string(nodes.join(format!("node{other}/cpulist")));
        cpus.is_ok_and(|cpus| list(&cpus).iter().any(|cpu| allowed.contains(cpu)))
    };
    // The row has one number per online node.
    let each = row.split_whitespace().zip(list(&online));
    each.filter(|&(_, other)| runs_on(other)).filter_map(|(text, _)| text.parse().ok()).min()
}

/// Returns the numbers of a list like `0-3,8`.
fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_node_of_ours_counts() {
        let root = std::env::temp_dir().join(format!("weft-numa-{}", std::process::id()));
        // Node 1 is not online.
        for (node, cpus, row) in
            [(0, "0-3", "10 21 31"), (2, "4-7", "21 10 41"), (3, "8", "31 41 10")]
        {
            let folder = root.join(format!("node{node}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cpulist"), cpus).unwrap();
            fs::write(folder.join("distance"), row).unwrap();
        }
        fs::write(root.join("online"), "0,2-3\n").unwrap();
        let far = |node, allowed| distance_in(&root, node, allowed);
        assert_eq!(far(0, " 0-8\n"), Some(10));
        assert_eq!(far(2, "1,2"), Some(21));
        assert_eq!(far(3, "2,5"), Some(31));
        assert_eq!(far(2, "8"), Some(41));
        assert_eq!((far(1, "0"), far(0, "77")), (None, None));
        fs::remove_dir_all(root).unwrap();
    }
}
