//! Intercommunicators (MPI 5.0, section 7.6): creation, remote group, merge.

use crate::arguments::{comm, intracomm, named_comm, not_null, rank, store, store_new, tag};
use crate::chapters::communicators::inherited;
use crate::chapters::connecting::joined;
use crate::constants::*;
use crate::engine::CommObject;
use crate::error::Error;
use crate::state::state;
use crate::types::{Comm, Group};
use crate::waiting::WaitingCall;
use std::ffi::c_int;
use std::rc::Rc;
use weft_process::MergePlace;

/// MPI_Comm_test_inter.
pub(crate) unsafe fn comm_test_inter(handle: Comm, flag: *mut c_int) -> Result<(), Error> {
    let yes = comm(handle)?.remote().is_some();
    // SAFETY: `flag` points to room for the result, as MPI requires of the program.
    unsafe { store(flag, c_int::from(yes), "flag") }
}

/// Returns the remote group of an intercommunicator. Fails for an intracommunicator.
fn remote(comm: &Rc<CommObject>) -> Result<&weft_process::Group, Error> {
    comm.remote().ok_or_else(|| {
        let text = "argument comm is an intracommunicator, which has one group";
        Error::new(MPI_ERR_COMM, text)
    })
}

/// MPI_Comm_remote_size.
pub(crate) unsafe fn comm_remote_size(handle: Comm, size: *mut c_int) -> Result<(), Error> {
    let size_ = remote(&comm(handle)?)?.size();
    // SAFETY: `size` points to room for the result, as MPI requires of the program.
    unsafe { store(size, size_ as c_int, "size") }
}

/// MPI_Comm_remote_group.
pub(crate) unsafe fn comm_remote_group(handle: Comm, group: *mut Group) -> Result<(), Error> {
    let found = remote(&comm(handle)?)?.clone();
    // SAFETY: `group` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().groups, found, Group, group, "group") }
}

/// MPI_Intercomm_create.
pub(crate) unsafe fn intercomm_create(
    local_comm: Comm,
    local_leader: c_int,
    peer_comm: Comm,
    remote_leader: c_int,
    tag_: c_int,
    newintercomm: *mut Comm,
) -> Result<(), Error> {
    not_null(newintercomm, "newintercomm")?;
    let local = intracomm(local_comm)?;
    let leader = rank(&local, local_leader, "local_leader", MPI_ERR_RANK)?;
    let tag = tag(tag_, "tag")?;
    // The peer communicator is significant only at the leader.
    let peer =
        if local.rank() == leader { Some(named_comm(peer_comm, "peer_comm")?) } else { None };
    let peer = match &peer {
        Some(peer) => Some((&**peer, rank(peer, remote_leader, "remote_leader", MPI_ERR_RANK)?)),
        None => None,
    };
    let call = WaitingCall::new("MPI_Intercomm_create");
    let parties = local.engine().block_on(&call, local.intercomm(leader, peer, tag))?;
    let new = joined(&call, parties)?;
    // SAFETY: `newintercomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newintercomm, inherited(&local, Some(new)), "newintercomm") }
}

/// MPI_Intercomm_merge.
pub(crate) unsafe fn intercomm_merge(
    handle: Comm,
    high: c_int,
    newintracomm: *mut Comm,
) -> Result<(), Error> {
    not_null(newintracomm, "newintracomm")?;
    let old = comm(handle)?;
    remote(&old)?;
    let place = if high != 0 { MergePlace::High } else { MergePlace::Low };
    let new = old.engine().block_on(&WaitingCall::new("MPI_Intercomm_merge"), old.merge(place))?;
    // SAFETY: `newintracomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newintracomm, inherited(&old, Some(new)), "newintracomm") }
}
