//! Reasons why the ranks of a job could not be connected.

use std::fmt;
use weft_fabric::{Fault, FaultCause};
use weft_fabric_ofi::OfiConnectError;
use weft_fabric_shm::ShmConnectError;
use weft_fabric_verbs::VerbsConnectError;

/// Reason why the ranks of a job could not be connected, in words for the user. The variant names the process that has met the
/// reason, so that the launcher can report the failure of that process and not the failures that follow from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectFailure {
    /// This process has met the reason.
    Here(String),
    /// Another process has failed.
    Peer(String),
}

impl ConnectFailure {
    /// Applies `change` to the words.
    pub fn map(self, change: impl FnOnce(String) -> String) -> ConnectFailure {
        match self {
            ConnectFailure::Here(words) => ConnectFailure::Here(change(words)),
            ConnectFailure::Peer(words) => ConnectFailure::Peer(change(words)),
        }
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ConnectFailure::Here(words) | ConnectFailure::Peer(words)) = self;
        f.write_str(words)
    }
}

impl From<String> for ConnectFailure {
    fn from(words: String) -> ConnectFailure {
        ConnectFailure::Here(words)
    }
}

impl From<ShmConnectError> for ConnectFailure {
    fn from(error: ShmConnectError) -> ConnectFailure {
        match error.is_of_peer() {
            true => ConnectFailure::Peer(error.to_string()),
            false => ConnectFailure::Here(error.to_string()),
        }
    }
}

impl From<OfiConnectError> for ConnectFailure {
    fn from(error: OfiConnectError) -> ConnectFailure {
        match &error {
            OfiConnectError::Peer { .. } => ConnectFailure::Peer(error.to_string()),
            OfiConnectError::Fault(fault) if is_of_peer(fault) => {
                ConnectFailure::Peer(error.to_string())
            }
            _ => ConnectFailure::Here(error.to_string()),
        }
    }
}

impl From<VerbsConnectError> for ConnectFailure {
    fn from(error: VerbsConnectError) -> ConnectFailure {
        match &error {
            VerbsConnectError::Peer { .. } => ConnectFailure::Peer(error.to_string()),
            _ => ConnectFailure::Here(error.to_string()),
        }
    }
}

/// Returns true if a peer has caused the fault.
fn is_of_peer(fault: &Fault) -> bool {
    matches!(fault.cause(), FaultCause::PeerLost { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc;
    use std::io;

    fn shm(error: io::Error) -> ConnectFailure {
        ShmConnectError::System { what: "receiving the segment", error }.into()
    }

    #[test]
    fn failures_of_a_peer_are_told_from_own_failures() {
        let of_peer = [libc::ECONNREFUSED, libc::ECONNRESET, libc::EPIPE];
        for error in of_peer {
            assert!(matches!(shm(io::Error::from_raw_os_error(error)), ConnectFailure::Peer(_)));
        }
        let ended = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert!(matches!(shm(ended), ConnectFailure::Peer(_)));
        for error in [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EACCES] {
            assert!(matches!(shm(io::Error::from_raw_os_error(error)), ConnectFailure::Here(_)));
        }
        let text = "16 bytes of shared memory are too little".to_owned();
        assert!(matches!(ShmConnectError::Lowest(text).into(), ConnectFailure::Peer(_)));
        let text = "the model of copies: no such file".to_owned();
        assert!(matches!(ShmConnectError::Model(text).into(), ConnectFailure::Here(_)));
        let peer = OfiConnectError::Peer { rank: 1, host: "b".into(), error: "no memory".into() };
        assert!(matches!(peer.into(), ConnectFailure::Peer(_)));
        let option =
            OfiConnectError::Option { name: "credits", value: "0".into(), allowed: "1".into() };
        assert!(matches!(option.into(), ConnectFailure::Here(_)));
    }
}
