//! A relay: rank 1 tells rank 0 and then rank 2, which tells rank 0. Messages of one sender keep
//! their order; those of two senders have none, even where one was sent because of the other.

use super::{check, message, tell};
use weft_fabric::{Fabric, Head};
use weft_fabric_sim::Sim;

/// Rank 0 receives from the ranks by name, or from anybody.
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
