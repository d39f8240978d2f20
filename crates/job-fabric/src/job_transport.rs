//! Transport by which this job reaches processes of other jobs. If only shared memory connects the ranks of this job, the transport
//! is shared memory. Otherwise it is a network that takes peers by their addresses, with shared memory for the processes of one
//! machine if the fabric joins both.

use crate::{JobFabric, MemoryAndNetwork, local_peers};
use std::net::IpAddr;
use std::rc::Rc;
use weft_bootstrap::ports::{Member, is_on_network, machine};
use weft_fabric_shm::{Shm, ShmJobConnection};
use weft_job_connections::{Connectable, Exchange, JobConnection, JobMembers, SessionMembers};

/// The fabrics of this job that can make peers of processes of other jobs.
#[derive(Clone, Copy)]
pub enum JobTransport<'e> {
    /// Shared memory, for processes on this machine.
    Memory(&'e Shm),
    /// A network, for all processes that it reaches, including processes of this machine.
    Network(&'e dyn Connectable),
    /// Shared memory for processes of this machine, a network for all other processes.
    Both(&'e dyn MemoryAndNetwork),
}

/// A link to another job: the parts of the link in the network and in shared memory.
#[derive(Clone)]
pub enum SharedConnection {
    /// Shared memory.
    Memory(Rc<ShmJobConnection>),
    /// A network.
    Network(JobConnection),
    /// The part of the network, and the part of shared memory if processes of several jobs are on this machine.
    Both(JobConnection, Option<Rc<ShmJobConnection>>),
}

impl<'e> JobTransport<'e> {
    /// Returns the transport of the job of `fabric`. All processes of the job get the same kind of transport. An error is in
    /// words.
    pub fn of(fabric: &'e JobFabric) -> Result<JobTransport<'e>, String> {
        let network = || {
            let network = fabric.linkable().filter(|network| network.ip().is_some())?;
            Some(fabric.joined().map_or(JobTransport::Network(network), JobTransport::Both))
        };
        let shm = fabric.shm().filter(|_| fabric.is_shm_alone());
        shm.map(JobTransport::Memory).or_else(network).ok_or_else(|| {
            let network = fabric.describe().into_iter().next().unwrap_or_default();
            format!(
                "jobs are connected by shared memory, by TCP and what speaks it, or by verbs where the adapter's interface has an IP \
                 address; here it is {network} (WEFT_FABRIC=shm+ofi is TCP between hosts)"
            )
        })
    }

    fn network(self) -> Option<&'e dyn Connectable> {
        match self {
            JobTransport::Memory(_) => None,
            JobTransport::Network(network) => Some(network),
            JobTransport::Both(both) => Some(both.far()),
        }
    }

    /// Returns the IP address of the MPI ports of this process. `None` if only processes on this machine can reach the ports.
    pub fn port_address(self) -> Option<IpAddr> {
        self.network().and_then(Connectable::ip)
    }

    /// Checks that this job can reach the MPI port named `port`. An error is in words.
    pub fn reaches(self, port: &str) -> Result<(), &'static str> {
        match (self.network(), is_on_network(port)) {
            (None, true) => Err(
                "it is a port on a network, and shared memory alone connects this job: start it with WEFT_FABRIC=shm+ofi, or \
                 shm+verbs if the other one is connected by verbs",
            ),
            (Some(_), false) => Err(
                "it is a port of a job that shared memory alone connects, and a network connects this one: start the other one \
                 with WEFT_FABRIC=shm+ofi, or shm+verbs if this one is connected by verbs",
            ),
            _ => Ok(()),
        }
    }

    /// Returns a text that must be equal in two jobs to be linked. It differs for a network with and without shared memory,
    /// because remote addresses contain a part for shared memory only if the fabric joins both.
    pub fn dialect(self) -> String {
        match self {
            JobTransport::Memory(_) => machine(),
            JobTransport::Network(network) => network.dialect(),
            JobTransport::Both(both) => format!("shared memory and {}", both.far().dialect()),
        }
    }

    /// Makes peers of the processes `members`, whose machines are `machines`, both by place. Only the members know `secret`.
    /// `member` is this process in the session of the members.
    pub fn admit(
        self,
        members: SessionMembers<'_>,
        machines: &[&str],
        secret: u128,
        member: &Member,
        exchange: Exchange<'_>,
    ) -> Result<SharedConnection, String> {
        let stay = |network: &dyn Connectable| {
            let stays = member.try_clone().and_then(|member| member.stay(network.alarm()));
            stays.map_err(|error| error.to_string())
        };
        match self {
            JobTransport::Memory(shm) => {
                let link = shm.admit(members.identities, members.place, exchange, |_, _| {});
                link.map(|link| SharedConnection::Memory(link.into()))
                    .map_err(|error| error.to_string())
            }
            JobTransport::Network(network) => {
                let mut stay = |_: JobMembers<'_>, _: Exchange<'_>| stay(network);
                network.admit(members, secret, exchange, &mut stay).map(SharedConnection::Network)
            }
            JobTransport::Both(both) => {
                let mut here = None;
                let mut first = |known: JobMembers<'_>, exchange: Exchange<'_>| {
                    here = local_peers::admit(both, members, machines, known, exchange)?;
                    stay(both.far())
                };
                let link = both.far().admit(members, secret, exchange, &mut first)?;
                Ok(SharedConnection::Both(link, here.map(Rc::new)))
            }
        }
    }

    /// Tells the other members of `link` that this process does not need them any more.
    pub fn say_left(self, link: &SharedConnection) {
        match (self, link) {
            (JobTransport::Memory(shm), SharedConnection::Memory(link)) => shm.say_left(link),
            (JobTransport::Network(network), SharedConnection::Network(link)) => {
                network.say_left(link)
            }
            (JobTransport::Both(both), SharedConnection::Both(link, near)) => {
                near.iter().for_each(|near| both.near().say_left(near));
                both.far().say_left(link);
            }
            _ => unreachable!("a job has one way"),
        }
    }

    /// Forgets the peers that `link` has added.
    pub fn forget(self, link: SharedConnection) {
        match (self, link) {
            (JobTransport::Memory(shm), SharedConnection::Memory(link)) => shm.forget_link(&link),
            (JobTransport::Network(network), SharedConnection::Network(link)) => {
                network.forget_link(link)
            }
            (JobTransport::Both(both), SharedConnection::Both(link, near)) => {
                link.new_peers().iter().for_each(|&peer| both.forget_near(peer));
                near.iter().for_each(|near| both.near().forget_link(near));
                both.far().forget_link(link);
            }
            _ => unreachable!("a job has one way"),
        }
    }
}

impl SharedConnection {
    /// Returns the number by which this process knows each member, by place.
    pub fn peers(&self) -> &[usize] {
        match self {
            SharedConnection::Memory(link) => link.peers(),
            SharedConnection::Network(link) | SharedConnection::Both(link, _) => link.peers(),
        }
    }

    /// Returns the numbers of the peers that this link has added.
    pub fn new_peers(&self) -> &[usize] {
        match self {
            SharedConnection::Memory(link) => link.new_peers(),
            SharedConnection::Network(link) | SharedConnection::Both(link, _) => link.new_peers(),
        }
    }

    /// Returns true if all other members have said that they do not need this process any more.
    pub fn others_left(&self) -> bool {
        match self {
            SharedConnection::Memory(link) => link.others_left(),
            SharedConnection::Network(link) | SharedConnection::Both(link, _) => link.others_left(),
        }
    }
}
