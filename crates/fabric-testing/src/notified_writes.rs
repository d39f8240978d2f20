//! Tests of notified writes of several payloads in a row, on any fabric.

use crate::conformance::{Maker, run};
use std::sync::atomic::{AtomicUsize, Ordering};
use weft_collective::notified_write::{self, NotifyBuffer, NotifyMethod, NotifyTarget};
use weft_fabric::{Capabilities, Fabric, RemoteAddr};

/// Immediate of the notified writes.
const IMMEDIATE: u32 = 41;

/// Sends `payloads` payloads of `len` bytes from rank 0 to rank 1, by the method that `choose` returns on each rank. Returns the
/// number of payloads that were not complete when their mark had arrived.
pub fn torn<F: Fabric>(
    makers: Vec<Maker<F>>,
    choose: impl Fn(&Capabilities) -> NotifyMethod + Sync,
    len: usize,
    payloads: u64,
) -> usize {
    let torn = AtomicUsize::new(0);
    run(makers, |rank| {
        let way = choose(&rank.fabric.capabilities(1 - rank.rank()));
        let size = notified_write::size(len);
        let region = rank.fabric.allocate(2 * size).unwrap();
        let at: Vec<RemoteAddr> = rank.gather_addresses(region.remote);
        let here = match way {
            NotifyMethod::Immediate => {
                NotifyBuffer::with_immediate(&rank.fabric, &region, 0, len, IMMEDIATE)
            }
            _ => NotifyBuffer::new(&rank.fabric, &region, 0, len, way),
        };
        for number in 1..=payloads {
            let content = vec![number as u8; len];
            if rank.rank() == 0 {
                let copy = region.local.part(size, size);
                notified_write::payload(copy, len).fill(&content);
                let target = NotifyTarget::new(1, at[1], len).immediate(IMMEDIATE);
                rank.complete(|done| target.write(&rank.fabric, way, copy, len, number, done));
            } else {
                rank.reach(here.arrived(), number);
                let mut got = vec![0; len];
                here.payload(len).read(&mut got);
                torn.fetch_add(usize::from(got != content), Ordering::Relaxed);
            }
            rank.barrier();
        }
        rank.fabric.withdraw(region);
    });
    torn.into_inner()
}
