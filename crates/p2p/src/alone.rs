//! For tests of parts: a process alone with its fabric, which sends to itself.

use crate::envelope::Envelope;
use crate::limits::Limits;
use crate::transport::Transport;
use weft_bootstrap::threads;
use weft_fabric::{Fabric, Message};
use weft_fabric_shm::{Options, Shm};

pub fn transport(limits: Limits) -> Transport<Shm> {
    let mut world = threads(1).remove(0);
    let options = Options { cma: true, ..Options::default() };
    Transport::new(Shm::connect_with(&mut world, options).expect("connected"), limits)
}

/// The next message, with its envelope.
pub fn next(transport: &Transport<Shm>) -> Option<(Envelope, Message)> {
    let message = transport.fabric.receive(None)?;
    Some((Envelope::decode(message.head).expect("one of ours"), message))
}
