//! The node of each rank, from a setting, from the launcher, or from the processes themselves.

use std::fs;

use crate::{Bootstrap, BootstrapError};

/// Setting that divides one machine into several nodes, for tests: see [`parse`].
pub const SETTING: &str = "WEFT_NODES";

/// Returns the node of each rank by [`SETTING`]; `None` if the setting is absent.
pub(crate) fn from_setting(size: usize) -> Result<Option<Vec<usize>>, BootstrapError> {
    match std::env::var(SETTING) {
        Ok(text) if !text.is_empty() => parse(&text, size).map(Some).map_err(BootstrapError),
        _ => Ok(None),
    }
}

/// Returns true if [`SETTING`] divides one machine into several nodes.
pub fn are_faked() -> bool {
    std::env::var_os(SETTING).is_some()
}

/// Checks the setting for any number of ranks.
pub fn check(text: &str) -> Result<(), String> {
    let size = if text.contains(',') { text.split(',').count() } else { 1 };
    if text.is_empty() { Ok(()) } else { parse(text, size).map(drop) }
}

/// Reads `2` (nodes of two ranks each, in order) or `0,0,1,1` (the node of each rank).
pub fn parse(text: &str, size: usize) -> Result<Vec<usize>, String> {
    let wrong = |what: String| {
        format!(
            "{SETTING}={text}: {what}; it is a number of ranks a node (2), or the node of each \
             rank (0,0,1,1)"
        )
    };
    let number = |word: &str| {
        word.trim().parse::<usize>().map_err(|_| wrong(format!("{word:?} is not a number")))
    };
    if !text.contains(',') {
        let each = number(text)?;
        if each == 0 {
            return Err(wrong("0 ranks a node".into()));
        }
        return Ok((0..size).map(|rank| rank / each).collect());
    }
    let nodes = text.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
    if nodes.len() != size {
        return Err(wrong(format!("{} nodes for {size} ranks", nodes.len())));
    }
    Ok(nodes)
}

/// Returns a text that is equal in processes that can share memory: the running kernel, the host (a container is a host of its
/// own), and the network namespace, in which processes find each other.
pub fn identity() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let host = nix::unistd::gethostname().unwrap_or_default();
    let net = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {} {}", boot.trim(), host.to_string_lossy(), net.display())
}

/// Numbers names in the order in which they appear. Equal names get equal numbers.
pub fn number<T: PartialEq>(names: &[T]) -> Vec<usize> {
    let mut seen: Vec<&T> = Vec::new();
    let place = |name| {
        seen.iter().position(|&other| other == name).unwrap_or_else(|| {
            seen.push(name);
            seen.len() - 1
        })
    };
    names.iter().map(place).collect()
}

/// Finds the node of each rank without the launcher: each process publishes its identity.
pub(crate) fn exchange(world: &mut dyn Bootstrap) -> Result<Vec<usize>, BootstrapError> {
    world.put("node", identity().as_bytes())?;
    world.fence()?;
    let names = (0..world.size()).map(|rank| world.get(rank, "node"));
    Ok(number(&names.collect::<Result<Vec<_>, _>>()?))
}

/// Reads PMI_process_mapping (in PMI-1 and PMI-2): the node of each of `size` ranks. Returns `None` if the text is not understood
/// or has no blocks.
///
/// ```text
///   (vector,(0,2,4))         from node 0 on, 2 nodes of 4 ranks each
///   (vector,(0,2,1),0)       ranks 0, 1 on nodes 0, 1; rank 2 on node 0
///   (vector,[(0,2,1)]x3)     the blocks in brackets, three times (MPICH 4.2 and later)
/// ```
/// A mapping with fewer than `size` ranks is repeated.
pub(crate) fn from_mapping(text: &str, size: usize) -> Option<Vec<usize>> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut rest = plain.strip_prefix("(vector,")?.strip_suffix(')')?;
    let mut nodes = Vec::new();
    while !rest.is_empty() {
        let mut blocks = Vec::new();
        if let Some(inside) = rest.strip_prefix('[') {
            let (inside, after) = inside.split_once("]x")?;
            let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            let (times, after) = after.split_at(end);
            let mut inside = inside;
            while !inside.is_empty() {
                inside = block(inside, size, &mut blocks)?;
            }
            // Repetitions beyond the number of ranks have no effect, so the count is limited.
            let times = times.parse::<usize>().ok()?.min(size);
            for _ in 0..times {
                nodes.extend(&blocks);
                nodes.truncate(size);
            }
            rest = comma(after)?;
        } else {
            rest = block(rest, size, &mut blocks)?;
            nodes.extend(blocks);
            nodes.truncate(size);
        }
    }
    (!nodes.is_empty()).then(|| nodes.iter().copied().cycle().take(size).collect())
}

/// Takes the comma between two blocks. Returns the rest.
fn comma(rest: &str) -> Option<&str> {
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix(',').filter(|rest| !rest.is_empty())
    }
}

/// Takes one block, `7` or `(start,nodes,ranks)`, and its comma. Returns the rest.
fn block<'a>(text: &'a str, size: usize, nodes: &mut Vec<usize>) -> Option<&'a str> {
    let Some(inside) = text.strip_prefix('(') else {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        nodes.push(text[..end].parse().ok()?);
        return comma(&text[end..]);
    };
    let (inside, after) = inside.split_once(')')?;
    let mut fields = inside.split(',').map(str::parse::<usize>);
    let mut field = || fields.next()?.ok();
    let (start, count, each) = (field()?, field()?, field()?);
    if each == 0 {
        return None;
    }
    let all = (start..start.checked_add(count)?).flat_map(|node| std::iter::repeat_n(node, each));
    nodes.extend(all.take(size));
    comma(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_a_number_or_a_list() {
        assert_eq!(parse("2", 5).unwrap(), [0, 0, 1, 1, 2]);
        assert_eq!(parse("0,1,0", 3).unwrap(), [0, 1, 0]);
        for (text, words) in [("0", "0 ranks"), ("x", "\"x\""), ("0,1", "2 nodes for 3 ranks")] {
            let error = parse(text, 3).unwrap_err();
            assert!(error.contains(words) && error.contains(SETTING), "{error}");
        }
        assert_eq!((check(""), check("3"), check("0,0,7")), (Ok(()), Ok(()), Ok(())));
        assert!(check("1,").is_err() && check("many").is_err());
    }

    #[test]
    fn names_are_numbered_as_they_appear() {
        assert_eq!(number(&["b", "a", "b", "c"]), [0, 1, 0, 2]);
    }

    #[test]
    fn mappings_of_hydra_and_slurm() {
        for (text, size, nodes) in [
            ("(vector,(0,1,2))", 2, vec![0, 0]),
            ("(vector,(0,2,2))", 4, vec![0, 0, 1, 1]),
            ("(vector, (0,2,1),0)", 3, vec![0, 1, 0]),
            ("(vector,(0,2,1),(0,1,1))", 3, vec![0, 1, 0]),
            ("(vector,(3,1,1),5)", 2, vec![3, 5]),
            ("(vector,(0,2,1))", 5, vec![0, 1, 0, 1, 0]),
            ("(vector,[(0,2,1),2]x2,7)", 7, vec![0, 1, 2, 0, 1, 2, 7]),
            ("(vector,(0,4000000000,4000000000))", 2, vec![0, 0]),
        ] {
            assert_eq!(from_mapping(text, size), Some(nodes), "{text}");
        }
    }

    #[test]
    fn what_is_no_mapping_says_nothing() {
        for text in [
            "",
            "(vector,)",
            "(matrix,(0,1,1))",
            "(vector,(0,1))",
            "(vector,(0,1,1)",
            "(vector,x)",
            "(vector,(0,1,1),)",
            "(vector,[(0,1,1))",
            "(vector,(0,4000000000,0))",
            "(vector,(18446744073709551615,2,1))",
        ] {
            assert_eq!(from_mapping(text, 4), None, "{text}");
        }
    }
}
