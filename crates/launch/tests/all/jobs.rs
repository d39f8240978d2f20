//! The view of a job: ranks, values, directories, variables, processors, input. And the output that the user sees.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::common::{mpiexec, rank, run, stderr, stdout};

#[test]
fn ranks_join_and_exchange_values() {
    for size in ["1", "2", "5", "16", "33"] {
        let (code, lines, errors) =
            run(&["-n", size, "RANK", "init", "who", "exchange", "finalize"]);
        assert_eq!((code, errors.as_str()), (Some(0), ""));
        let mut expected: Vec<String> =
            (0..size.parse::<usize>().unwrap()).map(|rank| format!("{rank} of {size}")).collect();
        expected.sort();
        assert_eq!(lines, expected);
    }
}

#[test]
fn a_program_without_mpiexec_is_a_world_of_one() {
    let output = Command::new(rank())
        .args(["init", "who", "exchange", "finalize"])
        .env_remove("WEFT_LAUNCH")
        .output()
        .unwrap();
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("0 of 1\n", Some(0)));
}

#[test]
fn another_launcher_is_named_and_refused() {
    let output = Command::new(rank())
        .args(["init", "who"])
        .envs([("PMI_RANK", "1"), ("PMI_SIZE", "4")])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(9));
    let errors = stderr(&output);
    assert!(errors.contains("PMI_SIZE=4") && errors.contains("mpiexec"), "{errors}");
}

#[test]
fn variables_of_an_outer_launcher_do_not_reach_the_ranks() {
    let line = ["-n", "2", "RANK", "init", "exchange", "child", "init", "who"];
    let mut command = mpiexec(&[&line[..], &["finalize"]].concat());
    let output = command.envs([("PMI_RANK", "0"), ("PMI_SIZE", "4")]).output().unwrap();
    assert!(stdout(&output).lines().all(|line| line == "0 of 1"), "{}", stdout(&output));
}

#[test]
fn a_child_of_a_rank_is_a_world_of_its_own() {
    let line = ["-n", "2", "RANK", "init", "who", "exchange", "finalize", "child", "init", "who"];
    let (code, lines, errors) = run(&line);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert_eq!(lines, ["0 of 1", "0 of 1", "0 of 2", "1 of 2"]);
}

#[test]
fn a_stale_copy_of_the_variable_below_a_rank_is_a_world_of_its_own() {
    // Python starts children with os.environ, a copy of the environment from before MPI_Init.
    let (_, lines, errors) = run(&["-n", "1", "RANK", "init", "exchange", "stale", "init", "who"]);
    assert_eq!(lines, ["0 of 1"], "{errors}");
    let line = ["-n", "2", "RANK", "init", "exchange", "finalize", "stale", "init", "who"];
    assert_eq!(run(&line), (Some(0), vec!["0 of 1".to_string(); 2], String::new()));
}

#[test]
fn joining_needs_no_descriptor() {
    // Python closes all descriptors of its children.
    let script = "import subprocess, sys\n\
                  subprocess.run([sys.argv[1], 'init', 'who', 'exchange', 'finalize'], check=True)";
    let program = rank();
    let (code, lines, errors) =
        run(&["-n", "2", "python3", "-c", script, program.to_str().unwrap()]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert_eq!(lines, ["0 of 2", "1 of 2"]);
}

#[test]
fn a_script_may_run_one_mpi_program_after_the_other() {
    let script = r#""$0" init who exchange finalize && "$0" init job exchange finalize"#;
    let program = rank();
    let (code, lines, errors) = run(&["-n", "3", "sh", "-c", script, program.to_str().unwrap()]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert_eq!(lines[..3], ["0 of 3", "1 of 3", "2 of 3"]);
    assert!(lines[3].ends_with(".1") && lines[3] == lines[5], "{lines:?}");
}

#[test]
fn two_programs_at_once_cannot_be_one_rank() {
    let script = r#"{ "$0" init say joined sleep & } | { read joined; "$0" init || exit 3; }"#;
    let program = rank();
    let (code, _, errors) = run(&["-n", "1", "sh", "-c", script, program.to_str().unwrap()]);
    assert_eq!(code, Some(3));
    assert!(errors.contains("Only one MPI program at a time"), "{errors}");
}

#[test]
fn programs_between_colons() {
    let (code, lines, errors) = run(&[
        "-n", "1", "RANK", "init", "who", "app", "exchange", "finalize", ":", "-n", "2", "RANK",
        "init", "who", "app", "exchange", "finalize",
    ]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert_eq!(lines, ["0 of 3", "1 of 3", "2 of 3", "app Some(0)", "app Some(1)", "app Some(1)"]);
}

#[test]
fn variables_and_directory() {
    let line = ["-genv", "A", "1", "-n", "1", "-x", "B=2=3", "-wdir", "/", "sh", "-c"];
    let script = r#"echo "$A $B $PWD ${WEFT_TIMEOUT-unset}""#;
    let (code, lines, _) = run(&[&line[..], &[script]].concat());
    assert_eq!((code, lines), (Some(0), vec!["1 2=3 / unset".to_string()]));
    let (code, _, errors) = run(&["-wdir", "/no/such", "true"]);
    assert_eq!(code, Some(127));
    assert!(errors.contains("directory /no/such: No such file"), "{errors}");
}

#[test]
fn input_goes_to_rank_0_alone() {
    let mut child = mpiexec(&["-l", "-n", "3", "RANK", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "[0] one\n[0] two\n");
}

#[test]
fn lines_stay_whole() {
    let script =
        "for i in $(seq 200); do printf 'aaaaaaaaaaaaaaaaaaaa'; printf '%s\\n' bbbbbbbb; done";
    let (code, lines, _) = run(&["-n", "4", "sh", "-c", script]);
    assert_eq!((code, lines.len()), (Some(0), 800));
    assert!(lines.iter().all(|line| line == "aaaaaaaaaaaaaaaaaaaabbbbbbbb"));
}

#[test]
fn a_lot_of_output_arrives_complete_and_in_order() {
    let script = "seq 100000";
    let output = mpiexec(&["-l", "-n", "2", "sh", "-c", script]).output().unwrap();
    for rank in 0..2 {
        let tag = format!("[{rank}] ");
        let text = stdout(&output);
        let numbers = text.lines().filter_map(|line| line.strip_prefix(&tag));
        assert!(numbers.eq((1..=100_000).map(|n| n.to_string())), "rank {rank}");
    }
}

#[test]
fn an_unfinished_line_is_written_after_a_pause_and_at_the_end() {
    let mut job = crate::common::Job::start(&[
        "-n", "2", "RANK", "init", "only", "0", "write", "name? ", "sleep",
    ]);
    let said = crate::common::Job::wait_for(job.0.stdout.as_mut().unwrap(), "name? ");
    assert_eq!(said, "name? ");
    drop(job);
    let (_, lines, _) = run(&["-n", "2", "printf", "end"]);
    assert_eq!(lines, ["end", "end"]);
}

#[test]
fn a_reader_that_goes_away_ends_the_job_silently() {
    let mut job = crate::common::Job::start(&["-n", "2", "sh", "-c", "while echo y; do :; done"]);
    job.0.stdout.as_mut().unwrap().read_exact(&mut [0; 1000]).unwrap();
    drop(job.0.stdout.take());
    let mut errors = String::new();
    job.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(!job.0.wait().unwrap().success());
    assert!(!errors.contains("rank"), "{errors}");
}

#[test]
fn ranks_are_spread_when_they_fit_and_free_when_not() {
    let allowed = |line: &[&str]| {
        let script = "grep Cpus_allowed_list /proc/self/status";
        let (code, lines, _) = run(&[line, &["sh", "-c", script]].concat());
        assert_eq!(code, Some(0));
        lines
    };
    let whole = &allowed(&["-n", "1"])[0];
    let processors = std::thread::available_parallelism().unwrap().get();
    let many = (processors + 1).to_string();
    assert!(allowed(&["-n", &many]).iter().all(|list| list == whole));
    assert!(allowed(&["-n", "2", "--bind-to", "none"]).iter().all(|list| list == whole));
    let (_, _, errors) = run(&["-n", "2", "--report-bindings", "true"]);
    // The plan has the processors. Without two cores no rank is bound.
    let mut two = allowed(&["-n", "2"]);
    two.dedup();
    let bound = !errors.contains("all processors");
    assert_eq!(two.len() == 2 && !two.contains(whole), bound, "{two:?} of {whole}: {errors}");
}

#[test]
fn no_descriptor_of_mpiexec_reaches_a_rank() {
    // Descriptors that the test's parents have left open do not count.
    let script = "ls -l /proc/self/fd | grep -E 'socket:|memfd|signalfd' || echo none";
    let output = mpiexec(&["-n", "2", "sh", "-c", script]).output().unwrap();
    assert_eq!(stdout(&output), "none\nnone\n");
}

#[test]
fn words_for_wrong_lines() {
    for (line, words) in [
        (&["-n", "two", "true"][..], "\"two\""),
        (&["--frob", "true"], "--frob"),
        (&["-n", "2"], "no program"),
    ] {
        let (code, _, errors) = run(line);
        assert_eq!(code, Some(2), "{line:?}");
        assert!(errors.starts_with("mpiexec: ") && errors.contains(words), "{errors}");
    }
    let (code, _, errors) = run(&["--launch-agent", "false", "-host", "moon", "true"]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("cannot reach host moon") && errors.contains("tried: false"),
        "{errors}"
    );
    let (code, lines, _) = run(&["--version"]);
    assert!(code == Some(0) && lines[0].contains("Weft"));
}
