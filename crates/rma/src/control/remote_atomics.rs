//! Atomics on single words, and reads of short tables, in a peer's memory: by this processor if it sees the words, else
//! by the fabric.

use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use weft_fabric::{Counter, Fabric, FabricExt, Fault, RemoteAddr, Sge, Staging};
use weft_p2p::Endpoint;

/// Adds to a word that this process sees. Returns the former value.
pub fn add_seen(word: &AtomicU64, operand: u64) -> u64 {
    word.fetch_add(operand, SeqCst)
}

/// Replaces a word that this process sees if it is `old`. Returns the former value.
pub fn swap_seen(word: &AtomicU64, old: u64, new: u64) -> u64 {
    let (Ok(was) | Err(was)) = word.compare_exchange(old, new, SeqCst, SeqCst);
    was
}

/// Adds to a word of `peer`. Returns the former value.
pub async fn add<F: Fabric>(
    endpoint: &Rc<Endpoint<F>>,
    peer: usize,
    at: RemoteAddr,
    operand: u64,
) -> Result<u64, Fault> {
    let fabric = endpoint.fabric();
    if let Some([word]) = fabric.words(peer, at, 1).as_deref() {
        return Ok(add_seen(word, operand));
    }
    let post = |into, done| fabric.fetch_add(peer, at, operand, into, Some(done));
    Ok(word(&fetched(endpoint, 8, post).await?))
}

/// Replaces a word of `peer` if it is `old`. Returns the former value.
pub async fn swap<F: Fabric>(
    endpoint: &Rc<Endpoint<F>>,
    peer: usize,
    at: RemoteAddr,
    old: u64,
    new: u64,
) -> Result<u64, Fault> {
    let fabric = endpoint.fabric();
    if let Some([word]) = fabric.words(peer, at, 1).as_deref() {
        return Ok(swap_seen(word, old, new));
    }
    let post = |into, done| fabric.compare_swap(peer, at, old, new, into, Some(done));
    Ok(word(&fetched(endpoint, 8, post).await?))
}

fn word(from: &Staging) -> u64 {
    let mut bytes = [0; 8];
    from.sge().read(&mut bytes);
    u64::from_ne_bytes(bytes)
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
    let post = |into, done| endpoint.fabric().read(peer, into, at, Some(done));
    let staging = fetched(endpoint, 8 * count, post).await?;
    let mut bytes = vec![0; 8 * count];
    staging.sge().read(&mut bytes);
    let word = |chunk: &[u8]| u64::from_ne_bytes(chunk.try_into().expect("8 bytes"));
    Ok(bytes.chunks_exact(8).map(word).collect())
}
