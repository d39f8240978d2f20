//! By what this job reaches processes of others: shared memory where that alone connects its own, else a network that takes peers by
//! their addresses.

use crate::constants::MPI_ERR_UNSUPPORTED_OPERATION;
use crate::error::Error;
use crate::node::Engine;
use std::net::IpAddr;
use weft_bootstrap::ports::{Invitation, Member, is_on_network, machine};
use weft_fabric::linking::{Exchange, Whom};
use weft_fabric_ofi::Ofi;
use weft_fabric_shm::Shm;

/// The fabric that makes peers of processes of other jobs.
#[derive(Clone, Copy)]
pub enum Way<'e> {
    /// Processes on this machine.
    Memory(&'e Shm),
    /// Processes wherever the network leads; those of this machine, too.
    Network(&'e Ofi),
}

/// A link, as its fabric knows it.
#[derive(Clone)]
pub enum Shared {
    Memory(std::rc::Rc<weft_fabric_shm::Link>),
    Network(weft_fabric_ofi::Link),
}

impl<'e> Way<'e> {
    /// That of this job: all its processes find the same. An error if there is none.
    pub fn of(engine: &'e Engine) -> Result<Way<'e>, Error> {
        let fabric = engine.endpoint().fabric();
        let way = match fabric.shm().filter(|_| fabric.is_shm_alone()) {
            Some(shm) => Some(Way::Memory(shm)),
            None => fabric.linkable().filter(|ofi| ofi.ip().is_some()).map(Way::Network),
        };
        way.ok_or_else(|| {
            let network = fabric.describe().into_iter().next().unwrap_or_default();
            let text = format!(
                "jobs are connected by shared memory, or by TCP and what speaks it; here it is {network} (WEFT_FABRIC=shm+ofi is TCP \
                 between hosts)"
            );
            Error::new(MPI_ERR_UNSUPPORTED_OPERATION, text)
        })
    }

    /// Where ports of this process are; `None`: on this machine alone.
    pub fn port_address(self) -> Option<IpAddr> {
        match self {
            Way::Memory(_) => None,
            Way::Network(ofi) => ofi.ip(),
        }
    }

    /// Whether a port of this name is one that this job can reach; an error in words if not.
    pub fn reaches(self, port: &str) -> Result<(), &'static str> {
        match (self, is_on_network(port)) {
            (Way::Memory(_), true) => Err(
                "it is a port on a network, and shared memory alone connects this job: start it with WEFT_FABRIC=shm+ofi",
            ),
            (Way::Network(_), false) => Err(
                "it is a port of a job that shared memory alone connects, and a network connects this one: start the other one \
                 with WEFT_FABRIC=shm+ofi",
            ),
            _ => Ok(()),
        }
    }

    /// What two jobs must have in common.
    pub fn dialect(self, engine: &Engine) -> String {
        match self {
            Way::Memory(_) => machine(),
            Way::Network(ofi) => {
                // Names of memory are others where shared memory has its part in them.
                let shm = if engine.endpoint().fabric().shm().is_some() {
                    "shared memory and "
                } else {
                    ""
                };
                format!("{shm}{}", ofi.dialect())
            }
        }
    }

    /// Makes peers of `members`.
    pub fn admit(
        self,
        members: (&[Whom], usize),
        invitation: &Invitation,
        member: &Member,
        exchange: Exchange<'_>,
    ) -> Result<Shared, String> {
        match self {
            Way::Memory(shm) => {
                let link = shm.admit(members.0, members.1, exchange);
                link.map(|link| Shared::Memory(link.into())).map_err(|error| error.to_string())
            }
            Way::Network(ofi) => {
                let stay = || member.try_clone()?.stay(ofi.alarm());
                ofi.admit(members, invitation.secret(), exchange, stay).map(Shared::Network)
            }
        }
    }

    /// Says that this process needs the others of `link` no more.
    pub fn say_left(self, link: &Shared) {
        match (self, link) {
            (Way::Memory(shm), Shared::Memory(link)) => shm.say_left(link),
            (Way::Network(ofi), Shared::Network(link)) => ofi.say_left(link),
            _ => unreachable!("a job has one way"),
        }
    }

    /// Forgets the peers that came with `link`.
    pub fn forget(self, link: Shared) {
        match (self, link) {
            (Way::Memory(shm), Shared::Memory(link)) => shm.forget_link(&link),
            (Way::Network(ofi), Shared::Network(link)) => ofi.forget_link(link),
            _ => unreachable!("a job has one way"),
        }
    }
}

impl Shared {
    /// What this process calls each member, by place.
    pub fn peers(&self) -> &[usize] {
        match self {
            Shared::Memory(link) => link.peers(),
            Shared::Network(link) => link.peers(),
        }
    }

    /// The peers that it has brought.
    pub fn new_peers(&self) -> &[usize] {
        match self {
            Shared::Memory(link) => link.new_peers(),
            Shared::Network(link) => link.new_peers(),
        }
    }

    /// Whether all others need this process no more.
    pub fn others_left(&self) -> bool {
        match self {
            Shared::Memory(link) => link.others_left(),
            Shared::Network(link) => link.others_left(),
        }
    }
}
