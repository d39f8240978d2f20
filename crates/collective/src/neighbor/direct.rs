//! DIRECT: every block straight to its neighbour, all at once (MPI 5.0, sections 8.6.1 and 8.6.2).
//!
//! ```text
//!   posts its receives, in order:   from 3    from 1    from 3
//!   then its sends, in order:       to 1      to 3      to 3        then waits for all
//! ```
//! What goes from one rank to another is taken in the order in which it was sent: the k-th send to a
//! rank matches the k-th receive from this one there, however many edges join the two.
//!
//! Cost: one message an edge, none waits for another; every block moves once. The plain form, always
//! chosen.

use crate::CommView;
use weft_fabric::{Fabric, Fault, Sge};

/// Sends each of `sends` to its rank and receives each of `receives` from its rank; a rank may be
/// named several times, and may be this one. Returns the bytes that came into each of `receives`, no
/// more than it has.
///
/// All requests are over when this returns, so that nothing comes later into memory that the caller
/// has back; unless the fabric itself failed.
pub async fn direct<F: Fabric>(
    link: &CommView<F>,
    sends: &[(usize, Sge)],
    receives: &[(usize, Sge)],
) -> Result<Vec<usize>, Fault> {
    let posted: Vec<_> = receives.iter().map(|&(from, into)| link.irecv(from, into)).collect();
    let sent: Vec<_> = sends.iter().filter_map(|&(to, out)| link.isend(to, out)).collect();
    let mut first = None;
    let mut bytes = Vec::with_capacity(posted.len());
    for request in posted {
        match link.endpoint.wait(request).await {
            Ok(status) => {
                bytes.push(status.bytes as usize);
                if status.lost > 0 {
                    let got = status.bytes + status.lost;
                    let (rank, expected) = (status.source as usize, status.bytes);
                    first.get_or_insert(Fault::truncated(rank, expected, got));
                }
            }
            Err(fault) => _ = first.get_or_insert(fault),
        }
    }
    for request in sent {
        if let Err(fault) = link.wait(request).await {
            first.get_or_insert(fault);
        }
    }
    first.map_or(Ok(bytes), Err)
}
