//! Numbers of processes with which a collective operation exchanges data: lengths of arrays of datatypes.

use super::NumberedHandle;
use std::ffi::c_int;

type Number<C> = unsafe extern "C" fn(C, *mut c_int) -> c_int;

/// The queries of the C library about a communicator, and its numbers of topologies.
pub struct CommQueries<C> {
    pub is_inter: Number<C>,
    pub size: Number<C>,
    pub remote_size: Number<C>,
    pub rank: Number<C>,
    pub topology: Number<C>,
    pub dimensions: Number<C>,
    pub graph_neighbors: unsafe extern "C" fn(C, c_int, *mut c_int) -> c_int,
    pub dist_neighbors: unsafe extern "C" fn(C, *mut c_int, *mut c_int, *mut c_int) -> c_int,
    pub cart: c_int,
    pub graph: c_int,
    pub dist_graph: c_int,
}

/// The processes of a collective operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PeerGroup {
    All,
    Destinations,
    Sources,
}

impl<C: NumberedHandle> CommQueries<C> {
    fn ask(&self, comm: C, query: Number<C>) -> c_int {
        let mut number = 0;
        // SAFETY: the query takes any handle, and the pointer may be written.
        match unsafe { query(comm, &raw mut number) } {
            0 => number,
            _ => 0,
        }
    }

    /// Returns the number of peers. It is 0 for a handle that the library refuses, which then refuses the operation, too.
    pub fn count(&self, comm: C, peers: PeerGroup) -> usize {
        super::length(match peers {
            PeerGroup::All if self.ask(comm, self.is_inter) != 0 => {
                self.ask(comm, self.remote_size)
            }
            PeerGroup::All => self.ask(comm, self.size),
            PeerGroup::Destinations | PeerGroup::Sources => self.neighbors(comm, peers),
        })
    }

    fn neighbors(&self, comm: C, peers: PeerGroup) -> c_int {
        let topology = self.ask(comm, self.topology);
        let (mut sources, mut destinations, mut weighted) = (0, 0, 0);
        // SAFETY: the queries take any handle, and the pointers may be written.
        unsafe {
            match topology {
                _ if topology == self.cart => return 2 * self.ask(comm, self.dimensions),
                _ if topology == self.graph => {
                    (self.graph_neighbors)(comm, self.ask(comm, self.rank), &raw mut sources);
                    return sources;
                }
                _ if topology == self.dist_graph => {
                    (self.dist_neighbors)(
                        comm,
                        &raw mut sources,
                        &raw mut destinations,
                        &raw mut weighted,
                    );
                }
                _ => {}
            }
        }
        if peers == PeerGroup::Sources { sources } else { destinations }
    }
}
