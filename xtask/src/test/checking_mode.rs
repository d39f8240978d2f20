//! The checking mode of `mpiexec -check`: erroneous programs whose error must be named with its class and its lines, and correct programs
//! that must run without a report.

use super::c_programs::{compile, folder};
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

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
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
