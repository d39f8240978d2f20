//! Starts the processes that make the calls, and reports processes that die.

use crate::Args;
use crate::exceptions;
use crate::signature::Signature;
use crate::worker::{self, BROKEN, HANGS};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Number of functions that a process calls.
const BATCH: usize = 12;

#[derive(Default)]
struct Sum {
    cases: usize,
    errors: usize,
    successes: usize,
    /// Number of processes that ended in a call.
    deaths: usize,
    wrong: usize,
}

/// Prints the calls that would be made, and those that are left out.
pub fn print(functions: &[Signature], seed: u64) {
    for (name, why) in exceptions::NEVER {
        println!("never MPI_{name}: {why}");
    }
    for f in functions {
        for case in worker::cases(f, seed) {
            println!("{}", worker::label(f, &case));
        }
        let mut rng = fastrand::Rng::with_seed(seed);
        for parameter in &f.parameters {
            for bad in crate::arguments::bad(parameter, &mut rng) {
                if let Some(why) = exceptions::skipped(f, parameter, &bad) {
                    println!("not {}({} = {bad:x?}): {why}", f.name, parameter.name);
                }
            }
        }
    }
}

/// Makes all calls. Returns true if nothing was wrong.
pub fn run(args: &Args, functions: &[Signature]) -> Result<bool, String> {
    if functions.is_empty() {
        return Err(format!("no function is called {}", args.only.join(" or ")));
    }
    let began = Instant::now();
    let (next, sum) = (AtomicUsize::new(0), Mutex::new(Sum::default()));
    let batches: Vec<_> = functions.chunks(BATCH).collect();
    let work = || {
        while let Some(batch) = batches.get(next.fetch_add(1, Relaxed)) {
            finish(args, batch, &sum)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.processes.max(1)).map(|_| scope.spawn(work)).collect();
        let results = threads.into_iter().map(|t| t.join().expect("no panic"));
        results.collect::<Result<Vec<()>, String>>()
    })?;
    let Sum { cases, errors, successes, deaths, wrong } = sum.into_inner().expect("no panic");
    let good = deaths + wrong == 0;
    println!(
        "{}: {cases} calls of {} functions: {errors} errors, {successes} successes, {deaths} ended the \
         process, {wrong} wrong answers ({:.1} s)",
        if good { "correct" } else { "wrong" },
        functions.len(),
        began.elapsed().as_secs_f64()
    );
    Ok(good)
}

/// Makes all calls of a batch, with as many processes as needed.
fn finish(args: &Args, batch: &[Signature], sum: &Mutex<Sum>) -> Result<(), String> {
    let (mut rest, mut from) = (batch, 0);
    loop {
        let (last, ended, status, said) = process(args, rest, from, sum)?;
        if ended {
            return Ok(());
        }
        let Some((name, number)) = last else {
            return Err(format!("a process ended before the first call ({status}):\n{said}"));
        };
        let place = rest.iter().position(|f| f.name == name).expect("a function of the batch");
        let cases = worker::cases(&rest[place], args.seed);
        if status.code() != Some(BROKEN) {
            let how = match status.code() {
                Some(HANGS) => format!("has not returned in {} s", args.limit),
                _ => format!("ended the process ({status})"),
            };
            let mut sum = sum.lock().expect("no panic");
            sum.deaths += 1;
            println!("{} {how}", worker::label(&rest[place], &cases[number]));
            let lines: Vec<_> = said.lines().collect();
            for line in &lines[lines.len().saturating_sub(6)..] {
                println!("    {line}");
            }
        }
        (rest, from) = (&rest[place..], number + 1);
        if from == cases.len() {
            (rest, from) = (&rest[1..], 0);
        }
        if rest.is_empty() {
            return Ok(());
        }
    }
}

type Ended = (Option<(String, usize)>, bool, ExitStatus, String);

/// Runs a process. Returns its last case, true if it made all its calls, how it ended, and its output.
fn process(
    args: &Args,
    functions: &[Signature],
    from: usize,
    sum: &Mutex<Sum>,
) -> Result<Ended, String> {
    let program = std::env::current_exe().map_err(|e| format!("my own path: {e}"))?;
    let mut command = Command::new(program);
    command.args(["--worker", &from.to_string(), "--library", &args.library]);
    command.args(["--seed", &args.seed.to_string(), "--limit", &args.limit.to_string()]);
    if args.plant {
        command.arg("--plant");
    }
    for f in functions {
        command.args(["--only", f.name]);
    }
    let pipes = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().map_err(|e| format!("cannot start a process: {e}"))?;
    let mut errors = child.stderr.take().expect("piped");
    let said = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = errors.read_to_end(&mut bytes); // the output until then is reported
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let (mut last, mut ended) = (None, false);
    for line in BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok) {
        let mut sum = sum.lock().expect("no panic");
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("case", rest) => {
                let (name, number) = rest.split_once(' ').unwrap_or_default();
                last = Some((name.to_owned(), number.parse().unwrap_or(0)));
                sum.cases += 1;
            }
            ("error", what) => {
                sum.errors += 1;
                if args.verbose {
                    println!("error: {what}");
                }
            }
            ("success", what) => {
                sum.successes += 1;
                if args.verbose {
                    println!("success: {what}");
                }
            }
            ("wrong", what) => {
                sum.wrong += 1;
                println!("{what}");
            }
            ("end", _) => ended = true,
            _ => {}
        }
    }
    let status = child.wait().map_err(|e| format!("cannot wait for a process: {e}"))?;
    Ok((last, ended, status, said.join().expect("no panic")))
}
