//! Tests of streams without an endpoint: a process sends to itself.

use super::pool::{CHUNK, PlaceOwner, SegmentPlaces, Tokens};
use super::*;
use crate::alone::transport;
use crate::envelope::MatchingContext;
use crate::limits::ProtocolLimits;
use crate::transport::Transport;
use weft_fabric::Staging;
use weft_fabric_shm::Shm;

struct Alone {
    transport: Transport<Shm>,
    operations: Operations,
    stream: ProcessStreams,
}

fn to(tag: i32) -> MessageTarget {
    MessageTarget { context: MatchingContext(9), peer: 0, rank: 4, tag }
}

impl Alone {
    fn new() -> Alone {
        let transport = transport(ProtocolLimits::USUAL);
        let operations = Operations::new(transport.counters());
        Alone { transport, operations, stream: ProcessStreams::default() }
    }

    fn payload(&self, len: usize, first: u8) -> Staging {
        let payload = self.transport.staging.take(len);
        let bytes: Vec<u8> = (0..len).map(|i| first.wrapping_add((i % 251) as u8)).collect();
        payload.sge().fill(&bytes);
        payload
    }

    fn send(&mut self, tag: i32, data: &Staging) -> Option<RequestId> {
        self.stream.isend(&self.transport.fabric, &mut self.operations, to(tag), data.sge())
    }

    fn receive(&mut self, tag: i32, into: &Staging) -> RequestId {
        self.relay(tag, into, &[], &mut Vec::new())
    }

    fn relay(
        &mut self,
        tag: i32,
        into: &Staging,
        on: &[i32],
        sends: &mut Vec<RequestId>,
    ) -> RequestId {
        let (fabric, operations) = (&self.transport.fabric, &mut self.operations);
        let on = on.iter().map(|&tag| to(tag));
        self.stream.relay(fabric, operations, to(tag), into.sge(), on, |send| sends.push(send))
    }

    /// Drives progress until nothing moves.
    fn settle(&mut self) {
        let (fabric, operations) = (&self.transport.fabric, &mut self.operations);
        for _ in 0..1000 {
            fabric.progress();
            while let Some(message) = fabric.receive(None) {
                assert_eq!(self.stream.handle(fabric, operations, &message), Ok(()));
                fabric.release(message);
            }
            self.stream.progress(fabric, operations);
        }
        assert!(operations.fault.is_none());
    }

    fn ended(&mut self, id: RequestId) -> Option<Status> {
        let over = self.operations.requests[id.0].is_over(self.transport.counters());
        over.then(|| self.operations.close(&self.transport, id, |_| panic!("no word")))
    }

    /// Returns true if every record and request was given back.
    fn holds_nothing(&self) -> bool {
        let core = self.stream.core.as_ref().expect("used");
        let spare = 1;
        (core.sends.len(), core.receives.len(), self.operations.requests.len()) == (0, 0, spare)
    }
}

fn bytes(of: &Staging) -> Vec<u8> {
    let mut bytes = vec![0; of.sge().len()];
    of.sge().read(&mut bytes);
    bytes
}

#[test]
fn halves_meet_in_order_and_by_their_key_alone() {
    let mut alone = Alone::new();
    let sent: Vec<Staging> = [1, 2, 3].map(|first| alone.payload(100, first)).into();
    let into: Vec<Staging> = (0..3).map(|_| alone.transport.staging.take(100)).collect();
    let early = alone.receive(1, &into[0]);
    for (tag, data) in [1, 2, 1].into_iter().zip(&sent) {
        assert_eq!(alone.send(tag, data), None, "small, and within the credit");
    }
    alone.settle();
    let (second, other) = (alone.receive(1, &into[2]), alone.receive(2, &into[1]));
    for id in [second, other, early] {
        let status = alone.ended(id).expect("its message is there");
        assert_eq!((status.source, status.bytes, status.lost), (4, 100, 0));
    }
    for (into, sent) in into.iter().zip(&sent) {
        assert_eq!(bytes(into), bytes(sent));
    }
    assert!(alone.holds_nothing());
    assert_eq!((alone.stream.counts().received, alone.stream.counts().lookups), (3, 6));
}

#[test]
fn a_request_ends_with_its_message_and_its_record_is_given_back() {
    let mut alone = Alone::new();
    let StreamSizes { rendezvous, segment, .. } = alone.stream.sizes();
    for len in [3 * segment + 1, rendezvous + 1, 20 * segment, 0, 1] {
        for posted_first in [true, false] {
            let (data, into) = (alone.payload(len, 7), alone.transport.staging.take(len));
            let first = posted_first.then(|| alone.receive(3, &into));
            let send = alone.send(3, &data);
            alone.settle();
            let receive = first.unwrap_or_else(|| alone.receive(3, &into));
            alone.settle();
            assert_eq!(alone.ended(receive).expect("over").bytes, len as u64);
            assert!(send.is_none_or(|send| alone.ended(send).is_some()), "{len} bytes");
            assert_eq!(bytes(&into), bytes(&data));
            assert!(alone.holds_nothing(), "{len} bytes, posted first: {posted_first}");
        }
    }
}

#[test]
fn what_is_too_long_is_told_and_ends_both() {
    let mut alone = Alone::new();
    for len in [100, 200_000, 500_000] {
        let (data, into) = (alone.payload(len, 1), alone.transport.staging.take(10));
        let (receive, send) = (alone.receive(3, &into), alone.send(3, &data));
        alone.settle();
        let status = alone.ended(receive).expect("over");
        assert_eq!((status.bytes, status.lost), (10, len as u64 - 10));
        assert!(send.is_none_or(|send| alone.ended(send).is_some()), "{len} bytes");
        assert!(alone.holds_nothing());
    }
}

#[test]
fn a_message_is_passed_on_from_receive_to_receive() {
    let mut alone = Alone::new();
    for len in [0, 64, 100_000, 600_000] {
        let data = alone.payload(len, 5);
        let [middle, left, right] = [(); 3].map(|()| alone.transport.staging.take(len));
        let mut requests = Vec::new();
        let relay = alone.relay(1, &middle, &[2, 3], &mut requests);
        assert_eq!(requests.len(), 2);
        requests.extend([relay, alone.receive(3, &right), alone.receive(2, &left)]);
        requests.extend(alone.send(1, &data));
        alone.settle();
        assert!(requests.into_iter().all(|id| alone.ended(id).is_some()), "{len} bytes");
        assert!([&middle, &left, &right].iter().all(|into| bytes(into) == bytes(&data)));
        assert!(alone.holds_nothing(), "{len} bytes");
    }
}

#[test]
fn a_place_is_free_once_it_is_copied_and_no_write_reads_it() {
    let transport = transport(ProtocolLimits::USUAL);
    let sizes = StreamSizes { segment: 256, slots: 2 * CHUNK, ..StreamSizes::default() };
    let (fabric, mut places) = (&transport.fabric, SegmentPlaces::default());
    let all: Vec<u16> = (0..sizes.slots)
        .map(|_| places.take(fabric, &sizes).unwrap().expect("there are so many"))
        .collect();
    assert_eq!(places.take(fabric, &sizes).unwrap(), None);
    assert_eq!((places.left(&sizes), places.spare(&sizes)), (0, 0));
    let place = all[5];
    places.assign(place, PlaceOwner::Landing, 1);
    places.hold(place);
    places.hold(place);
    assert!(!places.give(place) && places.state(place) == Some(PlaceOwner::Held));
    assert!(!places.unhold(place) && places.unhold(place));
    assert_eq!(places.take(fabric, &sizes).unwrap(), Some(place));
    all.iter().for_each(|&place| assert!(places.give(place)));
    assert_eq!((places.left(&sizes), places.spare(&sizes)), (sizes.slots, sizes.slots / 2));
}

#[test]
fn tokens_are_as_many_as_was_said_and_are_used_again() {
    let transport = transport(ProtocolLimits::USUAL);
    let sizes = StreamSizes { segment: 256, tokens: 2, ..StreamSizes::default() };
    let (fabric, mut tokens) = (&transport.fabric, Tokens::default());
    let [first, second] = [(); 2].map(|()| tokens.take(fabric, &sizes).unwrap().unwrap());
    assert!(first != second && tokens.take(fabric, &sizes).unwrap().is_none());
    tokens.give(first);
    assert_eq!(tokens.take(fabric, &sizes).unwrap(), Some(first));
    assert_eq!(tokens.bytes(), 512);
}
