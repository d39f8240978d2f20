//! `weft explain` and `weft sim run` choose the same algorithms on the shipped machine files: a program takes the same virtual time
//! with its own choices as with the algorithms that `weft explain` names.

use super::c_programs::{compile, folder};
use super::tools::quiet;
use crate::root;
use std::path::Path;
use std::process::Command;

/// Machine files: those with a map of their own, those with the usual maps, and a node whose ranks share memory.
const MACHINES: [&str; 7] =
    ["collgm", "kini1", "fence", "rendezvous", "ethernet", "ndr", "epyc9654"];

/// Operations of tests/sim/collectives.c.
const OPERATIONS: [&str; 4] = ["barrier", "allreduce", "alltoall", "bcast"];

/// Compares the times on all machines.
pub fn run(prefix: &Path) -> Result<(), String> {
    let program = folder()?.join("sim-collectives");
    compile(prefix, &root().join("tests/sim/collectives.c"), &program)?;
    for machine in MACHINES {
        let times = |settings: &[(String, String)]| {
            let mut run = Command::new(prefix.join("bin/weft"));
            run.args(["sim", "run", "--quiet", "--compute", "none", "--machine", machine]);
            run.args(["-n", "8", "--"]).arg(&program);
            quiet(run.envs(settings.iter().map(|(name, value)| (name, value))))
        };
        let mut named = Vec::new();
        for operation in OPERATIONS {
            let mut explain = Command::new(prefix.join("bin/weft"));
            explain.args(["explain", operation, "-n", "8", "--machine", machine]);
            if operation != "barrier" {
                explain.args(["--bytes", "1024"]);
            }
            let text = quiet(&mut explain)?;
            let name = algorithm(&text).ok_or(format!("no algorithm in\n{text}"))?;
            named.push((format!("WEFT_{}", operation.to_ascii_uppercase()), name));
        }
        let (own, explained) = (times(&[])?, times(&named)?);
        if own != explained || own.lines().count() < OPERATIONS.len() {
            return Err(format!(
                "{machine}: other times with the choices of weft explain, {named:?}:\n{own}{explained}"
            ));
        }
    }
    println!("ok   the same algorithms in weft explain and in virtual time");
    Ok(())
}

/// Returns the algorithm with its parameter, as a setting names it, from the line `algorithm  N-WAY (radix 4): ...`.
fn algorithm(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("algorithm "))?;
    let (name, _) = line.trim().split_once(": ")?;
    let Some((name, parameter)) = name.split_once(" (") else { return Some(name.to_owned()) };
    Some(format!("{name}:{}", parameter.trim_end_matches(')').rsplit(' ').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_names_the_algorithm_of_an_explanation() {
        let text =
            "barrier on 8 ranks\n  machine    m\n  algorithm  N-WAY (radix 4): over streams\n";
        assert_eq!(algorithm(text).as_deref(), Some("N-WAY:4"));
        assert_eq!(algorithm("  algorithm  RPE: writes\n").as_deref(), Some("RPE"));
        assert_eq!(algorithm("barrier\n"), None);
    }
}
