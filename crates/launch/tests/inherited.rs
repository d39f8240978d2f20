//! Attributes that `mpiexec` inherits: ignored and blocked signals, closed descriptors, limits, a strange environment. Jobs run and
//! end as usual, and ranks inherit the same attributes as without `mpiexec`.

mod common;

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use common::{agent, eventually, mark, marked, mpiexec, stderr, stdout};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal, sigprocmask};
use nix::unistd::Pid;

/// Time-out of a job, so that no test runs for ever.
const GUARD: Duration = Duration::from_secs(60);

/// Attributes with which a shell could start `mpiexec`.
#[derive(Clone, Debug, Default)]
struct Start {
    ignored: Vec<Signal>,
    blocked: Vec<Signal>,
    closed: Vec<i32>,
    umask: Option<u32>,
    limits: Vec<(i32, u64)>,
    environment: Option<Vec<(&'static [u8], &'static [u8])>>,
    /// A directory that is removed while it is the working one.
    removed: Option<CString>,
}

impl Start {
    /// Returns `command` with these attributes.
    fn apply(&self, command: &mut Command) {
        if let Some(variables) = &self.environment {
            command.env_clear();
            let text = OsStr::from_bytes;
            command.envs(variables.iter().map(|(name, value)| (text(name), text(value))));
        }
        let start = self.clone();
        let prepare = move || {
            for &number in &start.ignored {
                // SAFETY: `signal` is unsafe only for handlers. SIG_IGN and SIG_DFL are none.
                unsafe { signal(number, SigHandler::SigIgn) }?;
            }
            let blocked: SigSet = start.blocked.iter().copied().collect();
            sigprocmask(SigmaskHow::SIG_BLOCK, Some(&blocked), None)?;
            for &number in &start.closed {
                // SAFETY: descriptors 0 to 2 of this process, which is about to be another program.
                unsafe { libc::close(number) };
            }
            if let Some(mask) = start.umask {
                // SAFETY: no pointers.
                unsafe { libc::umask(mask) };
            }
            for &(limit, value) in &start.limits {
                let value = libc::rlimit { rlim_cur: value, rlim_max: value };
                // SAFETY: a limit, read during the call.
                unsafe { libc::setrlimit(limit as _, &value) };
            }
            if let Some(path) = &start.removed {
                // SAFETY: C strings, read during the calls.
                unsafe {
                    libc::mkdir(path.as_ptr(), 0o700);
                    libc::chdir(path.as_ptr());
                    libc::rmdir(path.as_ptr());
                }
            }
            Ok(())
        };
        // SAFETY: system calls only.
        unsafe { command.pre_exec(prepare) };
    }
}

/// Waits for the end of the job, for a limited time.
fn end(child: &mut Child, what: &dyn std::fmt::Debug) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > GUARD {
            let _ = child.kill();
            panic!("mpiexec does not end: {what:?}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[derive(Clone, Copy, Debug)]
enum Run {
    True,
    False,
    Exchange,
    Ended,
}

/// Runs a job with these attributes, and checks its end.
fn run(start: &Start, run: Run, hosts: &[&str]) {
    let what = (start, run, hosts);
    let mark = mark("start");
    let line = match run {
        Run::True => vec!["-n", "2", "/bin/true"],
        Run::False => vec!["-n", "2", "/bin/false"],
        Run::Exchange => vec!["-n", "2", "RANK", "init", "exchange", "finalize"],
        Run::Ended => {
            vec!["--grace", "0.02", "-n", "2", "/bin/sh", "-c", "/bin/sleep 1000; exit", &mark]
        }
    };
    let mut command = mpiexec(&[hosts, &line].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    start.apply(&mut command);
    let mut child = command.spawn().expect("mpiexec runs");
    let send = |signal| kill(Pid::from_raw(child.id() as i32), signal).expect("mpiexec is there");
    let mut expected = Signal::SIGTERM;
    if let Run::Ended = run {
        eventually("the ranks run", || marked(&mark).len() >= 2);
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGKILL] {
            // Signals that were ignored when mpiexec started stay ignored.
            send(signal);
            if !start.ignored.contains(&signal) {
                expected = signal;
                break;
            }
        }
    }
    let status = end(&mut child, &what);
    match run {
        Run::True | Run::Exchange => assert_eq!(status.code(), Some(0), "{what:?}"),
        Run::False => assert_eq!(status.code(), Some(1), "{what:?}"),
        Run::Ended => {
            assert_eq!(status.signal(), Some(expected as i32), "{what:?}");
            eventually("nothing is left", || marked(&mark).is_empty());
        }
    }
}

/// Returns sets of ignored signals: each signal that a shell can trap and that concerns a job, and all of them.
fn dispositions() -> Vec<Vec<Signal>> {
    use Signal::*;
    let all = [SIGCHLD, SIGPIPE, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGTSTP, SIGCONT, SIGTTOU];
    let all = [&all[..], &[SIGTTIN, SIGQUIT, SIGXFSZ, SIGWINCH]].concat();
    let each = all.iter().map(|&signal| vec![signal]);
    [vec![]].into_iter().chain(each).chain([all.clone()]).collect()
}

fn masks() -> Vec<Vec<Signal>> {
    let all = Signal::iterator().filter(|s| !matches!(s, Signal::SIGKILL | Signal::SIGSTOP));
    vec![vec![], vec![Signal::SIGTERM, Signal::SIGCHLD], all.collect()]
}

fn others() -> Vec<Start> {
    let path = b"/usr/bin:/bin";
    let removed = format!("{}/{}", env!("CARGO_TARGET_TMPDIR"), mark("removed"));
    let environment = |variables: &[(&'static [u8], &'static [u8])]| Start {
        environment: Some(variables.to_vec()),
        ..Start::default()
    };
    let limit = |limit, value| Start { limits: vec![(limit, value)], ..Start::default() };
    vec![
        Start::default(),
        Start { umask: Some(0o777), ..Start::default() },
        limit(libc::RLIMIT_NOFILE as i32, 80),
        limit(libc::RLIMIT_CORE as i32, 0),
        limit(libc::RLIMIT_STACK as i32, 1 << 20),
        environment(&[]),
        environment(&[(b"PATH", path), (b"\xff\xfe", b"\x80\xff"), (b"LC_ALL", b"\xffno")]),
        environment(&[(b"PATH", path), (b"=odd", b"=a=b"), (b"A B\n", b""), (b"LANG", b"C")]),
        Start { removed: Some(CString::new(removed).unwrap()), ..Start::default() },
    ]
}

fn subsets() -> Vec<Vec<i32>> {
    (0..8).map(|bits| (0..3).filter(|fd| bits >> fd & 1 == 1).collect()).collect()
}

#[test]
fn jobs_run_and_end_however_mpiexec_was_started() {
    let runs = [Run::True, Run::False, Run::Exchange, Run::Ended];
    let others = others();
    let mut count = 0;
    for ignored in dispositions() {
        for blocked in masks() {
            for closed in subsets() {
                // Every combination occurs, because the lengths of the lists have no common divisor.
                let other = others[count % others.len()].clone();
                let start =
                    Start { ignored: ignored.clone(), blocked: blocked.clone(), closed, ..other };
                run(&start, runs[count % 4], &[]);
                count += 1;
            }
        }
    }
}

#[test]
fn jobs_on_several_hosts_do_too() {
    let agent = agent();
    let hosts = ["--launch-agent", &agent, "--hosts", "localhost:1,127.0.0.1:1"];
    let mut count = 0;
    for ignored in dispositions() {
        for blocked in masks() {
            let closed = subsets()[count % 8].clone();
            let start = Start { ignored: ignored.clone(), blocked, closed, ..Start::default() };
            let runs = [Run::True, Run::Exchange, Run::Ended, Run::False, Run::Exchange];
            run(&start, runs[count % 5], &hosts);
            count += 1;
        }
    }
}

/// Returns a line of /proc/self/status of the ranks, as numbers.
fn told(text: &str, name: &str) -> Vec<u64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(name));
    // Further signals belong to the C library and to the process that has started this test.
    let ordinary = (1 << 31) - 1;
    lines.map(|mask| u64::from_str_radix(mask.trim(), 16).expect(mask) & ordinary).collect()
}

fn bits(signals: &[Signal]) -> u64 {
    signals.iter().fold(0, |bits, &signal| bits | 1 << (signal as i32 - 1))
}

#[test]
fn ranks_get_signals_as_the_shell_gave_them() {
    // On other hosts, ssh decides on the signals.
    for ignored in dispositions() {
        for blocked in masks() {
            let program = ["-n", "2", "grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"];
            let mut command = mpiexec(&program);
            let start =
                Start { ignored: ignored.clone(), blocked: blocked.clone(), ..Start::default() };
            start.apply(&mut command);
            let output = command.output().unwrap();
            let said = stdout(&output);
            // Ctrl-\ asks mpiexec for a report, and its ranks ignore the signal.
            let all = bits(&ignored) | bits(&[Signal::SIGQUIT]);
            assert_eq!(told(&said, "SigIgn:"), [all; 2], "{start:?}: {said}");
            assert_eq!(told(&said, "SigBlk:"), [bits(&blocked); 2], "{start:?}: {said}");
        }
    }
}

#[test]
fn ranks_get_limits_umask_and_variables_as_they_were() {
    let script = "ulimit -n; ulimit -f; ulimit -c; ulimit -s; umask; echo \"$A\"";
    let mut command = mpiexec(&["-n", "2", "sh", "-c", script]);
    let start = Start {
        umask: Some(0o777),
        limits: vec![
            (libc::RLIMIT_NOFILE as i32, 100),
            (libc::RLIMIT_FSIZE as i32, 1 << 30),
            (libc::RLIMIT_CORE as i32, 0),
            (libc::RLIMIT_STACK as i32, 4 << 20),
        ],
        environment: Some(vec![(b"PATH", b"/usr/bin:/bin"), (b"A", b"\xff=\x80")]),
        ..Start::default()
    };
    start.apply(&mut command);
    let output = command.output().unwrap();
    let mut lines: Vec<&[u8]> = output.stdout.split(|&byte| byte == b'\n').collect();
    lines.sort();
    let expected: [&[u8]; 6] = [b"0", b"0777", b"100", b"2097152", b"4096", b"\xff=\x80"];
    let mut expected: Vec<&[u8]> = [b"" as &[u8]].into_iter().chain(expected.repeat(2)).collect();
    expected.sort();
    assert_eq!(lines, expected, "{}", stderr(&output));
}

#[test]
fn of_a_variable_that_is_there_twice_ranks_see_the_first() {
    let agent = agent();
    for place in [&[][..], &["--launch-agent", &agent, "--hosts", "localhost"]] {
        let mut words: Vec<CString> = Vec::new();
        let line = mpiexec(&[place, &["-n", "2", "printenv", "A"]].concat());
        words.push(CString::new(line.get_program().as_bytes()).unwrap());
        words.extend(line.get_args().map(|word| CString::new(word.as_bytes()).unwrap()));
        let output = execute(words, &["A=first", "PATH=/usr/bin:/bin", "A=second", "odd", "=x=y"]);
        assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("first\nfirst\n", ""));
    }
}

/// Runs the program `words[0]` by execve(2), with these words and variables.
fn execute(words: Vec<CString>, variables: &[&str]) -> std::process::Output {
    let program = CString::new(env!("CARGO_BIN_EXE_mpiexec")).unwrap();
    let variables: Vec<CString> = variables.iter().map(|v| CString::new(*v).unwrap()).collect();
    let mut command = Command::new("true");
    let prepare = move || {
        let ends = |texts: &[CString]| -> Vec<*const libc::c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (words, variables) = (ends(&words), ends(&variables));
        // SAFETY: arrays of C strings that end with a null.
        unsafe { libc::execve(program.as_ptr(), words.as_ptr(), variables.as_ptr()) };
        Err(std::io::Error::last_os_error())
    };
    // SAFETY: this test's process allocates in the child as tests of one thread may; glibc can.
    unsafe { command.pre_exec(prepare) };
    command.output().expect("mpiexec runs")
}

#[test]
fn no_arguments_at_all_are_none_too_few() {
    let output = execute(Vec::new(), &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("no program"), "{}", stderr(&output));
}

/// Runs a job under a limit. Returns the exit code and the output.
fn limited(limit: Resource, value: u64, user: bool, line: &[&str]) -> (Option<i32>, String) {
    let mut command = mpiexec(line);
    let prepare = move || {
        if user {
            // Limits on processes do not hold for root.
            nix::unistd::setgid(65534.into())?;
            nix::unistd::setuid(65534.into())?;
        }
        setrlimit(limit, value, value)?;
        Ok(())
    };
    // SAFETY: system calls only.
    unsafe { command.pre_exec(prepare) };
    let output = command.output().expect("mpiexec runs");
    (output.status.code(), stderr(&output))
}

fn says_once(errors: &str, words: &[&str]) {
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(words.iter().all(|word| errors.contains(word)), "{errors}");
}

#[test]
fn limits_that_are_too_small_are_named_once() {
    let files = Resource::RLIMIT_NOFILE;
    let (code, errors) = limited(files, 70, false, &["-n", "40", "true"]);
    assert_eq!(code, Some(1));
    says_once(&errors, &["40 ranks", "70", "ulimit -Hn"]);
    let (code, errors) = limited(Resource::RLIMIT_FSIZE, 0, false, &["-n", "2", "true"]);
    assert_eq!(code, Some(1));
    says_once(&errors, &["2 ranks", "0 KiB", "ulimit -f"]);
    if !nix::unistd::geteuid().is_root() {
        println!("NOT RUN: limits on processes, for want of a user that has none: not root");
        return;
    }
    let processes = Resource::RLIMIT_NPROC;
    for count in [1, 2, 8, 20] {
        let (code, errors) = limited(processes, count, true, &["-n", "64", "sleep", "1000"]);
        assert!(matches!(code, Some(1 | 126)), "{code:?}: {errors}");
        says_once(&errors, &["ulimit -u", &format!(" {count} ")]);
        assert_eq!(code == Some(126), errors.contains(" of 64 ranks have been"), "{errors}");
    }
}

#[test]
fn a_file_at_its_limit_is_told() {
    let path = format!("{}/{}", env!("CARGO_TARGET_TMPDIR"), mark("limited"));
    let out = std::fs::File::create(&path).unwrap();
    let mut command = mpiexec(&["-n", "2", "RANK", "init", "lines", "2000", "999", "finalize"]);
    command.stdout(out);
    let start = Start { limits: vec![(libc::RLIMIT_FSIZE as i32, 1 << 20)], ..Start::default() };
    start.apply(&mut command);
    let output = command.output().unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    let _ = std::fs::remove_file(path);
    assert_eq!((output.status.code(), length), (Some(1), 1 << 20), "{}", stderr(&output));
    says_once(&stderr(&output), &["standard output", "ulimit -f", "1024 KiB"]);
}
