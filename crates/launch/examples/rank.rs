//! A program that talks to `mpiexec` without an MPI library, for the tests of `mpiexec`. It executes its arguments one after the
//! other.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use weft_bootstrap::report::clock_millis;
use weft_bootstrap::{Bootstrap, Pending, Phase, from_environment};

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

/// Makes fences in which every rank publishes values, and checks the values of all ranks.
fn exchange(world: &mut dyn Bootstrap) {
    for round in 0..3 {
        let value = |rank: usize| format!("{round}-{rank}").repeat(rank % 7 * 300 + 1);
        let key = format!("key{round}");
        world.put(&key, value(world.rank()).as_bytes()).expect("put");
        world.get(world.rank(), &key).expect_err("not readable before the fence");
        world.fence().expect("fence");
        for rank in 0..world.size() {
            assert_eq!(world.get(rank, &key).expect("get"), value(rank).as_bytes());
        }
    }
}

extern "C" fn nothing(_signal: i32) {}

fn main() {
    let environment: Vec<_> = std::env::vars_os().collect();
    let mut arguments = std::env::args().skip(1);
    let mut world: Option<Box<dyn Bootstrap>> = None;
    macro_rules! next {
        () => {
            arguments.next().expect("an argument")
        };
        (number) => {
            next!().parse::<i64>().expect("a number")
        };
        (world) => {
            world.as_mut().expect("init comes first")
        };
    }
    while let Some(verb) = arguments.next() {
        match verb.as_str() {
            "init" => match from_environment() {
                Ok(joined) => world = Some(joined),
                Err(error) => {
                    eprintln!("init: {error}");
                    std::process::exit(9);
                }
            },
            "who" => println!("{} of {}", next!(world).rank(), next!(world).size()),
            "app" => println!("app {:?}", next!(world).app_number()),
            "job" => println!("job {}", next!(world).job()),
            "nodes" => println!("nodes {:?}", next!(world).nodes()),
            "exchange" => exchange(next!(world).as_mut()),
            "fence" => next!(world).fence().expect("fence"),
            "finalize" => next!(world).finalized().expect("finalized"),
            "leave" => world = None,
            "abort" => {
                let code = next!(number) as i32;
                next!(world).abort(code, &next!());
                // MPI_Abort does the same if the launcher does not end the process.
                std::process::exit(code);
            }
            "say" => println!("{}", next!()),
            "cry" => eprintln!("{}", next!()),
            // Writes a number of lines of a number of characters, in writes that end anywhere, to standard output or error.
            "lines" | "errors" => {
                let (count, length) = (next!(number), next!(number) as usize);
                let rank = next!(world).rank();
                let line = |n| {
                    let head = format!("{rank}:{n}:");
                    let rest = ".".repeat(length - head.len());
                    format!("{head}{rest}\n")
                };
                let text: String = (0..count).map(line).collect();
                let out = std::io::stdout().as_fd().try_clone_to_owned().expect("a copy");
                // Unlike Rust's standard output, the file is not buffered.
                let mut out: Box<dyn Write> = match verb.as_str() {
                    "lines" => Box::new(std::fs::File::from(out)),
                    _ => Box::new(std::io::stderr()),
                };
                for piece in text.as_bytes().chunks(4096) {
                    out.write_all(piece).expect("room");
                }
            }
            // Starts a timer of 1 ms, whose handler does not restart system calls.
            "timer" => {
                let every = libc::timeval { tv_sec: 0, tv_usec: 1000 };
                let every = libc::itimerval { it_interval: every, it_value: every };
                // SAFETY: a handler that does nothing, and valid structures.
                unsafe {
                    let mut action: libc::sigaction = std::mem::zeroed();
                    action.sa_sigaction = nothing as *const () as libc::sighandler_t;
                    libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
                    libc::setitimer(libc::ITIMER_REAL, &every, std::ptr::null_mut());
                }
            }
            "write" => {
                print!("{}", next!());
                std::io::stdout().flush().expect("flush");
            }
            "cat" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).expect("stdin");
                print!("{text}");
            }
            "exit" => std::process::exit(next!(number) as i32),
            "die" => {
                let signal = next!(number) as i32;
                // SAFETY: both only act on this process. Rust's own handler of SIGSEGV is undone.
                unsafe {
                    libc::signal(signal, libc::SIG_DFL);
                    libc::raise(signal);
                }
            }
            "only" => {
                // One rank goes on with the next arguments; the other ranks sleep.
                if next!(world).rank() as i64 != next!(number) {
                    sleep_for_ever();
                }
            }
            // Reports a wait for the rank with a number that is higher by this much, as MPI_Recv would.
            "recv" => {
                let world = next!(world);
                let pending = Pending {
                    operation: "MPI_Recv".into(),
                    peer: Some((world.rank() + next!(number) as usize) % world.size()),
                    tag: Some(42),
                    bytes: 8,
                    communicator: "MPI_COMM_WORLD".into(),
                    since_millis: clock_millis(),
                };
                world
                    .report()
                    .expect("a page for the report")
                    .publish(&[pending], Default::default());
            }
            "finalizing" => {
                next!(world).report().expect("a page for the report").phase(Phase::Finalizing);
            }
            "pause" => {
                let millis = next!(number) as u64;
                std::thread::sleep(std::time::Duration::from_millis(millis));
            }
            "sleep" => sleep_for_ever(),
            // Runs the remaining arguments as a child with the present environment (child), or with that of the start (stale).
            "child" | "stale" => {
                let mut child = Command::new(std::env::current_exe().expect("own path"));
                if verb == "stale" {
                    child.env_clear().envs(environment.iter().cloned());
                }
                let status = child.args(arguments.by_ref()).status().expect("child");
                assert!(status.success());
            }
            other => panic!("unknown verb {other:?}"),
        }
    }
}
