//! Tests of cancel words. Both ends are in one process.

use crate::alone::{next, transport};
use crate::envelope::{MessageKind, PeerMessage};
use crate::limits::ProtocolLimits;
use crate::matching::cancel::CancelWords;
use weft_fabric::Fabric;

#[test]
fn of_receiver_and_canceller_one_has_the_message() {
    let transport = transport(ProtocolLimits::USUAL);
    let mut words = CancelWords::default();
    let mut fault = None;
    for request in [7, 8, 9] {
        assert!(words.open(&transport, 0, request));
    }
    // The address is sent once, however many words are opened.
    let (e, message) = next(&transport).unwrap();
    assert_eq!(e.kind, MessageKind::CancelWords);
    let arrived = PeerMessage { peer: 0, envelope: e, payload: message.payload };
    assert_eq!(words.on_words(&arrived), Ok(()));
    transport.fabric.release(message);
    assert!(next(&transport).is_none());

    assert!(words.claim(&transport, 0, 7, &mut fault), "the receiver comes first");
    assert_eq!(words.cancel(&transport, 7), Ok(false));
    assert_eq!(words.cancel(&transport, 8), Ok(true));
    words.retire(8);
    words.free_void(&transport, |_| panic!("its envelope may still come"));
    assert!(!words.claim(&transport, 0, 8, &mut fault), "the sender came first");
    let mut given = Vec::new();
    words.free_void(&transport, |request| given.push(request));
    assert_eq!(given, [8]);
    // A probe also drops a cancelled message, and leaves other messages.
    assert!(!words.drops(&transport, 0, 9));
    assert_eq!(words.cancel(&transport, 9), Ok(true));
    assert!(words.drops(&transport, 0, 9));
    assert!(fault.is_none());
    assert!(words.claim(&transport, 0, 1 << 20, &mut fault) && fault.is_some(), "no such word");
}
