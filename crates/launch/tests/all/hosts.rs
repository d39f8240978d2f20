//! Jobs on several hosts, all of which are this machine under different names: a script in place of ssh ignores the name.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Job, agent, eventually, mark, marked, mpiexec, stderr, stdout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Returns the command line of a job on two hosts.
fn on_two<'a>(agent: &'a str, line: &[&'a str]) -> Vec<&'a str> {
    [&["--launch-agent", agent, "--hosts", "localhost:2,127.0.0.1:2"][..], line].concat()
}

fn run(line: &[&str]) -> Output {
    mpiexec(&on_two(&agent(), line)).output().expect("mpiexec runs")
}

fn sorted(output: &Output) -> Vec<String> {
    let mut lines: Vec<String> = stdout(output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn ranks_of_all_hosts_exchange_values() {
    for size in [1, 2, 4, 33] {
        let count = size.to_string();
        let output = run(&["-n", &count, "RANK", "init", "who", "exchange", "finalize"]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        let mut expected: Vec<String> = (0..size).map(|rank| format!("{rank} of {size}")).collect();
        expected.sort();
        assert_eq!(sorted(&output), expected);
    }
}

#[test]
fn several_programs_one_after_the_other_can_be_the_rank() {
    let line =
        ["-n", "4", "sh", "-c", "$0 init exchange finalize && $0 init who exchange finalize"];
    let rank = crate::common::rank();
    let output = run(&[&line[..], &[rank.to_str().unwrap()]].concat());
    assert_eq!((output.status.code(), sorted(&output).len()), (Some(0), 4), "{}", stderr(&output));
}

#[test]
fn ranks_take_slots_in_order_or_hosts_in_turn() {
    for (map, rank, host) in [
        ("slot", "1", "localhost"),
        ("slot", "2", "127.0.0.1"),
        ("node", "1", "127.0.0.1"),
        ("node", "2", "localhost"),
    ] {
        let line = ["--map-by", map, "-n", "4", "RANK", "init", "exchange", "only", rank];
        let errors = stderr(&run(&[&line[..], &["die", "9"]].concat()));
        assert!(errors.contains(&format!("rank {rank} (rank) on {host} ")), "{map}: {errors}");
    }
}

#[test]
fn nodes_are_machines_and_not_names_unless_the_setting_says_so() {
    let line = ["-n", "4", "RANK", "init", "nodes", "exchange", "finalize"];
    assert_eq!(sorted(&run(&line)), vec!["nodes [0, 0, 0, 0]"; 4]);
    for (setting, nodes) in [("2", "nodes [0, 0, 1, 1]"), ("0,1,1,0", "nodes [0, 1, 1, 0]")] {
        let agent = agent();
        let mut command = mpiexec(&on_two(&agent, &line));
        let output = command.env("WEFT_NODES", setting).output().unwrap();
        assert_eq!(sorted(&output), vec![nodes; 4], "{}", stderr(&output));
    }
}

#[test]
fn the_first_failure_gives_code_and_line() {
    for (verbs, code, words) in [
        (&["exit", "3"][..], 3, "rank 2 (rank) on 127.0.0.1 ended with exit code 3"),
        (&["die", "11"], 139, "rank 2 (rank) on 127.0.0.1 was killed by SIGSEGV"),
        (&["die", "15"], 143, "rank 2 (rank) on 127.0.0.1 was killed by SIGTERM"),
        (&["abort", "5", "over"], 5, "rank 2 (rank) on 127.0.0.1 aborted with code 5: over"),
        (&["exit", "0"], 1, "without calling MPI_Finalize"),
    ] {
        let line = ["-n", "4", "RANK", "init", "exchange", "only", "2"];
        let output = run(&[&line[..], verbs].concat());
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.lines().count() == 1 && errors.contains(words), "{errors}");
    }
}

#[test]
fn a_failure_is_reported_rather_than_the_failures_that_follow_from_it() {
    // The applications are on different hosts.
    let output = run(&[
        "-n",
        "2",
        "RANK",
        "init",
        "exchange",
        "only",
        "0",
        "abort",
        "58",
        "rank 2 is gone",
        ":",
        "-n",
        "2",
        "RANK",
        "init",
        "exchange",
        "only",
        "2",
        "pause",
        "20",
        "die",
        "11",
    ]);
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(139), "{errors}");
    let words = "rank 2 (rank) on 127.0.0.1 was killed by SIGSEGV";
    assert!(errors.lines().count() == 1 && errors.contains(words), "{errors}");
}

#[test]
fn a_rank_that_others_on_another_host_wait_for_is_named() {
    let output = run(&["-n", "3", "RANK", "init", "fence", "finalize", ":", "true"]);
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    let words = "rank 3 (true) on 127.0.0.1 ended with exit code 0, but rank";
    assert!(errors.contains(words), "{errors}");
}

#[test]
fn a_program_that_cannot_start_is_named_with_its_host() {
    let output = run(&["-n", "3", "sleep", "1000", ":", "no-such-program"]);
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(127));
    assert!(errors.contains("\"no-such-program\" (rank 3) on 127.0.0.1: No such file"), "{errors}");
}

#[test]
fn a_program_that_cannot_start_is_named_as_it_was_given() {
    let words = "cannot start \"/no/such/program\" (rank 0)";
    let here = stderr(&mpiexec(&["-n", "2", "/no/such/program"]).output().unwrap());
    let there = stderr(&run(&["-n", "2", "/no/such/program"]));
    assert!(here.contains(words) && there.contains(words), "{here}{there}");
}

#[test]
fn agents_of_other_versions_are_told_at_once() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(mark("version"));
    // The agent prints no more, and does not end.
    fs::write(&path, "echo welcome\necho weft agent 1\nexec sleep 1000\n").unwrap();
    let agent = format!("sh {}", path.display());
    let line =
        ["--launch-timeout", "900", "--launch-agent", &agent, "-H", "a,b", "-n", "2", "true"];
    let output = mpiexec(&line).output().unwrap();
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    let words = ": another version of Weft answers there: it printed \"weft agent 1\"";
    assert!(errors.contains(words) && errors.contains(&agent), "{errors}");
    let _ = fs::remove_file(path);
}

#[test]
fn hosts_that_cannot_be_reached_are_named_with_the_command() {
    let run = |line: &[&str]| {
        let output = mpiexec(line).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let (code, errors) = run(&["--launch-agent", "false x", "-H", "a,b", "-n", "2", "true"]);
    assert_eq!(code, Some(1));
    // Either failure may be reported first.
    let named =
        |host| format!("host {host}: the command ended with exit code 1; tried: false x {host} ");
    assert!(["a", "b"].into_iter().any(|host| errors.contains(&named(host))), "{errors}");
    let (_, errors) = run(&["--launch-agent", "/no/such", "-H", "a", "true"]);
    assert!(errors.contains("host a: /no/such a ") && errors.contains("No such file"), "{errors}");
    // Another program answers, or none.
    let (_, errors) = run(&["--launch-agent", "echo what", "-H", "a", "true"]);
    assert!(errors.contains("printed \"what a "), "{errors}");
    let silent =
        ["--launch-timeout", "0.3", "--launch-agent", "sh -c cat>/dev/null", "-H", "a", "true"];
    let (code, errors) = run(&silent);
    assert_eq!(code, Some(1));
    assert!(errors.contains("host a has not answered within 0.3 s; tried: sh -c"), "{errors}");
}

#[test]
fn greetings_of_a_login_shell_do_no_harm() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(mark("greeting"));
    fs::write(&path, "echo welcome\necho weft agent\nshift\nexec sh -c \"$*\"\n").unwrap();
    let agent = format!("sh {}", path.display());
    let line =
        ["--launch-agent", &agent, "-H", "a,b", "-n", "2", "RANK", "init", "who", "finalize"];
    let output = mpiexec(&line).output().unwrap();
    assert_eq!(sorted(&output), ["0 of 2", "1 of 2"], "{}", stderr(&output));
    let _ = fs::remove_file(path);
}

#[test]
fn host_files_and_variables() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(mark("hostfile"));
    fs::write(&path, "a slots=1 max-slots=1 # one\nb slots=1\n").unwrap();
    let file = path.to_str().unwrap();
    let agent = agent();
    let script = ["sh", "-c", "echo $HERE-$ALL-$SSH_CONNECTION-$(pwd)"];
    let line =
        ["--launch-agent", &agent, "--hostfile", file, "-x", "HERE=1", "-wdir", "/tmp", "-n", "3"];
    let mut command = mpiexec(&[&line[..], &script].concat());
    let output = command.envs([("ALL", "2"), ("SSH_CONNECTION", "3")]).output().unwrap();
    // All variables of mpiexec are passed on, except those of its own session.
    assert_eq!(sorted(&output), vec!["1-2--/tmp"; 3], "{}", stderr(&output));
    fs::write(&path, "a max-slots=1\nb max-slots=1\n").unwrap();
    let output =
        mpiexec(&["--launch-agent", &agent, "-f", file, "-n", "3", "true"]).output().unwrap();
    assert!(stderr(&output).contains("3 processes are more"), "{}", stderr(&output));
    let _ = fs::remove_file(path);
}

#[test]
fn input_goes_to_rank_0_and_ends_there() {
    let text = "line of input\n".repeat(50_000);
    let agent = agent();
    let mut command = mpiexec(&on_two(&agent, &["-n", "3", "RANK", "cat"]));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let copy = text.clone();
    let writer = std::thread::spawn(move || stdin.write_all(copy.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    assert!(stdout(&output) == text, "{} of {} bytes", output.stdout.len(), text.len());
}

#[test]
fn output_is_whole_and_tagged() {
    let script = "for i in $(seq 3000); do echo line $i of a rank; done; echo oops >&2";
    let output = run(&["-l", "-n", "4", "sh", "-c", script]);
    let lines = sorted(&output);
    assert_eq!(lines.len(), 12_000);
    for rank in 0..4 {
        let of_rank = format!("[{rank}] line ");
        assert_eq!(lines.iter().filter(|line| line.starts_with(&of_rank)).count(), 3000);
    }
    assert_eq!(stderr(&output).lines().count(), 4);
}

#[test]
fn output_that_nobody_reads_is_not_gathered_and_a_closed_one_ends_the_job() {
    // The ranks write 400 MB to a reader that takes one line.
    let script = "exec yes a line of output that is repeated for ever";
    let agent = agent();
    let line = on_two(&agent, &["-n", "4", "sh", "-c", script]);
    let mut command = mpiexec(&line);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    Job::wait_for(&mut out, "repeated for ever\n");
    std::thread::sleep(Duration::from_millis(300));
    let all = fs::read_to_string(format!("/proc/{}/task/{0}/children", child.id())).unwrap();
    let supervisor: i32 = all.split_whitespace().next().unwrap().parse().unwrap();
    let status = fs::read_to_string(format!("/proc/{supervisor}/status")).unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kilobytes < 64 * 1024, "{kilobytes} kB of unread output are kept");
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}

#[test]
fn the_death_of_any_part_takes_all_ranks_with_it() {
    // The processes are mpiexec itself, its supervisor, an agent's foreground process, and an agent's supervisor.
    for victim in ["mpiexec", "supervisor", "agent", "agent's supervisor"] {
        let mark = mark(&format!("death-of-{}", victim.replace([' ', '\''], "-")));
        let agent = agent();
        let line = ["-n", "4", "RANK", "init", "exchange", "say", "here", "sleep", &mark];
        let mut job = Job::start(&on_two(&agent, &line));
        let mut out = job.0.stdout.take().unwrap();
        for _ in 0..4 {
            Job::wait_for(&mut out, "here\n");
        }
        assert_eq!(marked(&mark).len(), 4);
        let children = |pid: i32| -> Vec<i32> {
            let all = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            all.unwrap().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
        };
        let is_agent = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
            line.split(|&byte| byte == 0).any(|word| word == b"--agent")
        };
        let foreground = job.0.id() as i32;
        let supervisor = children(foreground)[0];
        let agent = children(supervisor).into_iter().find(is_agent).unwrap();
        let pid = match victim {
            "mpiexec" => foreground,
            "supervisor" => supervisor,
            "agent" => agent,
            _ => children(agent)[0],
        };
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        let began = Instant::now();
        eventually("no rank is left", || marked(&mark).is_empty());
        eventually("mpiexec ends", || job.0.try_wait().unwrap().is_some());
        assert!(began.elapsed() < Duration::from_secs(20), "{victim}: {:?}", began.elapsed());
        if victim.starts_with("agent") {
            let mut errors = String::new();
            std::io::Read::read_to_string(&mut job.0.stderr.take().unwrap(), &mut errors).unwrap();
            assert!(errors.contains("host localhost is lost"), "{victim}: {errors}");
        }
    }
}

#[test]
fn signals_reach_the_ranks_and_an_interrupt_ends_the_job() {
    let mark = mark("hosts-signals");
    let script = "trap 'echo user' USR1; echo ready; while :; do sleep 0.05; done";
    let agent = agent();
    let line = ["-n", "2", "-N", "1", "sh", "-c", script, &mark];
    let mut job = Job::start(&on_two(&agent, &line));
    let mut out = job.0.stdout.take().unwrap();
    Job::wait_for(&mut out, "ready\n");
    Job::wait_for(&mut out, "ready\n");
    job.signal(Signal::SIGUSR1);
    Job::wait_for(&mut out, "user\n");
    Job::wait_for(&mut out, "user\n");
    job.signal(Signal::SIGTSTP);
    let stopped = |pid: &i32| crate::common::is_stopped(*pid);
    eventually("the ranks stop", || marked(&mark).iter().all(stopped));
    job.signal(Signal::SIGCONT);
    eventually("the ranks go on", || !marked(&mark).iter().any(stopped));
    job.signal(Signal::SIGINT);
    job.0.stdout = Some(out);
    let (status, _, errors) = job.end();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(Signal::SIGINT as i32), "{errors}");
    assert!(errors.contains("SIGINT: ending the job"), "{errors}");
    eventually("no rank is left", || marked(&mark).is_empty());
}

#[test]
fn a_time_out_reports_the_ranks_of_all_hosts() {
    let line = ["--timeout", "1.5", "-n", "4", "RANK", "init", "exchange", "recv", "1", "sleep"];
    let output = run(&line);
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(124), "{errors}");
    assert!(errors.contains("rank 0 (rank on localhost, process"), "{errors}");
    assert!(errors.contains("rank 3 (rank on 127.0.0.1, process"), "{errors}");
    assert!(errors.contains("these wait for each other: 0 -> 1 -> 2 -> 3 -> 0"), "{errors}");
    assert!(errors.contains("not ended within 1.5 s"), "{errors}");
}

#[test]
fn no_secret_is_on_a_command_line() {
    let agent = agent();
    let script = "echo ticket $WEFT_LAUNCH end; exec sleep 1000";
    let mut job = Job::start(&on_two(&agent, &["-n", "3", "sh", "-c", script]));
    let mut out = job.0.stdout.take().unwrap();
    let said = Job::wait_for(&mut out, " end\n");
    let token = said.trim_end_matches(" end\n").rsplit(',').next().unwrap();
    assert!(token.len() == 32 && token.chars().all(|c| c.is_ascii_hexdigit()), "{said}");
    let processes = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let lines = stdout(&processes);
    assert!(lines.lines().any(|line| line.ends_with(" --agent")), "{lines}");
    assert!(!lines.contains(token));
}
