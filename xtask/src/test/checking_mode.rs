//! The checking mode of `mpiexec -check`: erroneous programs whose error must be named with its class and its lines, and correct programs
//! that must run without a report. They are in the tables of `tests/check`.

mod poison;
mod waits;

use super::c_programs::{compile, folder, list};
use super::lanes::two_at_a_time;
use super::tally::Tally;
use crate::root;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Exit code of a program with findings.
const FINDINGS: i32 = 70;

/// Programs of `tests/check/kinds.c` by the class of their error. Correct programs have no class.
const KINDS: &[(&str, &[&str])] = &[
    (
        "type mismatch",
        &[
            "send_ints_as_double",
            "isend_floats_as_ints",
            "persistent_with_other_type",
            "matched_receive_of_other_type",
            "structure_with_other_order",
            "longer_receive_of_other_type",
            "large_send_of_other_type",
            "early_message_of_other_type",
            "types_change_in_one_call",
            "sendrecv_of_other_type",
            "replace_with_other_type",
            "isendrecv_of_other_type",
            "buffered_send_of_other_type",
            "nonblocking_matched_receive_of_other_type",
            "message_on_nonblocking_copy",
            "message_on_communicator_from_group",
            "message_on_intercommunicator",
            "message_from_spawned_child",
            "partitioned_of_other_type",
        ],
    ),
    (
        "collective mismatch",
        &[
            "roots_differ",
            "operators_differ",
            "types_differ_in_reduce",
            "lengths_differ",
            "operations_differ",
            "nonblocking_roots_differ",
            "nonblocking_order_differs",
            "gather_of_other_type",
        ],
    ),
    (
        "buffer in use",
        &[
            "two_receives_in_one_buffer",
            "receive_into_memory_that_is_sent",
            "reduce_into_its_operand",
        ],
    ),
    ("buffer changed", &["buffer_changed"]),
    (
        "request not completed",
        &["send_not_completed", "persistent_not_freed", "partitioned_not_freed"],
    ),
    ("message not received", &["message_not_received", "message_not_received_on_copy"]),
    (
        "object not freed",
        &[
            "communicator_not_freed",
            "datatype_not_freed",
            "group_not_freed",
            "operator_not_freed",
            "window_not_freed",
        ],
    ),
    (
        "",
        &[
            "messages",
            "wildcards",
            "cancelled_receive",
            "cancelled_send",
            "sends_of_all_modes",
            "messages_on_communicators",
            "spawned_child",
            "errors_are_returned",
            "handles_are_used_again",
            "collectives",
            "objects",
        ],
    ),
];

/// A program of a catalogue.
#[derive(PartialEq, Debug)]
struct CatalogueProgram {
    name: String,
    /// Class of the program's error; empty for correct programs.
    class: String,
    ranks: usize,
    /// Lines that the report must name.
    lines: Vec<usize>,
}

/// Reads the programs of a catalogue: heads such as `ERRONEOUS(name, "class", 2) {`, and lines that end in `// named`.
fn catalogue(text: &str) -> Result<Vec<CatalogueProgram>, String> {
    let mut programs: Vec<CatalogueProgram> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let is_head = line.starts_with("ERRONEOUS(") || line.starts_with("CORRECT(");
        if is_head {
            programs.push(head(line).ok_or(format!("line {number}: not a head: {line}"))?);
        } else if line.ends_with("// named") {
            let program = programs.last_mut().ok_or(format!("line {number}: before all heads"))?;
            program.lines.push(number);
        }
    }
    match programs.iter().find(|p| p.class.is_empty() != p.lines.is_empty()) {
        Some(wrong) => Err(format!("{}: only erroneous programs have lines to name", wrong.name)),
        None => Ok(programs),
    }
}

/// Reads the head of a program.
fn head(line: &str) -> Option<CatalogueProgram> {
    let (_, rest) = line.split_once('(')?;
    let (arguments, _) = rest.split_once(") {")?;
    let arguments: Vec<_> = arguments.split(", ").collect();
    let (name, class, ranks) = match arguments[..] {
        [name, ranks] if line.starts_with("CORRECT") => (name, "", ranks),
        [name, class, ranks] if line.starts_with("ERRONEOUS") => (name, class, ranks),
        _ => return None,
    };
    let (name, class) = (name.to_owned(), class.trim_matches('"').to_owned());
    Some(CatalogueProgram { name, class, ranks: ranks.parse().ok()?, lines: Vec::new() })
}

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    kinds(prefix, tally)?;
    let mut total = 0;
    for source in list(&root().join("tests/check"), "c")? {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name == "kinds" {
            continue;
        }
        let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        let programs = catalogue(&text).map_err(|e| format!("{}: {e}", source.display()))?;
        let program = folder()?.join(format!("check-{name}"));
        compile(prefix, &source, &program)?;
        let results = two_at_a_time(&programs, |entry| {
            let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
            mpiexec.args(["-check", "--timeout", "60", "-n", &entry.ranks.to_string()]);
            mpiexec.arg(&program).arg(&entry.name);
            let verdict = match entry.class.as_str() {
                "" => judge("", mpiexec),
                class => names(class, &format!("{name}.c"), &entry.lines, mpiexec),
            };
            verdict.map_err(|why| format!("mpiexec -check, {name}.c, {}: {why}", entry.name))
        });
        results.into_iter().collect::<Result<(), String>>()?;
        total += programs.len();
    }
    if total == 0 {
        return Err("tests/check has no catalogue".to_owned());
    }
    suppressions(prefix)?;
    tally.passed += poison::run(prefix)?;
    tally.passed += waits::run(prefix)?;
    println!("ok   {total} programs of the catalogue in the checking mode");
    tally.passed += total + 1;
    Ok(())
}

/// Tests that ranks print an error once, that a suppressed error is not printed, and that a class which does not exist is an error.
fn suppressions(prefix: &Path) -> Result<(), String> {
    let program = folder()?.join("check-objects");
    let file = folder()?.join("check-suppressions");
    let job = |text: Option<&str>| {
        let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
        mpiexec.args(["-check", "--timeout", "60", "-n", "2"]);
        if let Some(text) = text {
            fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
            mpiexec.arg("-check-suppress").arg(&file);
        }
        let output = mpiexec.arg(&program).arg("dup_left").output().map_err(|e| e.to_string())?;
        let all = [output.stdout, output.stderr].concat();
        Ok::<_, String>((output.status.code(), String::from_utf8_lossy(&all).into_owned()))
    };
    let (code, text) = job(None)?;
    let times = text.matches("1 communicator not freed").count();
    if code != Some(FINDINGS) || times != 1 || !text.contains("1 other rank has the same") {
        return Err(format!("mpiexec -check, two ranks with an error: {code:?}\n{text}"));
    }
    let (code, text) = job(Some("# known\nobject not freed: dup_left (objects.c\n"))?;
    if code != Some(0) || text.contains("weft check:") {
        return Err(format!("mpiexec -check-suppress: {code:?}\n{text}"));
    }
    let (code, text) = job(Some("object not free: *\n"))?;
    if code == Some(0) || !text.contains("line 1: no class 'object not free'") {
        return Err(format!("mpiexec -check-suppress with a wrong class: {code:?}\n{text}"));
    }
    Ok(())
}

/// Returns an error unless a job fails, and all of its reports have a class, and they name all lines.
fn names(class: &str, file: &str, lines: &[usize], mut mpiexec: Command) -> Result<(), String> {
    let output = mpiexec.output().map_err(|e| e.to_string())?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let mut headings = text.lines().filter_map(|line| line.split_once("weft check: "));
    let is_named = |line: &usize| text.contains(&format!("({file}:{line})"));
    let is_class = headings.clone().next().is_some() && headings.all(|(_, named)| named == class);
    // The library may end the job after the report, with the code of an error class.
    let has_failed = output.status.code().is_some_and(|code| code != 0);
    if has_failed && is_class && lines.iter().all(is_named) {
        return Ok(());
    }
    let code = output.status.code();
    Err(format!("exit code {code:?}, expected '{class}' at lines {lines:?}:\n{text}"))
}

/// Runs the programs of `tests/check/kinds.c`.
fn kinds(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let source = root().join("tests/check/kinds.c");
    let program = folder()?.join("check-kinds");
    compile(prefix, &source, &program)?;
    let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    let kinds: Vec<_> = KINDS
        .iter()
        .flat_map(|(class, names)| names.iter().map(move |name| (*class, *name)))
        .collect();
    let listed = text.matches("KIND(").count() - 1;
    if listed != kinds.len() {
        return Err(format!(
            "tests/check/kinds.c has {listed} programs, {} are listed here",
            kinds.len()
        ));
    }
    let results = two_at_a_time(&kinds, |&(class, name)| {
        let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
        mpiexec.args(["-check", "--timeout", "60", "-n", "2"]).arg(&program).arg(name);
        judge(class, mpiexec).map_err(|why| format!("mpiexec -check, {name}: {why}"))
    });
    results.into_iter().collect::<Result<(), String>>()?;
    println!("ok   {} programs in the checking mode", kinds.len());
    tally.passed += kinds.len();
    Ok(())
}

/// Compares the end of a job with the end that is expected.
fn judge(class: &str, mut mpiexec: Command) -> Result<(), String> {
    let output = mpiexec.output().map_err(|e| e.to_string())?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let headings: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_once("weft check: "))
        .map(|(_, class)| class)
        .collect();
    let names_line = text.lines().any(|line| line.contains(" at ") && line.contains("kinds.c:"));
    let is_right = match class {
        "" => output.status.code() == Some(0) && headings.is_empty() && text.contains("end\n"),
        class => {
            let all = !headings.is_empty() && headings.iter().all(|heading| *heading == class);
            output.status.code() == Some(FINDINGS) && all && names_line
        }
    };
    let code = output.status.code();
    if is_right { Ok(()) } else { Err(format!("exit code {code:?}, expected '{class}':\n{text}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_has_heads_and_lines() {
        let text = "ERRONEOUS(two_roots, \"collective mismatch\", 3) {\n    call();  // named\n}\nCORRECT(one_root, 2) {\n}\n";
        let programs = catalogue(text).expect("a catalogue");
        let wanted = |name: &str, class: &str, ranks, lines| CatalogueProgram {
            name: name.to_owned(),
            class: class.to_owned(),
            ranks,
            lines,
        };
        let first = wanted("two_roots", "collective mismatch", 3, vec![2]);
        assert_eq!(programs, [first, wanted("one_root", "", 2, vec![])]);
        assert!(catalogue("ERRONEOUS(no_line, \"class\", 2) {\n}\n").is_err());
        assert!(catalogue("CORRECT(a_line, 2) {\n    call();  // named\n}\n").is_err());
        assert!(catalogue("ERRONEOUS(no_class, 2) {\n").is_err());
    }
}
