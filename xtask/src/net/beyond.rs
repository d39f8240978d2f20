//! Start of programs from hosts other than node0. Such a host does not see the processes of other hosts, so a server on node0
//! starts the program.
//!
//! ```text
//!   net-run on node2 ── words, and its standard input, output and error ──► server: net-run as on node0
//!                    ◄── the exit code ────────────────────────────────────
//! ```
//! If `net-run` on node2 ends, the server ends the program.

use super::FOLDER;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use nix::unistd::Pid;
use std::io::{self, Error, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::thread;

/// Exit code if the server is not reached; the same code as in ssh.
const UNREACHED: u8 = 255;

/// Maximum length of a command line, in bytes.
const LONGEST: usize = 64 << 10;

fn socket() -> String {
    format!("{FOLDER}/beyond")
}

/// Starts the server, which ends with this process.
pub fn serve() -> io::Result<()> {
    let listener = UnixListener::bind(socket())?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let code = run(&stream).unwrap_or(UNREACHED);
                let _ = (&stream).write_all(&[code]);
            });
        }
    });
    Ok(())
}

/// Receives the arguments of a command, and descriptors.
fn receive(stream: &UnixStream) -> io::Result<(Vec<String>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; LONGEST];
    let mut space = nix::cmsg_space!([RawFd; 3]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let message =
        recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty())?;
    let mut files = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(all) = control {
            // SAFETY: `fd` is open and has no other owner: the kernel created it for this process by SCM_RIGHTS just now.
            files.extend(all.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    let len = message.bytes;
    let text = String::from_utf8(bytes[..len].to_vec()).map_err(Error::other)?;
    Ok((text.split('\0').map(str::to_owned).collect(), files))
}

/// Runs the requested command and returns its exit code.
fn run(stream: &UnixStream) -> io::Result<u8> {
    let (words, files) = receive(stream)?;
    let Ok([input, output, error]) = <[OwnedFd; 3]>::try_from(files) else {
        return Err(Error::other("three descriptors"));
    };
    let mut command = Command::new(format!("{FOLDER}/net-run"));
    command.args(words).stdin(input).stdout(output).stderr(error);
    let mut child = command.spawn()?;
    // Dropping the command closes this process's copies of the pipes' ends.
    drop(command);
    let (pid, mut reader) = (Pid::from_raw(child.id() as i32), stream.try_clone()?);
    let watch = thread::spawn(move || {
        // The client sends no data, so a read returns only at the end of the stream.
        if reader.read(&mut [0]).is_ok_and(|count| count == 0) {
            let _ = kill(pid, Signal::SIGTERM);
        }
    });
    let status = child.wait()?;
    stream.shutdown(std::net::Shutdown::Read)?;
    let _ = watch.join();
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(UNREACHED))
}

/// Asks the server to run `net-run` with the arguments `words`.
pub fn main(words: &[String]) -> ExitCode {
    let asked = || -> io::Result<u8> {
        let mut stream = UnixStream::connect(socket())?;
        let text = words.join("\0");
        let rights = [ControlMessage::ScmRights(&[0, 1, 2])];
        sendmsg::<()>(
            stream.as_raw_fd(),
            &[IoSlice::new(text.as_bytes())],
            &rights,
            MsgFlags::empty(),
            None,
        )?;
        let mut code = [UNREACHED];
        stream.read_exact(&mut code)?;
        Ok(code[0])
    };
    asked().map_or_else(
        |error| {
            eprintln!("net-run: {error}");
            ExitCode::from(UNREACHED)
        },
        ExitCode::from,
    )
}
