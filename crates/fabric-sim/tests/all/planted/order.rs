//! A relay: rank 1 sends to rank 0 and then to rank 2, which sends to rank 0. Messages of one sender keep their order. Messages
//! of two senders have no order, even if one was sent because of the other.

use super::{check, message, tell};
use weft_fabric::{Fabric, Head};
use weft_fabric_sim::Sim;

/// Receives at rank 0 from the ranks by name, or from any rank.
async fn relay(sim: Sim, by_name: bool) -> Result<u64, String> {
    match sim.rank() {
        1 => {
            tell(&sim, 0, [10, 0, 0]);
            tell(&sim, 2, [10, 0, 0]);
        }
        2 => {
            message(&sim, Some(1)).await;
            tell(&sim, 0, [20, 0, 0]);
        }
        _ => {
            let (_, Head([first, ..])) = message(&sim, by_name.then_some(1)).await;
            let (_, Head([second, ..])) = message(&sim, by_name.then_some(2)).await;
            if (first, second) != (10, 20) {
                return Err(format!("heard {first}, then {second}"));
            }
        }
    }
    Ok(0)
}

#[test]
fn a_receive_from_anybody_that_assumes_an_order() {
    check(3, |sim| relay(sim, true), |sim| relay(sim, false));
}
