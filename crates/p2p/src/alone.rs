//! Fixture for tests of parts: a single process with its fabric, which sends to itself.

use crate::envelope::Envelope;
use crate::limits::ProtocolLimits;
use crate::transport::Transport;
use weft_bootstrap::threads;
use weft_fabric::{ArrivedMessage, Fabric};
use weft_fabric_shm::{Shm, ShmOptions};

pub fn transport(limits: ProtocolLimits) -> Transport<Shm> {
    let mut world = threads(1).remove(0);
    let options = ShmOptions { cma: true, ..ShmOptions::default() };
    Transport::new(Shm::connect_with(&mut world, options).expect("connected"), limits)
}

/// Returns the next message, with its envelope.
pub fn next(transport: &Transport<Shm>) -> Option<(Envelope, ArrivedMessage)> {
    let message = transport.fabric.receive(None)?;
    Some((Envelope::decode(message.head).expect("one of ours"), message))
}
