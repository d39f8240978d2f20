//! Work within the namespaces: makes the switches, the hosts and the helpers of COMMAND, and runs COMMAND.

use super::beyond;
use super::host::{self, NetHost, done};
use super::{BEYOND, FOLDER, NOT_RUN, NetArgs};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use weft_vm::{FAILED, TIMED_OUT};

/// Helpers: name and shell script. They run on node0, which shares the process namespace of the switches. There, process 1 has the
/// network of the switches. Other hosts have only `net-run`, through `beyond.rs`.
const HELPERS: [(&str, &str); 4] = [
    // Takes the same arguments as ssh: options, a host, and words for a shell on the host. The shell has a new environment.
    (
        "net-run",
        r#"while :; do case "$1" in -o|-p|-l|-i|-F) shift 2;; -*) shift;; *) break;; esac; done
host=${1%-[01]}; shift
pid=$(cat "/run/weft-net/$host.pid") || { echo "net-run: no host $host" >&2; exit 255; }
case $host in node0) spaces="-n -u -i";; *) spaces=-a;; esac
exec nsenter -t "$pid" $spaces -- env -i HOME="$HOME" USER=root LOGNAME=root SHELL=/bin/sh \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -c "cd; $*""#,
    ),
    ("net-cut", r#"exec nsenter -t 1 -n ip link set "$1-$2" down"#),
    ("net-join", r#"exec nsenter -t 1 -n ip link set "$1-$2" up"#),
    ("net-kill", r#"exec kill -9 "$(cat "/run/weft-net/$1.pid")""#),
];

/// Makes the mounts of this run: the folder of helpers, shared memory, and the names of hosts.
fn mounts(args: &NetArgs) -> Result<(), String> {
    done(&["mount", "--make-rprivate", "/"])?;
    fs::create_dir_all(FOLDER).map_err(|error| format!("{FOLDER}: {error}"))?;
    done(&["mount", "-t", "tmpfs", "tmpfs", FOLDER])?;
    done(&["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"])?;
    let mut names = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for host in 0..args.hosts {
        for cable in 0..args.cables {
            let all = host::addresses(host, cable, args);
            let address = all[0].split('/').next().unwrap_or_default();
            let name =
                if cable == 0 { format!("node{host}") } else { format!("node{host}-{cable}") };
            names += &format!("{address} {name}\n");
        }
    }
    let write = |name: &str, text: &str, mode: u32| {
        let path = Path::new(FOLDER).join(name);
        let written = fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)));
        written.map_err(|error| format!("{}: {error}", path.display()))
    };
    write("hosts", &names, 0o644)?;
    done(&["mount", "--bind", &format!("{FOLDER}/hosts"), "/etc/hosts"])?;
    let own = std::env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    let beyond = format!("exec '{}' net-beyond -- \"$@\"", own.display());
    let mut helpers = HELPERS.iter().copied().chain([(BEYOND, &*beyond)]);
    helpers.try_for_each(|(name, text)| write(name, &format!("#!/bin/sh\n{text}\n"), 0o755))?;
    beyond::serve().map_err(|error| format!("a server for other hosts: {error}"))
}

/// Makes the switches and the hosts.
fn hosts(args: &NetArgs) -> Result<Vec<NetHost>, String> {
    done(&["ip", "link", "set", "lo", "up"])?;
    for cable in 0..args.cables {
        let switch = host::switch(cable);
        done(&["ip", "link", "add", &switch, "type", "bridge"])?;
        done(&["ip", "link", "set", &switch, "up"])?;
    }
    let mut all = Vec::new();
    for number in 0..args.hosts {
        let host = NetHost::start(number)?;
        for cable in 0..args.cables {
            host.plug(number, cable, args)?;
        }
        let path = format!("{FOLDER}/node{number}.pid");
        fs::write(&path, host.pid()?).map_err(|error| format!("{path}: {error}"))?;
        all.push(host);
    }
    Ok(all)
}

fn start(args: &NetArgs, first: &NetHost) -> Result<Child, String> {
    let names: Vec<String> = (0..args.hosts).map(|host| format!("node{host}")).collect();
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin:/usr/sbin:/sbin".to_owned());
    let mut command = Command::new("nsenter");
    command.args(["-t", &first.pid()?, "-n", "-u", "-i", "--"]).args(&args.command);
    command.env("WEFT_NET_HOSTS", names.join(" ")).env("WEFT_RSH", format!("{FOLDER}/net-run"));
    command.env("PATH", format!("{FOLDER}:{path}"));
    command.spawn().map_err(|error| format!("nsenter: {error}"))
}

/// Waits for `child`. Returns `None` if the child has not ended after `seconds` seconds. This process is the first in its
/// namespace, so it is also the parent of all orphans.
fn ended(child: &mut Child, seconds: u64) -> Result<Option<ExitStatus>, String> {
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("waiting: {error}"))? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Makes the hosts and runs COMMAND on the first host. Returns the exit code of COMMAND. When this process ends, the kernel ends
/// all other processes.
pub fn run(args: &NetArgs) -> ExitCode {
    let made = mounts(args).and_then(|()| hosts(args));
    let hosts = match made {
        Ok(hosts) => hosts,
        Err(error) => {
            // The kernel lacks a part, or a container lacks the permission.
            eprintln!("NOT RUN: hosts of network namespaces: {error}");
            return ExitCode::from(NOT_RUN);
        }
    };
    let status = start(args, &hosts[0]).and_then(|mut child| ended(&mut child, args.timeout));
    match status {
        Ok(Some(status)) => {
            let code = status.code().or_else(|| {
                std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal)
            });
            ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
        }
        Ok(None) => {
            eprintln!("net: no end within {} s", args.timeout);
            ExitCode::from(TIMED_OUT)
        }
        Err(error) => {
            eprintln!("net: {error}");
            ExitCode::from(FAILED)
        }
    }
}
