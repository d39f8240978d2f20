//! SHARED: everybody straight from the root, whose memory is read where it is.
//!
//! ```text
//!   0 --> 1     0 --> 2     0 --> 3     ...
//! ```
//! Cost: one round; N - 1 messages by the root. Where ranks share memory a message costs no more than the
//! notice that there is one, and large payloads are read from the root's memory by all at once, so that a rank
//! between would only be one more to wait for. Chosen on one machine.

use crate::Link;
use weft_fabric::{Fabric, Fault, Sge};

/// `data` of `root` is copied to `data` of everybody; same length everywhere.
pub async fn shared<F: Fabric>(link: &Link<F>, root: usize, data: Sge) -> Result<(), Fault> {
    if link.rank != root {
        return link.recv(root, data).await;
    }
    let size = link.size();
    let mut sends = Vec::new();
    for to in (1..size).map(|i| (root + i) % size) {
        sends.extend(link.isend(to, data));
    }
    link.wait_all(sends).await
}
