//! Programs under each small limit on open files: a program runs, or ends with an error that names the limit and what to do. It
//! neither panics nor hangs.

use super::tally::Tally;
use std::path::Path;
use std::process::Command;

/// A program, its arguments, and the number of its ranks.
struct Tried {
    name: &'static str,
    arguments: &'static [&'static str],
    ranks: &'static str,
    /// The limit is that of the ranks and not of the launchers, which may raise a soft one. Then a peer of the process that has met the
    /// limit may be the first to fail, and knows of no limit.
    soft: bool,
}

/// Programs that open files for different purposes: none of their own, files, ports and other jobs.
const TRIED: [Tried; 6] = [
    Tried { name: "ring", arguments: &[], ranks: "2", soft: false },
    Tried { name: "ring", arguments: &[], ranks: "3", soft: false },
    Tried { name: "spawn", arguments: &["few"], ranks: "1", soft: false },
    Tried { name: "spawn", arguments: &["few"], ranks: "2", soft: false },
    Tried { name: "spawn", arguments: &["few"], ranks: "1", soft: true },
    Tried { name: "spawn", arguments: &["few"], ranks: "2", soft: true },
];

/// Limits to try: from below what the loader needs to above what any of the programs needs.
const LIMITS: std::ops::RangeInclusive<u32> = 3..=64;

/// Seconds after which a program hangs.
const TIMEOUT: &str = "60";

/// Words that an error has, and the words of the system's loader, which opens the library.
const NAMED: [&str; 3] = ["ulimit -n", "ulimit -Hn", "error while loading shared libraries"];

/// Checks the end of a program, whose error has the limit's name if it `must_name` it. Returns whether the program ran.
fn judge(succeeded: bool, code: Option<i32>, said: &str, must_name: bool) -> Result<bool, String> {
    let is_named = !must_name || NAMED.iter().any(|words| said.contains(words));
    if said.contains("panicked") {
        return Err("it panics".to_owned());
    }
    match (succeeded, code) {
        (true, _) => Ok(true),
        (false, Some(124)) => Err("it hangs".to_owned()),
        (false, _) if is_named => Ok(false),
        _ => Err("its error does not name the limit".to_owned()),
    }
}

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let folder = super::c_programs::folder()?;
    for Tried { name, arguments, ranks, soft } in TRIED {
        let kind = if soft { "soft" } else { "hard" };
        let option = if soft { "-Sn" } else { "-n" };
        let (mut ran, mut first) = (0, None);
        for limit in LIMITS {
            let script = format!("ulimit {option} {limit}; exec \"$@\"");
            let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
            mpiexec.args(["--timeout", TIMEOUT, "-n", ranks, "sh", "-c", &script, "sh"]);
            let output = mpiexec.arg(folder.join(name)).args(arguments).output();
            let output = output.map_err(|e| format!("mpiexec: {e}"))?;
            let said =
                String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            let who = format!("{name} on {ranks} ranks with {limit} open files ({kind})");
            match judge(output.status.success(), output.status.code(), &said, !soft) {
                Ok(true) => {
                    ran += 1;
                    first.get_or_insert(limit);
                }
                Ok(false) => {}
                Err(why) => return Err(format!("{who}: {why}: {}\n{said}", output.status)),
            }
        }
        let first = first.ok_or_else(|| format!("{name}: it ran under no limit"))?;
        println!(
            "ok   {name} on {ranks} ranks: {ran} of {} {kind} limits on open files suffice, from {first}",
            LIMITS.count()
        );
        tally.passed += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_hangs_and_nameless_errors_fail() {
        assert_eq!(judge(true, Some(0), "correct", true), Ok(true));
        assert_eq!(judge(false, Some(1), "raise it (ulimit -n)", true), Ok(false));
        assert!(judge(false, Some(1), "Too many open files", true).is_err());
        assert_eq!(judge(false, Some(1), "Too many open files", false), Ok(false));
        assert!(judge(false, Some(124), "ulimit -n", true).is_err());
        assert!(judge(false, Some(134), "thread panicked: ulimit -n", true).is_err());
    }
}
