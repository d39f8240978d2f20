//! Atomics on single words, and reads of short tables, by the fabric. The words are in a peer's memory that this processor does not
//! see.

use std::rc::Rc;
use weft_collective::words;
use weft_fabric::{
    CompareSwap, Counter, Fabric, Fault, FetchAdd, RemoteAddr, RemoteRead, Sge, Staging,
};
use weft_p2p::Endpoint;

/// Adds to a word of `peer`. Returns the former value.
pub async fn add<F: Fabric>(
    endpoint: &Rc<Endpoint<F>>,
    peer: usize,
    at: RemoteAddr,
    operand: u64,
) -> Result<u64, Fault> {
    let post = |into, done| {
        let add = FetchAdd { target: at, operand, result: into, done: Some(done) };
        endpoint.fabric().fetch_add(peer, &add)
    };
    Ok(words::read(fetched(endpoint, 8, post).await?.sge(), 0))
}

/// Replaces a word of `peer` by `new` if its value is `old`. Returns the former value.
pub async fn swap<F: Fabric>(
    endpoint: &Rc<Endpoint<F>>,
    peer: usize,
    at: RemoteAddr,
    old: u64,
    new: u64,
) -> Result<u64, Fault> {
    let post = |result, done| {
        let swap = CompareSwap { target: at, compare: old, swap: new, result, done: Some(done) };
        endpoint.fabric().compare_swap(peer, &swap)
    };
    Ok(words::read(fetched(endpoint, 8, post).await?.sge(), 0))
}

/// Posts an operation and waits for it. Returns the fetched data.
async fn fetched<F: Fabric>(
    endpoint: &Rc<Endpoint<F>>,
    len: usize,
    post: impl FnOnce(Sge, Counter) -> Result<(), Fault>,
) -> Result<Staging, Fault> {
    let counters = endpoint.fabric().counters();
    let done = counters.allocate();
    let target = counters.value(done) + 1;
    let into = endpoint.staging().take(len);
    post(into.sge(), done)?;
    // After a fault the counter is not freed, because the operation may still advance it.
    endpoint.until(done, target).await?;
    counters.free(done);
    Ok(into)
}

/// Reads `count` words of `peer`.
pub async fn read<F: Fabric>(
    endpoint: &Rc<Endpoint<F>>,
    peer: usize,
    at: RemoteAddr,
    count: usize,
) -> Result<Vec<u64>, Fault> {
    let post = |into, done| endpoint.fabric().read(peer, &RemoteRead::new(into, at, Some(done)));
    let fetched = fetched(endpoint, 8 * count, post).await?;
    Ok((0..count).map(|i| words::read(fetched.sge(), i)).collect())
}
