//! A long message by RDMA write, and two ways in which its receiver detects it. Packets of a message larger than the MTU arrive
//! in any order: the last bytes may be the first to arrive. The last byte is the last to arrive only on machines that place the
//! bytes of a packet in order, and only in a message of one packet.

use super::{addresses, check, check_on, message, set_word, tell, word};
use weft_fabric::{Fabric, FabricExt, FlagKind, RemoteFlag, RemoteWrite, Work, until};
use weft_fabric_sim::Sim;
use weft_fabric_testing::machine::in_order;

const ROUNDS: u64 = 4;
/// Number of bytes of one packet, and of four, on the test's machine.
const PACKET: usize = 1024;
const LONG: usize = 4 * PACKET;
const FLAG: usize = LONG;
const SOURCE: usize = LONG + 8;
/// Time between two looks of the receiver, in picoseconds.
const LOOK: u64 = 100_000;

/// Lets rank 0 write. Rank 1 polls the last word, or waits for a flag that is written after the data.
async fn deliver(sim: Sim, len: usize, polls: bool) -> Result<u64, String> {
    let region = sim.allocate(SOURCE + LONG).unwrap();
    let flag = sim.flag(&region, FLAG, FlagKind::Waking);
    let at = addresses(&sim, region).await;
    for round in 1..=ROUNDS {
        if sim.rank() == 0 {
            let source = region.local.part(SOURCE, len);
            (0..len).step_by(8).for_each(|offset| set_word(source, offset, round));
            if polls {
                sim.write(1, &RemoteWrite::new(source, at[1], None)).unwrap();
            } else {
                let flag = RemoteFlag { at: at[1].offset(FLAG as u64), waking: true };
                sim.write_flag(1, &RemoteWrite::new(source, at[1], None), &flag.with(round))
                    .unwrap();
            }
            // The receiver has read all of the message, so the source and the landing are free.
            message(&sim, Some(1)).await;
            continue;
        }
        if polls {
            while word(region.local, len - 8) != round {
                sim.charge(Work::Compute(LOOK));
                sim.catch_up().await;
            }
        } else {
            until(&sim, flag.local, round).await.map_err(|fault| fault.to_string())?;
        }
        for offset in (0..len).step_by(8) {
            let got = word(region.local, offset);
            if got != round {
                return Err(format!("round {round}: byte {offset} is still of round {got}"));
            }
        }
        tell(&sim, 0, [round, 0, 0]);
    }
    Ok(0)
}

#[test]
fn a_flag_polled_at_the_end_of_a_message_larger_than_the_mtu() {
    check(2, |sim| deliver(sim, LONG, false), |sim| deliver(sim, LONG, true));
}

#[test]
fn a_flag_polled_at_the_end_of_a_packet() {
    check(2, |sim| deliver(sim, PACKET, false), |sim| deliver(sim, PACKET, true));
    let polls = |len| move |sim| deliver(sim, len, true);
    check_on(&in_order(), 2, polls(PACKET), polls(LONG));
}
