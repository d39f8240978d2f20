//! Process that makes the calls. It announces each call. When it dies, the process that started it knows the call, and starts
//! another process for the remaining calls.

use crate::arguments::{self, Bad};
use crate::exceptions;
use crate::fixture::{Fixture, null};
use crate::mpi::AbusedLibrary;
use crate::signature::{HandleKind, ParameterType, Signature, constant};
use std::ffi::c_int;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weft_fabric::repeated;

/// The exit code of a worker whose call did not return.
pub const HANGS: i32 = 97;

/// The exit code of a worker whose library no longer works, as the worker has reported.
pub const BROKEN: i32 = 98;

static CALLS: AtomicU64 = AtomicU64::new(0);

/// A case of a function: the bad arguments, by their places.
pub type BadArguments = Vec<(usize, Bad)>;

/// Returns the cases of a function, always the same: none bad, each bad value, and an equal number with two bad values at random.
pub fn cases(f: &Signature, seed: u64) -> Vec<BadArguments> {
    let hash = f.name.bytes().fold(seed, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
    let mut rng = fastrand::Rng::with_seed(hash);
    let mut bad = Vec::new();
    for (i, parameter) in f.parameters.iter().enumerate() {
        let all = arguments::bad(parameter, &mut rng).into_iter();
        bad.extend(all.filter(|b| exceptions::skipped(f, parameter, b).is_none()).map(|b| (i, b)));
    }
    let one = bad.iter().map(|b| vec![b.clone()]);
    let two: Vec<BadArguments> =
        bad.iter().map(|b| vec![b.clone(), rng.choice(&bad).unwrap_or(b).clone()]).collect();
    let two = two.into_iter().filter(|c| c[0].0 != c[1].0 && !exceptions::never_both(f, c));
    std::iter::once(Vec::new()).chain(one).chain(two).collect()
}

/// Describes a case as a call.
pub fn label(f: &Signature, case: &BadArguments) -> String {
    let one = |(i, bad): &(usize, Bad)| format!("{} = {bad:x?}", f.parameters[*i].name);
    let all: Vec<_> = case.iter().map(one).collect();
    format!(
        "{}({})",
        f.name,
        if case.is_empty() { "good arguments".to_owned() } else { all.join(", ") }
    )
}

fn say(line: std::fmt::Arguments) {
    let mut out = std::io::stdout().lock();
    // If nobody reads the output any more, the line is lost.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn watch(limit: Duration) {
    std::thread::spawn(move || {
        let mut last = 0;
        loop {
            std::thread::sleep(limit);
            let now = CALLS.load(Relaxed);
            if now == last {
                std::io::stderr().flush().ok();
                std::process::exit(HANGS);
            }
            last = now;
        }
    });
}

/// Runs the cases of `functions`, the first from case `from` on.
pub fn run(mpi: &AbusedLibrary, functions: &[Signature], from: usize, seed: u64, limit: Duration) {
    mpi.must("MPI_Init", &[0, 0]);
    let mut provided: c_int = 0;
    mpi.must("MPI_T_init_thread", &[0, &raw mut provided as usize]);
    for comm in ["MPI_COMM_WORLD", "MPI_COMM_SELF"] {
        let args = [constant(comm), constant("MPI_ERRORS_RETURN")];
        mpi.must("MPI_Comm_set_errhandler", &args);
    }
    watch(limit);
    let world = Fixture::new(mpi);
    for (nth, f) in functions.iter().enumerate() {
        let cases = cases(f, seed);
        let first = if nth == 0 { from } else { 0 };
        for (number, case) in cases.iter().enumerate().skip(first) {
            CALLS.fetch_add(1, Relaxed);
            say(format_args!("case {} {number}", f.name));
            one(&world, f, case);
        }
    }
    say(format_args!("end"));
    mpi.code("MPI_Finalize", &[]);
}

/// Makes one call, with the calls that must come before and after it.
fn one(world: &Fixture, f: &Signature, case: &BadArguments) {
    let (mpi, stem) = (world.mpi, f.stem());
    world.clear(f.parameters.len());
    world.open(stem);
    let buffered =
        stem.to_lowercase().contains("bsend") || ["Buffer_detach", "Buffer_iflush"].contains(&stem);
    if buffered {
        mpi.must("MPI_Buffer_attach", &[world.slot(15), 8192]);
    }
    let short = stem.trim_start_matches('I').to_lowercase();
    let sends = ["send", "bsend", "ssend", "rsend"];
    if sends.contains(&short.as_str()) {
        world.expect_message();
    } else if ["recv", "probe", "mprobe", "improbe"].contains(&short.as_str())
        || short.starts_with("sendrecv")
    {
        world.send_messages();
    }
    if stem.starts_with("Comm") && stem.ends_with("_buffer") && stem != "Comm_attach_buffer" {
        let args = [world.live(HandleKind::Comm, stem), world.slot(15), 8192];
        mpi.must("MPI_Comm_attach_buffer", &args);
    }
    let mut args = arguments::good(world, f);
    if stem.starts_with("Session") && stem.ends_with("_buffer") && stem != "Session_attach_buffer" {
        mpi.must("MPI_Session_attach_buffer", &[args[0], world.slot(15), 8192]);
    }
    let close = || {
        world.close();
        if buffered || stem == "Buffer_attach" {
            detach_buffer(mpi);
        }
    };
    for (i, bad) in case {
        match arguments::spoilt(world, f, *i, bad, args[*i]) {
            Some(value) => args[*i] = value,
            None => return close(),
        }
    }
    let before = pointees(world, f);
    let result = mpi.raw(f.name, &args);
    judge(world, f, case, result);
    if f.returns_code && result as c_int == 0 {
        made(world, f, &before);
    }
    close();
    works(mpi, f, case);
}

fn detach_buffer(mpi: &AbusedLibrary) {
    let (mut address, mut size) = (0usize, 0 as c_int);
    let args = [&raw mut address as usize, &raw mut size as usize];
    mpi.code("MPI_Buffer_detach", &args);
}

fn judge(world: &Fixture, f: &Signature, case: &BadArguments, result: usize) {
    let code = result as c_int;
    if !f.returns_code {
        return say(format_args!("value"));
    }
    let words = || {
        let text = world.mpi.words(code);
        text.replace('\n', " ")
    };
    if code == 0 {
        if let [(i, bad)] = &case[..]
            && exceptions::must_fail(f, &f.parameters[*i], bad)
        {
            say(format_args!("wrong {} succeeded", label(f, case)));
        }
        return say(format_args!("success {}", label(f, case)));
    }
    let mut class: c_int = -1;
    let known = world.mpi.code("MPI_Error_class", &[code as usize, &raw mut class as usize]) == 0;
    if !known || !(1..=0x3fff).contains(&std::hint::black_box(class)) {
        say(format_args!("wrong {} returned {code}, no error code", label(f, case)));
    }
    let unsupported = class == constant("MPI_ERR_UNSUPPORTED_OPERATION") as c_int;
    if let Some(twice) = repeated(&words()) {
        say(format_args!("wrong {} says \"{twice}\" twice: {}", label(f, case), words()));
    }
    if case.is_empty() && !unsupported && exceptions::fails(f).is_none() {
        say(format_args!("wrong {}: {}", label(f, case), words()));
    }
    say(format_args!("error {}: {}", label(f, case), words()));
}

/// Returns the handles that the call may replace.
fn pointees(world: &Fixture, f: &Signature) -> Vec<(usize, HandleKind, usize)> {
    let all = f.parameters.iter().enumerate();
    all.filter_map(|(i, p)| match p.ty {
        ParameterType::Handles(kind) if !p.constant && !p.name.starts_with("array") => {
            // SAFETY: slot `i` is initialised memory of the arena, with room for a handle.
            Some((i, kind, unsafe { *(world.slot(i) as *const usize) }))
        }
        _ => None,
    })
    .collect()
}

/// Frees the objects that the call made.
fn made(world: &Fixture, f: &Signature, before: &[(usize, HandleKind, usize)]) {
    for &(i, kind, was) in before {
        // SAFETY: slot `i` is initialised memory of the arena, with room for a handle.
        let now = unsafe { std::ptr::read_volatile(world.slot(i) as *const usize) };
        let predefined = now < 0x1000;
        if now != was && now != null(kind) && !predefined && !f.stem().contains("get_value") {
            world.free(kind, now);
        }
    }
}

/// Checks that the library still works.
fn works(mpi: &AbusedLibrary, f: &Signature, case: &BadArguments) {
    let (mut one, mut sum, mut got) = (21 as c_int, 0 as c_int, 0 as c_int);
    let (from, to) = (&raw mut one as usize, &raw mut sum as usize);
    let (int, comm) = (constant("MPI_INT"), constant("MPI_COMM_SELF"));
    let reduced = mpi.code("MPI_Allreduce", &[from, to, 1, int, constant("MPI_SUM"), comm]);
    let into = &raw mut got as usize;
    let moved = mpi.code("MPI_Sendrecv", &[from, 1, int, 0, 3, into, 1, int, 0, 3, comm, 0]);
    let data = std::hint::black_box([sum, got]);
    if (reduced, moved, data) != (0, 0, [21, 21]) {
        let words = mpi.words(reduced.max(moved)).replace('\n', " ");
        say(format_args!(
            "wrong {}: afterwards the library does not work: {words}",
            label(f, case)
        ));
        std::process::exit(BROKEN);
    }
}
