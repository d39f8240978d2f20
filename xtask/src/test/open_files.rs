//! Tests of programs under each small limit on open files. A program must run, or end with an error that names the limit and the
//! remedy. It must neither panic nor hang.

use super::lanes::two_at_a_time;
use super::tally::Tally;
use std::path::Path;
use std::process::Command;

/// A program, its arguments, the number of its ranks, and the kind of the limit.
struct Tried {
    name: &'static str,
    arguments: &'static [&'static str],
    ranks: &'static str,
    limit: LimitKind,
}

/// Kind of a limit on open files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LimitKind {
    /// Limit that no process can raise. Each error must name the limit.
    Hard,
    /// Limit that launchers may raise, but ranks do not raise. The error need not name this limit.
    Soft,
}

impl LimitKind {
    /// Returns the name of the limit, and the option of ulimit(1) that sets it.
    fn words(self) -> [&'static str; 2] {
        match self {
            LimitKind::Hard => ["hard", "-n"],
            LimitKind::Soft => ["soft", "-Sn"],
        }
    }
}

/// Programs that open different kinds of descriptors: none, files, ports, and connections to other jobs.
const TRIED: [Tried; 6] = [
    Tried { name: "ring", arguments: &[], ranks: "2", limit: LimitKind::Hard },
    Tried { name: "ring", arguments: &[], ranks: "3", limit: LimitKind::Hard },
    Tried { name: "spawn", arguments: &["few"], ranks: "1", limit: LimitKind::Hard },
    Tried { name: "spawn", arguments: &["few"], ranks: "2", limit: LimitKind::Hard },
    Tried { name: "spawn", arguments: &["few"], ranks: "1", limit: LimitKind::Soft },
    Tried { name: "spawn", arguments: &["few"], ranks: "2", limit: LimitKind::Soft },
];

/// Distance between two soft limits that the usual tests try. Such limits take long, because jobs run under most of them; the soak tries
/// each.
const SOFT_STEP: usize = 4;

/// Limits to try: from fewer files than the loader needs to more than any of the programs needs.
const LIMITS: std::ops::RangeInclusive<u32> = 3..=64;

/// Seconds after which a program counts as hanging.
const TIMEOUT: &str = "60";

/// Texts in the library's errors, and the text of the system's loader, which opens the library.
const NAMED: [&str; 3] = ["ulimit -n", "ulimit -Hn", "error while loading shared libraries"];

/// Checks the end of a program under a limit. Returns true if the program ran.
fn judge(code: Option<i32>, said: &str, limit: LimitKind) -> Result<bool, String> {
    let is_named = limit == LimitKind::Soft || NAMED.iter().any(|words| said.contains(words));
    if said.contains("panicked") {
        return Err("it panics".to_owned());
    }
    match code {
        Some(0) => Ok(true),
        Some(124) => Err("it hangs".to_owned()),
        _ if is_named => Ok(false),
        _ => Err("its error does not name the limit".to_owned()),
    }
}

/// Runs a program under a limit. Returns true if the program ran to its end.
fn runs(prefix: &Path, tried: &Tried, limit: u32) -> Result<bool, String> {
    let Tried { name, arguments, ranks, limit: kind } = *tried;
    let [kind_name, option] = kind.words();
    let script = format!("ulimit {option} {limit}; exec \"$@\"");
    let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
    mpiexec.args(["--timeout", TIMEOUT, "-n", ranks, "sh", "-c", &script, "sh"]);
    let program = super::c_programs::folder()?.join(name);
    let output = mpiexec.arg(program).args(arguments).output();
    let output = output.map_err(|e| format!("mpiexec: {e}"))?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    judge(output.status.code(), &said, kind).map_err(|why| {
        let who = format!("{name} on {ranks} ranks with {limit} open files ({kind_name})");
        format!("{who}: {why}: {}\n{said}", output.status)
    })
}

/// Runs the programs under each hard limit, and under some of the soft limits.
pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    with_steps(prefix, SOFT_STEP, tally)
}

/// Runs the programs under each limit.
pub fn soak(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    with_steps(prefix, 1, tally)
}

fn with_steps(prefix: &Path, soft_step: usize, tally: &mut Tally) -> Result<(), String> {
    for tried in &TRIED {
        let Tried { name, ranks, limit: kind, .. } = *tried;
        let step = if kind == LimitKind::Soft { soft_step } else { 1 };
        let limits: Vec<u32> = LIMITS.step_by(step).collect();
        let ends = two_at_a_time(&limits, |&limit| runs(prefix, tried, limit));
        let ends = ends.into_iter().collect::<Result<Vec<bool>, String>>()?;
        let first = ends.iter().position(|&ran| ran).map(|place| limits[place]);
        let first = first.ok_or_else(|| format!("{name}: it ran under no limit"))?;
        let ran = ends.iter().filter(|&&ran| ran).count();
        let (all, [kind_name, _]) = (ends.len(), kind.words());
        println!(
            "ok   {name} on {ranks} ranks: {ran} of {all} {kind_name} limits on open files suffice, from {first}"
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
        assert_eq!(judge(Some(0), "correct", LimitKind::Hard), Ok(true));
        assert_eq!(judge(Some(1), "raise it (ulimit -n)", LimitKind::Hard), Ok(false));
        assert!(judge(Some(1), "Too many open files", LimitKind::Hard).is_err());
        assert_eq!(judge(Some(1), "Too many open files", LimitKind::Soft), Ok(false));
        let peer = "receiving the segment: Connection reset by peer";
        assert!(judge(Some(58), peer, LimitKind::Hard).is_err());
        assert!(judge(Some(124), "ulimit -n", LimitKind::Hard).is_err());
        assert!(judge(Some(134), "thread panicked: ulimit -n", LimitKind::Hard).is_err());
    }
}
