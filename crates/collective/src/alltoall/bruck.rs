//! BRUCK: blocks travel together, a digit of their distance a round. Bruck et al. 1997;
//! CollGM, section 3.4.
//!
//! ```text
//!   8 ranks, radix 2    block for r+5 = 101b of rank r:    r -> r+1 (bit 0)    r+1 -> r+5 (bit 2)
//! ```
//! Cost: `radix - 1` messages each way in each of ceil(log N to base `radix`) rounds, about N / radix
//! blocks in each; so with radix 2, log2 N rounds of N / 2 blocks, and N is the direct exchange. Chosen
//! for small blocks.

use crate::{Blocks, Link, work};
use weft_fabric::{Fabric, Fault, Sge};

/// `out[r]` goes to `into[me]` of rank r; all blocks have the same length. `out` and `into` do not
/// overlap.
///
/// # Panics
/// If `radix` is below 2.
pub async fn bruck<F: Fabric>(
    link: &Link<F>,
    out: &[Sge],
    into: &[Sge],
    radix: usize,
) -> Result<(), Fault> {
    assert!(radix >= 2, "an alltoall of radix {radix}: at least 2");
    let (me, size) = (link.rank, link.size());
    let len = out[me].len();
    let room = || work::stage(link, out[me], size * len);
    // Block j has j ranks to go; what comes is kept where it came, and what leaves is packed.
    let (here, leaving, coming) = (room(), room(), room());
    let blocks = |sge: Sge| Blocks::of(sge, std::iter::repeat_n(len, size));
    let (here, leaving, coming) = (blocks(here.sge()), blocks(leaving.sge()), blocks(coming.sge()));
    work::copy(link, out[me], into[me]);
    for j in 1..size {
        work::copy(link, out[(me + j) % size], here.block(j));
    }
    let mut requests = Vec::with_capacity(2 * radix.min(size));
    let mut place = 1;
    while place < size {
        let moved = |digit: usize| (1..size).filter(move |j| j / place % radix == digit);
        let hops = || (1..radix).take_while(|digit| digit * place < size);
        let mut at = 0;
        for digit in hops() {
            let first = at;
            for j in moved(digit) {
                work::copy(link, here.block(j), leaving.block(at));
                at += 1;
            }
            let (to, from) = ((me + digit * place) % size, (me + size - digit * place) % size);
            requests.push(link.irecv(from, coming.range(first, at)));
            requests.extend(link.isend(to, leaving.range(first, at)));
        }
        link.wait_all(requests.drain(..)).await?;
        for (at, j) in hops().flat_map(moved).enumerate() {
            work::copy(link, coming.block(at), here.block(j));
        }
        place *= radix;
    }
    for j in 1..size {
        work::copy(link, here.block(j), into[(me + size - j) % size]);
    }
    Ok(())
}
