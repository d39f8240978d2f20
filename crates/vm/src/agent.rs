//! The agent inside a virtual machine. It runs commands that the host sends over a virtio port, and commands that [`super::client`]
//! sends over TCP. It behaves like `sshd`: if a client goes away, the command's streams are closed, but the command does not end.

use super::frame::{self, AgentSetup, RunCommand, VmFrame};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// TCP port where agents listen for [`super::client`].
pub const PORT: u16 = 7707;

/// Interval between reports that a running command is alive.
const BEAT: Duration = Duration::from_secs(1);

/// Maximum wait for output of a command's children after the command has ended.
const GRACE: Duration = Duration::from_secs(1);

type Shared<T> = Arc<Mutex<T>>;

fn with<T, R>(shared: &Shared<T>, work: impl FnOnce(&mut T) -> R) -> R {
    work(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Serves the host until it goes away.
pub fn serve() -> Result<(), String> {
    let path = host_port()?;
    let failed = |e| format!("{}: {e}", path.display());
    let port = OpenOptions::new().read(true).write(true).open(&path).map_err(failed)?;
    let again = port.try_clone().map_err(failed)?;
    let setup = Arc::new(Mutex::new(AgentSetup::default()));
    let listener =
        TcpListener::bind(("0.0.0.0", PORT)).map_err(|e| format!("TCP port {PORT}: {e}"))?;
    let for_clients = setup.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let setup = for_clients.clone();
            thread::spawn(move || {
                let _ = stream.set_nodelay(true);
                if let Ok(reader) = stream.try_clone() {
                    converse(reader, stream, &setup, AgentClient::Command);
                }
            });
        }
    });
    converse(port, again, &setup, AgentClient::Host);
    Ok(())
}

/// Finds the virtio port to the host, which is the only port that is no console (see `qemu.rs`). The kernel creates the port a
/// moment after it loads the driver, and derives the port's number from its position on the bus.
fn host_port() -> Result<PathBuf, String> {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        let entries = std::fs::read_dir("/dev").map_err(|e| format!("/dev: {e}"))?;
        let is_port = |name: &str| name.starts_with("vport") && name.ends_with("p1");
        let mut names = entries.flatten().map(|e| e.file_name());
        if let Some(name) = names.find(|n| n.to_str().is_some_and(is_port)) {
            return Ok(Path::new("/dev").join(name));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err("no /dev/vport*p1: vm-agent runs only in a virtual machine of cargo xtask vm".to_owned())
}

/// Client of the agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AgentClient {
    /// The host, over the virtio port.
    Host,
    /// A command in a virtual machine, over TCP.
    Command,
}

/// Serves one client. Only the host may send the setup of commands.
fn converse<W: Write + Send + 'static>(
    mut reader: impl Read,
    writer: W,
    setup: &Shared<AgentSetup>,
    client: AgentClient,
) {
    let writer = Arc::new(Mutex::new(writer));
    let send = |frame: &VmFrame| with(&writer, |w| frame::write(w, frame)).is_ok();
    let mut input = None;
    if !send(&VmFrame::Ready) {
        return;
    }
    while let Ok(Some(frame)) = frame::read(&mut reader) {
        match frame {
            VmFrame::Setup(new) if client == AgentClient::Host => with(setup, |s| *s = new),
            VmFrame::Run(run) => {
                let start = command(&run, &with(setup, |s| s.clone())).spawn();
                match start {
                    Ok(mut child) => {
                        input = child.stdin.take();
                        let writer = writer.clone();
                        thread::spawn(move || follow(child, &writer));
                    }
                    Err(e) => {
                        let text =
                            format!("weft-vm: cannot start '{}': {e}\n", run.words.join(" "));
                        send(&VmFrame::Errors(text.into_bytes()));
                        send(&VmFrame::Ended(127));
                    }
                }
            }
            VmFrame::Input(bytes) => {
                // It is not an error if a command no longer reads its input.
                if input.as_mut().is_some_and(|i| i.write_all(&bytes).is_err()) {
                    input = None;
                }
            }
            VmFrame::InputEnd => input = None,
            _ => break,
        }
    }
}

fn command(run: &RunCommand, setup: &AgentSetup) -> Command {
    let prefix: &[String] = if run.limited { &setup.prefix } else { &[] };
    let mut words = prefix.iter().chain(&run.words);
    // If there are no words, the name is empty, so the start fails with an error message.
    let mut command = Command::new(words.next().map_or("", String::as_str));
    command
        .args(words)
        .env_clear()
        .envs(run.environment.as_ref().unwrap_or(&setup.environment).iter().cloned())
        .current_dir(run.folder.as_deref().unwrap_or("/tmp"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Sends the output of a command, and its end.
fn follow<W: Write + Send + 'static>(mut child: Child, writer: &Shared<W>) {
    let (done, finished) = channel();
    let out = child.stdout.take().map(|s| pump(s, VmFrame::Output, writer.clone(), done.clone()));
    let err = child.stderr.take().map(|s| pump(s, VmFrame::Errors, writer.clone(), done));
    let (ended, end) = channel();
    thread::spawn(move || ended.send(child.wait()));
    let status = loop {
        match end.recv_timeout(BEAT) {
            Ok(status) => break status,
            Err(RecvTimeoutError::Timeout) => {
                let _ = with(writer, |w| frame::write(w, &VmFrame::Alive));
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    };
    for _ in out.iter().chain(&err) {
        if finished.recv_timeout(GRACE).is_err() {
            break;
        }
    }
    let code = status.map_or(125, code);
    let _ = with(writer, |w| frame::write(w, &VmFrame::Ended(code)));
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Sends a stream piece by piece, until it ends or the client has gone.
fn pump<W: Write + Send + 'static>(
    mut from: impl Read + Send + 'static,
    kind: fn(Vec<u8>) -> VmFrame,
    writer: Shared<W>,
    done: std::sync::mpsc::Sender<()>,
) {
    thread::spawn(move || {
        let mut piece = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            let frame = kind(piece[..length].to_vec());
            if with(&writer, |w| frame::write(w, &frame)).is_err() {
                break;
            }
        }
        let _ = done.send(());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Runs a command through an agent. Returns its output, its errors and its code.
    fn run(run: RunCommand, input: &[u8]) -> (String, String, i32) {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let setup = AgentSetup {
            environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            prefix: vec!["env".to_owned(), "LIMITED=1".to_owned()],
        };
        let agent = thread::spawn(move || {
            let reader = theirs.try_clone().unwrap();
            converse(reader, theirs, &Arc::new(Mutex::new(setup)), AgentClient::Command);
        });
        assert_eq!(frame::read(&mut ours).unwrap(), Some(VmFrame::Ready));
        frame::write(&mut ours, &VmFrame::Run(run)).unwrap();
        frame::write(&mut ours, &VmFrame::Input(input.to_vec())).unwrap();
        frame::write(&mut ours, &VmFrame::InputEnd).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = loop {
            match frame::read(&mut ours).unwrap().unwrap() {
                VmFrame::Output(bytes) => out.extend(bytes),
                VmFrame::Errors(bytes) => err.extend(bytes),
                VmFrame::Ended(code) => break code,
                _ => {}
            }
        };
        drop(ours);
        agent.join().unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), code)
    }

    fn shell(text: &str, limited: bool) -> RunCommand {
        let words = ["sh", "-c", text].map(str::to_owned).to_vec();
        RunCommand { words, environment: None, folder: None, limited }
    }

    #[test]
    fn output_errors_input_and_code_come_through() {
        let (out, err, code) = run(shell("cat; pwd; echo no >&2; exit 3", false), b"in\n");
        assert_eq!((out.as_str(), err.as_str(), code), ("in\n/tmp\n", "no\n", 3));
    }

    #[test]
    fn a_signal_is_a_code_above_128() {
        assert_eq!(run(shell("kill -9 $$", false), b"").2, 137);
    }

    #[test]
    fn limits_apply_to_limited_commands_only() {
        assert_eq!(run(shell("echo \"$LIMITED\"", true), b"").0, "1\n");
        assert_eq!(run(shell("echo \"$LIMITED\"", false), b"").0, "\n");
    }

    #[test]
    fn a_command_that_does_not_exist_is_127() {
        let words = vec!["/nowhere/no".to_owned()];
        let (_, err, code) =
            run(RunCommand { words, environment: None, folder: None, limited: false }, b"");
        assert_eq!(code, 127);
        assert!(err.contains("/nowhere/no"), "{err}");
    }

    #[test]
    fn a_child_left_behind_does_not_hold_the_end() {
        let began = std::time::Instant::now();
        assert_eq!(run(shell("sleep 60 & exit 4", false), b"").2, 4);
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
