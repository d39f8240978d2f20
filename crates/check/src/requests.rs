//! Requests of the program.

use crate::call_site::CallSite;
use crate::collective::CollectiveComparison;
use crate::datatype::TypeFacts;
use crate::marks::{CommPeer, SendRecord};
use crate::memory_use::BufferRange;
use crate::poison::BufferPoison;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The null handle.
pub const MPI_REQUEST_NULL: usize = 0x180;

/// Elements of a receive buffer.
#[derive(Clone)]
pub struct ReceiveElements {
    pub facts: Arc<TypeFacts>,
    pub count: i64,
}

/// A receive of a request.
#[derive(Clone)]
pub struct RequestReceive {
    pub comm: usize,
    pub elements: ReceiveElements,
    /// Time at which the receive began, if the user asks for waits; else 0.
    pub began: u64,
    /// Number of a partitioned receive, until it is compared.
    pub partitioned: Option<u64>,
}

/// A send that has a mark of its own, because the user asks for waits.
#[derive(Clone, Copy)]
pub struct TimedSend {
    pub to: CommPeer,
    pub mark: u32,
    /// Record with the time at which the send began.
    pub record: SendRecord,
}

/// A request.
pub struct RequestFacts {
    /// Number of the operation; a persistent request gets a new number at each start.
    pub operation: u64,
    pub function: &'static str,
    pub site: CallSite,
    /// Address of the variable into which the call has written the handle. Several sends that are complete may have the same handle.
    pub variable: usize,
    pub is_persistent: bool,
    pub is_active: bool,
    pub ranges: Vec<BufferRange>,
    /// Poison in the ranges that the operation overwrites.
    pub poison: BufferPoison,
    /// Sample of each range, as it was when the operation began.
    pub samples: Vec<u64>,
    pub receive: Option<RequestReceive>,
    /// Send of the request, if the user asks for waits.
    pub send: Option<Box<TimedSend>>,
    /// Address of the communicator that the operation makes.
    pub new_comm: Option<usize>,
    /// Comparison of a collective operation among its ranks.
    pub comparison: Option<Box<CollectiveComparison>>,
}

/// Requests by handle.
#[derive(Default)]
pub struct Requests(FxHashMap<usize, Vec<RequestFacts>>);

impl Requests {
    /// Adds a request.
    pub fn add(&mut self, handle: usize, request: RequestFacts) {
        self.0.entry(handle).or_default().push(request);
    }

    /// Returns the request of a handle in the variable at an address. If several requests have the handle, and none was made in this
    /// variable, returns the oldest.
    pub fn find(&mut self, handle: usize, variable: usize) -> Option<&mut RequestFacts> {
        let all = self.0.get_mut(&handle)?;
        let at = all.iter().position(|request| request.variable == variable).unwrap_or(0);
        all.get_mut(at)
    }

    /// Removes a request. Also returns the operations of all other requests with the same handle, if the request could be any of them.
    pub fn remove(&mut self, handle: usize, variable: usize) -> Option<(RequestFacts, Vec<u64>)> {
        let all = self.0.get_mut(&handle)?;
        let exact = all.iter().position(|request| request.variable == variable);
        let request = (!all.is_empty()).then(|| all.remove(exact.unwrap_or(0)))?;
        // Requests that share a handle are complete sends, so their memory is not in use.
        let others =
            if exact.is_some() { vec![] } else { all.iter().map(|r| r.operation).collect() };
        if all.is_empty() {
            self.0.remove(&handle);
        }
        Some((request, others))
    }

    /// Returns all requests with a handle.
    pub fn with_handle(&mut self, handle: usize) -> impl Iterator<Item = &mut RequestFacts> {
        self.0.get_mut(&handle).into_iter().flatten()
    }

    /// Takes all requests.
    pub fn take(&mut self) -> Vec<RequestFacts> {
        std::mem::take(&mut self.0).into_values().flatten().collect()
    }
}
