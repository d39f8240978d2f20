//! Processes of two jobs that connect later are ordinary peers until they part. A process that dies is reported as lost.

use weft_bootstrap::ThreadBootstrap;
use weft_fabric::Fabric;
use weft_fabric_ofi::{Ofi, OfiOptions};
use weft_fabric_testing::links::{SIZES, end_without_a_word, meet_and_part};

fn make(_job: usize, world: &mut ThreadBootstrap) -> Ofi {
    let provider = Some("weft-tcp".to_owned());
    Ofi::connect(world, OfiOptions { provider, ..OfiOptions::default() }).unwrap()
}

#[test]
fn jobs_meet_and_part_again_and_again() {
    meet_and_part(&make, 4, |ofi, place, _| {
        let own = SIZES[usize::from(place > 0)];
        assert_eq!((ofi.processes(), ofi.size()), (own, own));
    });
}

#[test]
fn whoever_ends_without_a_word_is_missed_without_a_connection() {
    let said = end_without_a_word(&make, false);
    assert!(said.contains("its job"), "{said}");
}
