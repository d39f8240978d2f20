//! The connection to a launcher that speaks PMI-1 or PMI-2: an inherited socket (PMI_FD), or an address at which the launcher
//! listens (PMI_PORT).

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};

use crate::BootstrapError;
use crate::calls::{Patience, repeat};
use crate::limits::explain;

/// Maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// A connection that carries requests and answers alternately.
pub(crate) struct Channel {
    stream: File,
    /// Bytes that were read and not returned yet.
    inbox: Vec<u8>,
}

fn lost(doing: &str, error: &io::Error) -> BootstrapError {
    BootstrapError(format!("{doing}: the connection to the launcher is lost: {}", explain(error)))
}

/// Returns the number in `text` if it is the number of an open socket, as PMI_FD must be.
pub(crate) fn is_socket(text: &str) -> Option<RawFd> {
    let number = text.trim().parse::<RawFd>().ok().filter(|&number| number >= 0)?;
    // SAFETY: the borrow ends with fstat, which accepts any number, and fails if the number is not an open descriptor.
    let status = fstat(unsafe { std::os::fd::BorrowedFd::borrow_raw(number) }).ok()?;
    (SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT == SFlag::S_IFSOCK).then_some(number)
}

impl Channel {
    /// Takes over the inherited socket `number`, which [`is_socket`] has checked.
    pub fn inherited(number: RawFd) -> Self {
        // SAFETY: `from_raw_fd` needs sole ownership. The launcher opened this socket for the process's PMI client, which is this
        // library, and the variable that names the socket is removed from the environment.
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        Self::new(socket)
    }

    /// Connects to `address`, a host name and a port.
    pub fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        let _ = stream.set_nodelay(true);
        Ok(Self::new(stream.into()))
    }

    pub(crate) fn new(socket: OwnedFd) -> Self {
        // Programs that this process starts must not use the socket, because they are not this rank.
        let _ = fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC));
        Channel { stream: socket.into(), inbox: Vec::new() }
    }

    /// Sends a request.
    pub fn send(&mut self, doing: &str, request: &[u8]) -> Result<(), BootstrapError> {
        self.stream.write_all(request).map_err(|error| lost(doing, &error))
    }

    fn fill(&mut self, doing: &str) -> Result<(), BootstrapError> {
        let mut piece = [0; 4096];
        let count = match repeat(|| self.stream.read(&mut piece)) {
            Err(error) => return Err(lost(doing, &error)),
            Ok(0) => return Err(lost(doing, &io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => count,
        };
        self.inbox.extend(&piece[..count]);
        if self.inbox.len() > MAX_ANSWER {
            return Err(BootstrapError(format!(
                "{doing}: the launcher sent more than {MAX_ANSWER} bytes at once"
            )));
        }
        Ok(())
    }

    /// Receives a line, without its end.
    pub fn line(&mut self, doing: &str) -> Result<String, BootstrapError> {
        loop {
            if let Some(end) = self.inbox.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.inbox.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.fill(doing)?;
        }
    }

    /// Receives `count` bytes, as text.
    pub fn exactly(&mut self, doing: &str, count: usize) -> Result<String, BootstrapError> {
        if count > MAX_ANSWER {
            return Err(BootstrapError(format!(
                "{doing}: the launcher announced {count} bytes, limit {MAX_ANSWER}"
            )));
        }
        while self.inbox.len() < count {
            self.fill(doing)?;
        }
        let bytes: Vec<u8> = self.inbox.drain(..count).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits until the launcher closes the connection or ends this process, for at most `limit`.
    pub fn wait_for_the_end(&mut self, limit: Duration) {
        let mut patience = Patience::new(limit);
        loop {
            let step = PollTimeout::try_from(patience.step()).unwrap_or(PollTimeout::ZERO);
            let mut ready = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, step) {
                Ok(0) | Err(nix::Error::EINTR) if patience.is_over() => return,
                Ok(0) | Err(nix::Error::EINTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            if !matches!(repeat(|| self.stream.read(&mut [0; 256])), Ok(count) if count > 0) {
                return;
            }
        }
    }
}

/// Fields of an answer: `key=value`, with a separator between them.
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub fn read(text: &str, separator: char) -> Self {
        let pairs = text.split(separator).filter_map(|pair| pair.split_once('='));
        Fields(pairs.map(|(key, value)| (key.trim().into(), value.trim_end().into())).collect())
    }

    /// Returns the first value under `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns the number under `key`.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok()
    }

    /// Checks that the command is `answer` and reports no failure.
    pub fn expect(self, doing: &str, answer: &str, said: &str) -> Result<Self, BootstrapError> {
        let fine = self.get("rc").is_none_or(|code| code == "0");
        if self.get("cmd") == Some(answer) && fine {
            return Ok(self);
        }
        Err(BootstrapError(format!("{doing}: the launcher answered {said:?}, expected {answer}")))
    }
}

/// Replaces the characters that a message must not have in both protocols.
pub(crate) fn plain(message: &str) -> String {
    message.chars().map(|c| if "\n\r;=".contains(c) { ' ' } else { c }).take(512).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_a_socket_counts_as_a_connection() {
        let (socket, _other) = UnixStream::pair().unwrap();
        assert_eq!(is_socket(&socket.as_raw_fd().to_string()), Some(socket.as_raw_fd()));
        let file = File::open("/dev/null").unwrap();
        for text in [file.as_raw_fd().to_string().as_str(), "-1", "", "x", "1000000"] {
            assert_eq!(is_socket(text), None, "{text}");
        }
    }

    #[test]
    fn answers_come_in_any_pieces_and_their_end_is_an_error() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut channel = Channel::new(ours.into());
        theirs.write_all(b"cmd=a rc=0\ncmd").unwrap();
        assert_eq!(channel.line("x").unwrap(), "cmd=a rc=0");
        theirs.write_all(b"=b\n1234").unwrap();
        assert_eq!(channel.line("x").unwrap(), "cmd=b");
        assert_eq!(channel.exactly("x", 3).unwrap(), "123");
        drop(theirs);
        assert!(channel.exactly("fence", 3).unwrap_err().0.contains("fence"));
        assert!(channel.exactly("fence", MAX_ANSWER + 1).unwrap_err().0.contains("limit"));
    }

    #[test]
    fn answers_that_are_not_the_expected_one_are_quoted() {
        for said in ["cmd=other rc=0", "cmd=barrier_out rc=-1 msg=no", "rubbish", ""] {
            let error = Fields::read(said, ' ').expect("fence", "barrier_out", said);
            assert!(error.err().unwrap().0.contains(&format!("{said:?}")));
        }
        let fields = Fields::read("cmd=x;rc=0;size=12;", ';').expect("a", "x", "").unwrap();
        assert_eq!(fields.number("size"), Some(12));
    }
}
