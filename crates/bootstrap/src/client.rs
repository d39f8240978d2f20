//! A process that Weft's `mpiexec` has started. It has one blocking Unix stream, used only when a job starts and ends.

use std::collections::HashMap;
use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

use crate::calls::{self, Patience};
use crate::limits::explain;
use crate::report::{self, Report};
use crate::ticket::Ticket;
use crate::wire::{Frame, MAX_KEY, MAX_REPLY, MAX_REQUEST, MAX_VALUE, PublishedEntry};
use crate::{Bootstrap, BootstrapError, nodes};

/// Maximum time that a process waits after `abort` for the launcher to end it.
const ABORT_WAIT: Duration = Duration::from_secs(5);

/// A process of a job of Weft's `mpiexec`.
pub(crate) struct Launched {
    stream: UnixStream,
    rank: usize,
    size: usize,
    app: usize,
    job: String,
    nodes: Vec<usize>,
    report: Option<Report>,
    put: Vec<PublishedEntry>,
    known: HashMap<(u32, String), Vec<u8>>,
}

fn lost(doing: &str, error: io::Error) -> BootstrapError {
    BootstrapError(format!("{doing}: the connection to mpiexec is lost: {}", explain(&error)))
}

impl Launched {
    /// Joins the job. Returns `None` if an ancestor of this process is already the rank that the environment names.
    pub fn join(ticket: &Ticket) -> Result<Option<Self>, BootstrapError> {
        let unreachable = |error: io::Error| {
            BootstrapError(format!(
                "cannot reach the mpiexec that started this program (job {}): {}. If it has \
                 ended, unset {} to run the program without a launcher",
                ticket.job,
                explain(&error),
                crate::VARIABLE
            ))
        };
        let address = SocketAddr::from_abstract_name(&ticket.socket).map_err(unreachable)?;
        let mut stream = calls::connect(&address).map_err(unreachable)?;
        let hello = Frame::Hello { token: ticket.token, rank: ticket.rank as u32 };
        stream.write_all(&hello.encode()).map_err(unreachable)?;
        let (frame, memory) = receive_with_descriptor(&mut stream)?;
        let (generation, runs) = match frame {
            Frame::Welcome { generation, nodes } => (generation, nodes),
            Frame::Alone => return Ok(None),
            Frame::Refused { reason } => return Err(BootstrapError(reason)),
            other => return Err(BootstrapError(format!("unexpected answer {other:?}"))),
        };
        let report = match memory {
            Some(memory) => Some(report::slot(&memory, ticket.rank).map_err(|error| {
                let why = explain(&error);
                BootstrapError(format!("cannot map the page of the hang report: {why}"))
            })?),
            None => None,
        };
        let nodes = match nodes::from_setting(ticket.size)? {
            Some(nodes) => nodes,
            None => expand(&runs, ticket.size)?,
        };
        Ok(Some(Launched {
            stream,
            rank: ticket.rank,
            size: ticket.size,
            app: ticket.app,
            job: format!("{}.{generation}", ticket.job),
            nodes,
            report,
            put: Vec::new(),
            known: HashMap::new(),
        }))
    }

    fn receive(&mut self, doing: &str) -> Result<Frame, BootstrapError> {
        read_frame(&mut self.stream, Vec::new()).map_err(|error| lost(doing, error))?
    }
}

/// Returns the node of each of `size` ranks. Each run has a node and the number of consecutive ranks on it.
fn expand(runs: &[(u32, u32)], size: usize) -> Result<Vec<usize>, BootstrapError> {
    let ranks = runs.iter().map(|&(_, ranks)| u64::from(ranks)).sum::<u64>();
    if ranks != size as u64 {
        let text = format!("joining the job: mpiexec placed {ranks} ranks of {size}");
        return Err(BootstrapError(text));
    }
    let all = runs.iter().map(|&(node, ranks)| (node as usize, ranks as usize));
    Ok(all.flat_map(|(node, ranks)| std::iter::repeat_n(node, ranks)).collect())
}

/// Reads the rest of a frame that begins with `bytes`.
fn read_frame(
    stream: &mut UnixStream,
    mut bytes: Vec<u8>,
) -> io::Result<Result<Frame, BootstrapError>> {
    let mut rest = [0; 4];
    if bytes.len() < 4 {
        let missing = 4 - bytes.len();
        stream.read_exact(&mut rest[..missing])?;
        bytes.extend(&rest[..missing]);
    }
    let length = u32::from_le_bytes(*bytes.first_chunk().expect("four bytes")) as usize;
    if length > MAX_REPLY || bytes.len() > 4 + length {
        let message = format!("a frame of {length} bytes, limit {MAX_REPLY}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let missing = 4 + length - bytes.len();
    // The buffer grows as bytes arrive, so a wrong length allocates nothing.
    if stream.take(missing as u64).read_to_end(&mut bytes)? < missing {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Frame::decode(&bytes[4..]))
}

/// Receives the first answer, which may carry a descriptor.
fn receive_with_descriptor(
    stream: &mut UnixStream,
) -> Result<(Frame, Option<OwnedFd>), BootstrapError> {
    let joining = "joining the job";
    let mut head = [0; 4];
    let mut space = cmsg_space!([std::os::fd::RawFd; 1]);
    let mut slices = [IoSliceMut::new(&mut head)];
    let message = loop {
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(stream.as_raw_fd(), &mut slices, Some(&mut space), flags) {
            // The message borrows the buffer, so `repeat` cannot make this call.
            Err(nix::Error::EINTR) => continue,
            other => break other.map_err(|error| lost(joining, error.into()))?,
        }
    };
    let length = message.bytes;
    let mut memory = None;
    // If the limit on open files is reached, the kernel delivers the message without its descriptor.
    let full = |_| {
        let why = explain(&io::Error::from_raw_os_error(libc::EMFILE));
        BootstrapError(format!("{joining}: the page of the hang report: {why}"))
    };
    for control in message.cmsgs().map_err(full)? {
        if let ControlMessageOwned::ScmRights(descriptors) = control {
            for descriptor in descriptors {
                // SAFETY: `from_raw_fd` needs sole ownership. The kernel has just made this descriptor for this call.
                memory = Some(unsafe { OwnedFd::from_raw_fd(descriptor) });
            }
        }
    }
    if length == 0 {
        return Err(lost(joining, io::ErrorKind::UnexpectedEof.into()));
    }
    let frame = read_frame(stream, head[..length].to_vec()).map_err(|e| lost(joining, e))??;
    Ok((frame, memory))
}

impl Bootstrap for Launched {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn job(&self) -> &str {
        &self.job
    }

    fn nodes(&self) -> Vec<usize> {
        self.nodes.clone()
    }

    fn app_number(&self) -> Option<usize> {
        Some(self.app)
    }

    fn report(&self) -> Option<Report> {
        self.report.clone()
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        for (what, length, limit) in
            [("key", key.len(), MAX_KEY), ("value", value.len(), MAX_VALUE)]
        {
            if length > limit {
                return Err(BootstrapError(format!(
                    "put of {key:?}: {what} of {length} bytes, limit {limit}"
                )));
            }
        }
        self.put.push((self.rank as u32, key.into(), value.into()));
        Ok(())
    }

    fn get(&mut self, rank: usize, key: &str) -> Result<Vec<u8>, BootstrapError> {
        self.known.get(&(rank as u32, key.to_string())).cloned().ok_or_else(|| {
            BootstrapError(format!(
                "get of {key:?}: rank {rank} of {} published no such value before the last fence",
                self.size
            ))
        })
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        let frame = Frame::Fence { entries: std::mem::take(&mut self.put) }.encode();
        if frame.len() > MAX_REQUEST {
            return Err(BootstrapError(format!(
                "fence: {} bytes published since the last fence, limit {MAX_REQUEST}",
                frame.len()
            )));
        }
        self.stream.write_all(&frame).map_err(|error| lost("fence", error))?;
        match self.receive("fence")? {
            Frame::Fenced { entries } => {
                self.known.extend(entries.into_iter().map(|(r, key, value)| ((r, key), value)));
                Ok(())
            }
            other => Err(BootstrapError(format!("fence: unexpected answer {other:?}"))),
        }
    }

    fn finalized(&mut self) -> Result<(), BootstrapError> {
        let frame = Frame::Finalized.encode();
        self.stream.write_all(&frame).map_err(|error| lost("finalize", error))
    }

    fn abort(&mut self, code: i32, message: &str) {
        let end = (0..=message.len().min(MAX_VALUE)).rev().find(|&at| message.is_char_boundary(at));
        let message = message[..end.unwrap_or(0)].to_string();
        if self.stream.write_all(&Frame::Abort { code, message }.encode()).is_ok() {
            // mpiexec answers with SIGTERM; a process that blocks SIGTERM gets SIGKILL a second later.
            let mut patience = Patience::new(ABORT_WAIT);
            loop {
                let _ = self.stream.set_read_timeout(Some(patience.step()));
                match self.stream.read(&mut [0; 256]) {
                    // A signal has come, or a step of `patience` has passed.
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut
                        ) =>
                    {
                        if patience.is_over() {
                            return;
                        }
                    }
                    Ok(1..) => {}
                    _ => return,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_in_runs() {
        assert_eq!(expand(&[(0, 2), (1, 1), (0, 1)], 4).unwrap(), [0, 0, 1, 0]);
        assert!(expand(&[(0, 2)], 3).unwrap_err().0.contains("2 ranks of 3"));
        assert!(expand(&[(0, u32::MAX), (0, u32::MAX)], 3).is_err());
    }
}
