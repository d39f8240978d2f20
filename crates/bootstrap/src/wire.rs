//! Frames between a process and `mpiexec`: a 32-bit length, a kind, and fields in little endian. Both sides treat lengths as
//! untrusted: a frame above the limit, or a field that does not fit its frame, is an error and allocates nothing.
//!
//! A process connects to the abstract Unix socket that its environment names, and sends [`Hello`]. The answer carries the memory
//! of the hang report as a descriptor. Values are sent only at fences: each process sends its own values, and receives the values
//! of all processes.
//!
//! [`Hello`]: Frame::Hello

use crate::BootstrapError;

/// Version of the protocol. The environment variable contains it.
pub const VERSION: u32 = 2;
/// Maximum length of a key, in bytes.
pub const MAX_KEY: usize = 256;
/// Maximum length of a value, in bytes.
pub const MAX_VALUE: usize = 1 << 20;
/// Maximum length of a frame from a process, in bytes.
pub const MAX_REQUEST: usize = 16 << 20;
/// Maximum length of a frame from `mpiexec` (a fence of all processes), in bytes.
pub const MAX_REPLY: usize = 1 << 30;

/// A published value: rank of the process, key, value.
pub type PublishedEntry = (u32, String, Vec<u8>);

/// A message, in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// From a process: it claims to be `rank`. The token proves that `mpiexec` started the process.
    Hello {
        /// Secret of the job, from the process's environment.
        token: u128,
        /// Rank in the job that the process claims to have.
        rank: u32,
    },
    /// From a process: it has come to a fence with these values.
    Fence {
        /// Values that the process has put since its last fence.
        entries: Vec<PublishedEntry>,
    },
    /// From a process: it leaves MPI normally.
    Finalized,
    /// From a process: the job ends.
    Abort {
        /// Exit code for the job.
        code: i32,
        /// The reason in words for the user, at most [`MAX_VALUE`] bytes.
        message: String,
    },
    /// From `mpiexec`: the process has joined. The memory of the hang report comes with the frame.
    Welcome {
        /// Number of earlier MPI programs of this rank: a rank may be a script that starts several MPI programs. Each program has
        /// its own keys.
        generation: u32,
        /// Nodes in the order of the ranks, each with the number of consecutive ranks on it.
        nodes: Vec<(u32, u32)>,
    },
    /// From `mpiexec`: an ancestor of the process is this rank, so the process is a world of one.
    Alone,
    /// From `mpiexec`: the process cannot join.
    Refused {
        /// Reason in words for the user, at most [`MAX_VALUE`] bytes.
        reason: String,
    },
    /// From `mpiexec`: all processes have come to the fence.
    Fenced {
        /// Values that all processes have put since the last fence, in any order.
        entries: Vec<PublishedEntry>,
    },
}

/// Writer of a frame's fields.
struct Writer(Vec<u8>);

impl Writer {
    fn new(kind: u8) -> Self {
        Writer(vec![0, 0, 0, 0, kind])
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(self, value: &[u8]) -> Self {
        let mut w = self.u32(value.len() as u32);
        w.0.extend(value);
        w
    }

    fn entries(self, entries: &[PublishedEntry]) -> Self {
        entries.iter().fold(self.u32(entries.len() as u32), |w, (rank, key, value)| {
            w.u32(*rank).bytes(key.as_bytes()).bytes(value)
        })
    }

    fn end(mut self) -> Vec<u8> {
        let length = (self.0.len() - 4) as u32;
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

/// Reader of a frame's fields.
struct Reader<'a>(&'a [u8]);

fn damaged(what: &str) -> BootstrapError {
    BootstrapError(format!("damaged frame between a process and mpiexec: {what}"))
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], BootstrapError> {
        let (head, tail) = self.0.split_at_checked(length).ok_or_else(|| damaged("too short"))?;
        self.0 = tail;
        Ok(head)
    }

    fn u8(&mut self) -> Result<u8, BootstrapError> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32, BootstrapError> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    fn bytes(&mut self, limit: usize) -> Result<&'a [u8], BootstrapError> {
        let length = self.u32()? as usize;
        if length > limit {
            return Err(damaged(&format!("a field of {length} bytes, limit {limit}")));
        }
        self.take(length)
    }

    fn text(&mut self, limit: usize) -> Result<String, BootstrapError> {
        String::from_utf8(self.bytes(limit)?.to_vec()).map_err(|_| damaged("text is not UTF-8"))
    }

    fn entries(&mut self) -> Result<Vec<PublishedEntry>, BootstrapError> {
        let count = self.u32()?;
        // The list grows only as entries are read, so a wrong count allocates nothing.
        let mut entries = Vec::new();
        for _ in 0..count {
            let rank = self.u32()?;
            entries.push((rank, self.text(MAX_KEY)?, self.bytes(MAX_VALUE)?.to_vec()));
        }
        Ok(entries)
    }

    fn pairs(&mut self) -> Result<Vec<(u32, u32)>, BootstrapError> {
        let count = self.u32()?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            pairs.push((self.u32()?, self.u32()?));
        }
        Ok(pairs)
    }

    fn end(self) -> Result<(), BootstrapError> {
        if self.0.is_empty() { Ok(()) } else { Err(damaged("too long")) }
    }
}

impl Frame {
    /// Returns the bytes to send, with the length.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Frame::Hello { token, rank } => {
                let mut w = Writer::new(1).u32(*rank);
                w.0.extend(token.to_le_bytes());
                w.end()
            }
            Frame::Fence { entries } => Writer::new(2).entries(entries).end(),
            Frame::Finalized => Writer::new(3).end(),
            Frame::Abort { code, message } => {
                Writer::new(4).u32(*code as u32).bytes(message.as_bytes()).end()
            }
            Frame::Welcome { generation, nodes } => {
                let w = Writer::new(5).u32(*generation).u32(nodes.len() as u32);
                nodes.iter().fold(w, |w, (node, ranks)| w.u32(*node).u32(*ranks)).end()
            }
            Frame::Alone => Writer::new(6).end(),
            Frame::Refused { reason } => Writer::new(7).bytes(reason.as_bytes()).end(),
            Frame::Fenced { entries } => Writer::new(8).entries(entries).end(),
        }
    }

    /// Reads a frame from its bytes without the length.
    pub fn decode(body: &[u8]) -> Result<Self, BootstrapError> {
        let mut r = Reader(body);
        let frame = match r.u8()? {
            1 => Frame::Hello {
                rank: r.u32()?,
                token: u128::from_le_bytes(r.take(16)?.try_into().expect("sixteen bytes")),
            },
            2 => Frame::Fence { entries: r.entries()? },
            3 => Frame::Finalized,
            4 => Frame::Abort { code: r.u32()? as i32, message: r.text(MAX_VALUE)? },
            5 => Frame::Welcome { generation: r.u32()?, nodes: r.pairs()? },
            6 => Frame::Alone,
            7 => Frame::Refused { reason: r.text(MAX_VALUE)? },
            8 => Frame::Fenced { entries: r.entries()? },
            kind => return Err(damaged(&format!("unknown kind {kind}"))),
        };
        r.end()?;
        Ok(frame)
    }

    /// Takes the first frame from the front of `buffer`. Returns `None` if the frame is incomplete.
    pub fn take(buffer: &mut Vec<u8>, limit: usize) -> Result<Option<Self>, BootstrapError> {
        let Some(head) = buffer.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > limit {
            return Err(damaged(&format!("a frame of {length} bytes, limit {limit}")));
        }
        if buffer.len() < 4 + length {
            return Ok(None);
        }
        let frame = Self::decode(&buffer[4..4 + length])?;
        buffer.drain(..4 + length);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Frame> {
        let entries = vec![(3, "address".to_string(), vec![1, 2, 3]), (4, String::new(), vec![])];
        vec![
            Frame::Hello { token: u128::MAX - 5, rank: 7 },
            Frame::Fence { entries: entries.clone() },
            Frame::Finalized,
            Frame::Abort { code: -3, message: "häßlich".into() },
            Frame::Welcome { generation: 2, nodes: vec![(0, 3), (1, 1)] },
            Frame::Alone,
            Frame::Refused { reason: "no".into() },
            Frame::Fenced { entries },
        ]
    }

    #[test]
    fn frames_survive_the_wire_in_any_pieces() {
        let stream: Vec<u8> = samples().iter().flat_map(Frame::encode).collect();
        let (mut buffer, mut got) = (Vec::new(), Vec::new());
        for byte in stream {
            buffer.push(byte);
            while let Some(frame) = Frame::take(&mut buffer, MAX_REQUEST).unwrap() {
                got.push(frame);
            }
        }
        assert_eq!(got, samples());
        assert!(buffer.is_empty());
    }

    #[test]
    fn truncated_and_overlong_frames_are_refused() {
        for frame in samples() {
            let body = &frame.encode()[4..];
            for end in 0..body.len() {
                assert!(Frame::decode(&body[..end]).is_err(), "{frame:?} cut at {end}");
            }
            assert!(Frame::decode(&[body, &[0]].concat()).is_err());
        }
    }

    #[test]
    fn lengths_over_the_limit_are_refused_before_allocation() {
        let mut huge = u32::MAX.to_le_bytes().to_vec();
        assert!(Frame::take(&mut huge, MAX_REQUEST).is_err());
        // A fence that claims 2^32 - 1 entries, and has none.
        assert!(Frame::decode(&[2, 255, 255, 255, 255]).is_err());
        // An abort whose message claims to be longer than its frame.
        assert!(Frame::decode(&[4, 0, 0, 0, 0, 200, 0, 0, 0, b'x']).is_err());
    }
}
