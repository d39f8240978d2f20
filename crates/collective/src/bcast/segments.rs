//! Data in segments down a tree: while a segment is passed on, the next one comes.

use crate::Link;
use crate::trees::Place;
use weft_fabric::{Fabric, Fault, Sge};
use weft_p2p::RequestId;

/// The segments of `data`, of `segment` bytes, the last one shorter; one empty segment if there is
/// nothing, so that everybody hears of it. A segment length of 0 stands for one segment.
pub(super) fn segments(data: Sge, segment: usize) -> impl Iterator<Item = Sge> {
    let segment = if segment == 0 { data.len().max(1) } else { segment };
    let count = data.len().div_ceil(segment).max(1);
    (0..count).map(move |i| data.part(i * segment, segment.min(data.len() - i * segment)))
}

/// Receives `data` from the parent and sends it to the children, segment by segment. What is still
/// being sent is added to `sends`. Goes on behind a fault, and returns the first.
pub(super) async fn pass<F: Fabric>(
    link: &Link<F>,
    place: Place,
    absolute: impl Fn(usize) -> usize,
    data: Sge,
    segment: usize,
    sends: &mut Vec<RequestId>,
) -> Result<(), Fault> {
    let mut to = [0; 2];
    let children = place.children.into_iter().flatten().map(&absolute);
    let count = to.iter_mut().zip(children).map(|(to, child)| *to = child).count();
    let mut all = Ok(());
    for part in segments(data, segment) {
        match place.parent {
            Some(parent) => {
                all = all.and(link.relay(absolute(parent), part, &to[..count], sends).await);
            }
            None => sends.extend(to[..count].iter().filter_map(|&to| link.isend(to, part))),
        }
    }
    all
}
