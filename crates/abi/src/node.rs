//! The fabric of a real process.

pub use weft_fabric_shm::Shm as Node;

pub type Engine = weft_process::Engine<Node>;
pub type CommObject = weft_process::Comm<Node>;
