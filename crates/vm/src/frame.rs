//! Protocol between the host, the agents and `weft-vm-run`, over a virtio port or TCP.
//!
//! A frame is one byte of kind, four bytes of length (little endian), and the body: raw bytes for stream data, JSON for
//! everything else.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{Error, ErrorKind, Read, Result, Write};

/// Setup of an agent for commands; the host sends it once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentSetup {
    /// The environment of commands that come over TCP.
    pub environment: Vec<(String, String)>,
    /// Words before the words of every limited command, such as `setpriv --reuid=nobody`.
    pub prefix: Vec<String>,
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunCommand {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Environment of the command; `None`: the environment of the setup.
    pub environment: Option<Vec<(String, String)>>,
    /// Working directory of the command; `None`: `/tmp`.
    pub folder: Option<String>,
    /// True if the command runs under the setup's prefix. Otherwise the command runs as root, like the agent itself.
    pub limited: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum VmFrame {
    /// The agent is ready.
    Ready,
    Setup(AgentSetup),
    Run(RunCommand),
    /// Standard input of the command.
    Input(Vec<u8>),
    InputEnd,
    /// Standard output of the command.
    Output(Vec<u8>),
    /// Standard error of the command.
    Errors(Vec<u8>),
    /// Sign of life, sent every second while a command runs, so that silence indicates a failure.
    Alive,
    /// The command ended: its exit code, or 128 plus the signal, as in a shell.
    Ended(i32),
}

/// Maximum size in bytes of a frame's body. Data comes in pieces of at most 64 KiB.
const LONGEST: usize = 1 << 20;

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(Error::other)
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|e| Error::new(ErrorKind::InvalidData, e))
}

/// Writes a frame in one piece.
pub fn write(to: &mut impl Write, frame: &VmFrame) -> Result<()> {
    let (kind, body) = match frame {
        VmFrame::Ready => (0, Vec::new()),
        VmFrame::Setup(setup) => (1, json(setup)?),
        VmFrame::Run(run) => (2, json(run)?),
        VmFrame::Input(bytes) => (3, bytes.clone()),
        VmFrame::InputEnd => (4, Vec::new()),
        VmFrame::Output(bytes) => (5, bytes.clone()),
        VmFrame::Errors(bytes) => (6, bytes.clone()),
        VmFrame::Alive => (7, Vec::new()),
        VmFrame::Ended(code) => (8, code.to_le_bytes().to_vec()),
    };
    if body.len() > LONGEST {
        let text = format!("a frame of kind {kind} has {} bytes, at most {LONGEST}", body.len());
        return Err(Error::new(ErrorKind::InvalidInput, text));
    }
    let mut all = vec![kind];
    all.extend((body.len() as u32).to_le_bytes());
    all.extend(body);
    to.write_all(&all)?;
    to.flush()
}

/// Reads a frame; `None` at the end of the stream.
pub fn read(from: &mut impl Read) -> Result<Option<VmFrame>> {
    let mut head = [0; 5];
    loop {
        match from.read(&mut head[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    from.read_exact(&mut head[1..])?;
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    let bad = |text: String| Error::new(ErrorKind::InvalidData, text);
    if length > LONGEST {
        return Err(bad(format!("a frame of kind {kind} claims {length} bytes, over {LONGEST}")));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some(match kind {
        0 => VmFrame::Ready,
        1 => VmFrame::Setup(parsed(&body)?),
        2 => VmFrame::Run(parsed(&body)?),
        3 => VmFrame::Input(body),
        4 => VmFrame::InputEnd,
        5 => VmFrame::Output(body),
        6 => VmFrame::Errors(body),
        7 => VmFrame::Alive,
        8 => {
            let code = body.try_into().map_err(|_| bad("an exit code has 4 bytes".to_owned()))?;
            VmFrame::Ended(i32::from_le_bytes(code))
        }
        _ => return Err(bad(format!("a frame of kind {kind}; kinds are 0 to 8"))),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_comes_back() {
        let pair = ("A".to_owned(), "b c".to_owned());
        let run = RunCommand {
            words: vec!["sh".to_owned(), "-c".to_owned(), "echo \"ä\"".to_owned()],
            environment: Some(vec![pair.clone()]),
            folder: None,
            limited: true,
        };
        let all = [
            VmFrame::Ready,
            VmFrame::Setup(AgentSetup { environment: vec![pair], prefix: vec!["env".to_owned()] }),
            VmFrame::Run(run),
            VmFrame::Input(vec![0, 255]),
            VmFrame::InputEnd,
            VmFrame::Output(b"x\n".to_vec()),
            VmFrame::Errors(Vec::new()),
            VmFrame::Alive,
            VmFrame::Ended(-3),
        ];
        let mut bytes = Vec::new();
        for frame in &all {
            write(&mut bytes, frame).unwrap();
        }
        let mut from = bytes.as_slice();
        for frame in all {
            assert_eq!(read(&mut from).unwrap(), Some(frame));
        }
        assert_eq!(read(&mut from).unwrap(), None);
    }

    #[test]
    fn bad_frames_are_refused() {
        let kind = |bytes: &[u8]| read(&mut &bytes[..]).unwrap_err().kind();
        assert_eq!(kind(&[5, 255, 255, 255, 255]), ErrorKind::InvalidData);
        assert_eq!(kind(&[9, 0, 0, 0, 0]), ErrorKind::InvalidData);
        assert_eq!(kind(&[8, 1, 0, 0, 0, 7]), ErrorKind::InvalidData);
        assert_eq!(kind(&[2, 1, 0, 0, 0, b'{']), ErrorKind::InvalidData);
        assert_eq!(kind(&[5, 2, 0, 0, 0, 1]), ErrorKind::UnexpectedEof);
        let long = VmFrame::Input(vec![0; LONGEST + 1]);
        assert!(write(&mut Vec::new(), &long).is_err());
    }
}
