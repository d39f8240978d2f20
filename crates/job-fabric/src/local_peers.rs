//! Shared memory between processes of one machine whose jobs a network connects. It carries their messages, as it does within a
//! job.

use crate::MemoryAndNetwork;
use weft_fabric_shm::{ADMIT_ROUNDS, ShmJobConnection};
use weft_job_connections::{Exchange, JobMembers, PeerIdentity, SessionMembers, messages};

/// Makes peers over shared memory of the members on this machine. The network has already made peers of all members, as `known`.
/// All members call this function.
pub fn admit(
    joined: &dyn MemoryAndNetwork,
    members: SessionMembers<'_>,
    machines: &[&str],
    known: JobMembers<'_>,
    exchange: Exchange<'_>,
) -> Result<Option<ShmJobConnection>, String> {
    let SessionMembers { identities: members, place } = members;
    let here: Vec<usize> =
        (0..machines.len()).filter(|&at| machines[at] == machines[place]).collect();
    if here.iter().all(|&at| members[at].job == members[place].job) {
        // No process of another job is on this machine, but all members must take part in the exchanges.
        (0..ADMIT_ROUNDS).try_for_each(|_| exchange(messages::yes(b"")).map(drop))?;
        return Ok(None);
    }
    let is_new = |at: usize| known.new.contains(&known.peers[at]);
    let whom = |&at: &usize| {
        // A peer that is new to the network counts as new to shared memory, so that both ends agree.
        let known = if is_new(at) { None } else { joined.near_number(known.peers[at]) };
        PeerIdentity { known, ..members[at] }
    };
    let whoms: Vec<PeerIdentity> = here.iter().map(whom).collect();
    let place = here.iter().position(|&at| at == place).expect("this process is here");
    let mut of_those = |bytes: Vec<u8>| {
        let all = exchange(bytes)?;
        Ok(here.iter().map(|&at| all[at].clone()).collect())
    };
    let added = |at: usize, near| joined.add_near(known.peers[here[at]], near);
    let link = joined.near().admit(&whoms, place, &mut of_those, added);
    link.map(Some).map_err(|error| error.to_string())
}
