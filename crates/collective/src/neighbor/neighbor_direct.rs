//! DIRECT: every block goes straight to its neighbour, all at once (MPI 5.0, sections 8.6.1 and 8.6.2).
//!
//! ```text
//!   posts its receives, in order:   from 3    from 1    from 3
//!   then its sends, in order:       to 1      to 3      to 3        then waits for all
//! ```
//! Messages from one rank to another are received in the order in which they were sent. So the k-th send to a rank matches that
//! rank's k-th receive from this rank, however many edges join the two ranks.
//!
//! Cost: one message per edge. No message waits for another message, and every block moves once. Always chosen.

use crate::CommView;
use weft_fabric::{Fabric, Fault, Sge};
use weft_p2p::TransferPattern;

/// Sends each of `sends` to its rank and receives each of `receives` from its rank. A rank may be named several times, and may be
/// this rank. Returns the number of bytes that came into each of `receives`, at most its length. All requests are complete when
/// this function returns, so that nothing arrives later in memory that the caller owns again. The exception is a failure of the
/// fabric itself.
pub async fn direct<F: Fabric>(
    link: &CommView<F>,
    sends: &[(usize, Sge)],
    receives: &[(usize, Sge)],
) -> Result<Vec<usize>, Fault> {
    // A rank with edges in both directions is assumed to have neighbours with edges in both directions.
    let pattern = match sends.is_empty() || receives.is_empty() {
        true => TransferPattern::Plain,
        false => TransferPattern::Exchange,
    };
    let receive = |&(from, into)| link.irecv_in(pattern, from, into);
    let posted: Vec<_> = receives.iter().map(receive).collect();
    let send = |&(to, out)| link.isend_in(pattern, to, out);
    let sent: Vec<_> = sends.iter().filter_map(send).collect();
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
