//! The parts through which payloads go. Each part is tested without the other parts. A process sends to itself.

use crate::alone::{next, transport};
use crate::envelope::{Envelope, MatchingContext, MessageKind, PeerMessage, ReceiveSource};
use crate::limits::ProtocolLimits;
use crate::matching::MatchingQueues;
use crate::message::{
    CancelWay, MessageProtocol, MessageTarget, OutgoingMessage, TransferPattern, Want,
};
use crate::protocol::end_messages::{self, RendezvousEnd};
use crate::protocol::operations::Operations;
use crate::protocol::peers::MessagePeers;
use crate::protocol::rendezvous::RendezvousFlights;
use crate::protocol::{eager, rendezvous_pieces, rendezvous_write};
use crate::request::RequestId;
use crate::transport::Transport;
use weft_fabric::wait::ProcessorTurns;
use weft_fabric::{Fabric, Sge, Staging};
use weft_fabric_shm::Shm;

const LIMITS: ProtocolLimits =
    ProtocolLimits { credit: 1000, staging: 1 << 20, ..ProtocolLimits::USUAL };
const TO: MessageTarget = MessageTarget { context: MatchingContext(1), peer: 0, rank: 0, tag: 5 };
const WANT: Want = Want {
    context: MatchingContext(1),
    source: ReceiveSource::Rank { rank: 0, peer: 0 },
    tag: Some(5),
};

/// All parts, without an endpoint.
struct Parts {
    transport: Transport<Shm>,
    operations: Operations,
    in_flight: RendezvousFlights,
    matching: MatchingQueues,
}

impl Parts {
    fn new(limits: ProtocolLimits) -> Parts {
        let transport = transport(limits);
        Parts {
            operations: Operations::new(transport.counters()),
            in_flight: RendezvousFlights::new(&limits),
            matching: MatchingQueues::new(),
            transport,
        }
    }

    fn payload(&self, len: usize) -> Staging {
        let payload = self.transport.staging.take(len);
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        payload.sge().fill(&bytes);
        payload
    }

    fn post(&mut self, into: &Staging) -> u32 {
        let Parts { transport, operations, matching, .. } = self;
        let (index, slot) = operations.requests.open(transport.counters());
        (slot.buffer, slot.receives) = (into.sge(), true);
        slot.state.post();
        matching.posted.post(WANT.context, Some(0), WANT.tag, index);
        index
    }

    fn offer(&mut self, from: &Staging, protocol: MessageProtocol) -> RequestId {
        let Parts { transport, operations, in_flight, matching } = self;
        in_flight.offer(transport, operations, matching, &outgoing(from), protocol)
    }

    /// Handles all arrived messages of a rendezvous. Returns the kinds of these messages.
    fn act(&mut self) -> Vec<MessageKind> {
        let Parts { transport, operations, in_flight, matching } = self;
        let mut kinds = Vec::new();
        while let Some((e, message)) = next(transport) {
            let arrived =
                &PeerMessage { peer: message.peer, envelope: e, payload: message.payload };
            let outcome = match e.kind {
                MessageKind::Rts => in_flight.on_rts(transport, operations, matching, arrived),
                MessageKind::Ats => in_flight.on_ats(transport, operations, arrived),
                MessageKind::Rtr => in_flight.on_rtr(transport, operations, arrived),
                MessageKind::Atp => rendezvous_write::on_atp(transport, operations, arrived),
                MessageKind::Cts => rendezvous_pieces::on_cts(transport, operations, arrived),
                MessageKind::Data => {
                    rendezvous_pieces::on_data(transport, &mut operations.requests, arrived)
                }
                other => panic!("{other:?}"),
            };
            outcome.expect("what was sent makes sense");
            kinds.push(e.kind);
            transport.fabric.release(message);
            in_flight.progress(transport, operations);
        }
        kinds
    }

    fn is_over(&self, index: u32) -> bool {
        self.operations.requests[index].is_over(self.transport.counters())
    }
}

/// Returns a plain message with the payload in `from`.
fn outgoing(from: &Staging) -> OutgoingMessage {
    let (pattern, cancel) = (TransferPattern::Plain, CancelWay::ByMessage);
    OutgoingMessage { to: TO, buffer: from.sge(), pattern, cancel }
}

fn bytes(of: &Staging) -> Vec<u8> {
    let mut bytes = vec![0; of.sge().len()];
    of.sge().read(&mut bytes);
    bytes
}

/// Sends 5000 bytes from this process to itself by `protocol`. Returns the kinds of message used.
fn moved(protocol: MessageProtocol) -> Vec<MessageKind> {
    let mut parts = Parts::new(LIMITS);
    let (from, into) = (parts.payload(5000), parts.transport.staging.take(5000));
    let receive = parts.post(&into);
    let RequestId(send) = parts.offer(&from, protocol);
    assert!(!parts.is_over(send) && !parts.is_over(receive));
    let kinds = parts.act();
    assert!(parts.is_over(send) && parts.is_over(receive), "{protocol:?}");
    assert_eq!(bytes(&into), bytes(&from), "{protocol:?}");
    assert!(!parts.operations.requests.any_acts() && parts.operations.fault.is_none());
    assert!(parts.in_flight.transfers.is_empty());
    kinds
}

#[test]
fn an_offer_is_read_or_written_and_both_ends_hear_of_the_end() {
    use MessageKind::{Atp, Ats, Rtr, Rts};
    assert_eq!(moved(MessageProtocol::Read), [Rts, Ats]);
    assert_eq!(moved(MessageProtocol::Written), [Rts, Rtr, Atp]);
}

#[test]
fn a_staged_payload_frees_its_sender_and_its_place() {
    let mut parts = Parts::new(LIMITS);
    // There are more payloads than the pool has places at the same time.
    for round in 0..200 {
        let (from, into) = (parts.payload(20_000), parts.transport.staging.take(20_000));
        let Parts { transport, operations, in_flight, .. } = &mut parts;
        assert!(in_flight.staged.send(transport, operations, TO, from.sge()), "round {round}");
        let receive = parts.post(&into);
        assert_eq!(parts.act(), [MessageKind::Rts, MessageKind::Ats]);
        assert!(parts.is_over(receive) && !parts.in_flight.staged.any_followed());
        assert_eq!(bytes(&into), bytes(&from));
        parts.operations.close(&parts.transport, RequestId(receive), |_| panic!("no word"));
    }
    assert_eq!(parts.operations.seldom.staged, 200);
}

#[test]
fn eager_payload_beyond_the_credit_waits_until_it_is_released() {
    let mut parts = Parts::new(LIMITS);
    let payload = parts.payload(400);
    let charge = |parts: &mut Parts| {
        let Parts { transport, operations, .. } = parts;
        operations.peers.of(transport, 0).credit.try_charge(400, LIMITS.credit)
    };
    let mut into = Vec::new();
    for _ in 0..2 {
        assert!(charge(&mut parts));
        into.push(parts.transport.staging.take(400));
        parts.post(&into[into.len() - 1]);
        let Parts { transport, operations, matching, .. } = &mut parts;
        let message = outgoing(&payload);
        assert_eq!(eager::send_charged(transport, operations, matching, &message), None);
    }
    assert!(!charge(&mut parts), "1200 of 1000 bytes");
    let Parts { transport, operations, matching, .. } = &mut parts;
    let (_, message) = next(transport).unwrap();
    assert_eq!(eager::meet(transport, &mut operations.requests, matching, &message), Some(400));
    transport.fabric.release(message);
    operations.peers.return_credit(transport, 0, 400);
    let (_, second) = next(transport).unwrap();
    transport.fabric.release(second);
    let (told, message) = next(transport).unwrap();
    assert_eq!((told.kind, told.context), (MessageKind::Credit, MatchingContext(400)));
    let credit = PeerMessage { peer: 0, envelope: told, payload: Sge::EMPTY };
    assert_eq!(eager::on_credit(transport, operations, &credit), Ok(()));
    transport.fabric.release(message);
    assert!(charge(&mut parts));
    let impossible = Envelope { context: MatchingContext(1 << 40), ..told };
    let impossible = PeerMessage { envelope: impossible, ..credit };
    let Parts { transport, operations, .. } = &mut parts;
    assert!(eager::on_credit(transport, operations, &impossible).is_err());
}

#[test]
fn ends_that_are_due_together_are_one_message() {
    let mut parts = Parts::new(LIMITS);
    let Parts { transport, operations, .. } = &mut parts;
    let end = |request| {
        let (index, slot) = operations.requests.open(transport.counters());
        (slot.peer, slot.remote) = (Some(0), request);
        slot.state.start_read();
        let end = RendezvousEnd::of(slot);
        slot.state.end_rdma();
        operations.close(transport, RequestId(index), |_| panic!("no word"));
        end
    };
    let mut due: Vec<RendezvousEnd> = (100..140).map(end).collect();
    // Payload was released, and the peer does not know it yet.
    let known = operations.peers.of(transport, 0);
    assert!(known.credit.try_charge(700, known.room));
    known.rides = 500;
    assert_eq!(known.credit.add_returned(700, known.room), None);
    end_messages::tell(transport, operations, &mut due);
    assert!(due.is_empty());
    let (mut told, mut rode) = (Vec::new(), Vec::new());
    while let Some((e, message)) = next(transport) {
        assert_eq!(e.kind, MessageKind::Ats);
        rode.push(e.context.0);
        let payload = message.payload;
        for wrong in [payload.part(0, payload.len() - 1), payload.part(0, 3)] {
            let nothing = |_: &mut Operations, _| panic!("no request");
            let envelope = Envelope { context: MatchingContext(0), ..e };
            let wrong = PeerMessage { peer: 0, envelope, payload: wrong };
            assert!(end_messages::hear(transport, operations, &wrong, nothing).is_err());
        }
        let ends = PeerMessage { peer: 0, envelope: e, payload };
        let heard = end_messages::hear(transport, operations, &ends, |_, request| {
            told.push(request);
            Ok(())
        });
        assert_eq!(heard, Ok(()));
        transport.fabric.release(message);
    }
    assert_eq!(told, (100..140).collect::<Vec<u32>>());
    assert_eq!(rode, [700, 0, 0], "three messages; what was released is told with the first");
    let known = operations.peers.of(transport, 0);
    assert!(known.credit.covers(known.room, known.room), "and was heard");
}

#[test]
fn credit_rides_on_payload_that_goes_the_other_way() {
    let mut parts = Parts::new(LIMITS);
    let Parts { transport, operations, matching, .. } = &mut parts;
    let payload = transport.staging.take(100);
    for (owed, rides) in [(300, 0), (300, 600), (0, 0)] {
        let known = operations.peers.of(transport, 0);
        known.rides = 500;
        assert!(known.credit.try_charge(owed + 100, known.room));
        assert_eq!(known.credit.add_returned(owed, known.room), None);
        let message = outgoing(&payload);
        assert_eq!(eager::send_charged(transport, operations, matching, &message), None);
        let (e, message) = next(transport).unwrap();
        assert_eq!(u64::from(e.request), rides);
        let met = eager::meet(transport, &mut operations.requests, matching, &message);
        assert_eq!(met, None, "nobody has asked for it");
        let arrived = PeerMessage { peer: 0, envelope: e, payload: message.payload };
        let heard = eager::on_eager(transport, operations, matching, &arrived);
        assert_eq!(heard, Ok(()));
        transport.fabric.release(message);
    }
    let known = operations.peers.of(transport, 0);
    assert!(known.credit.covers(LIMITS.credit - 300, LIMITS.credit), "600 of 900 were released");
    assert!(!known.credit.covers(LIMITS.credit - 299, LIMITS.credit));
    let e = Envelope { request: 7000, ..TO.envelope(MessageKind::Eager, 0) };
    let arrived = PeerMessage { peer: 0, envelope: e, payload: payload.sge() };
    let heard = eager::on_eager(transport, operations, matching, &arrived);
    assert!(heard.is_err(), "more than was ever sent");
}

#[test]
fn what_is_known_of_a_peer_follows_the_limits_and_its_credit_stays() {
    let transport = transport(LIMITS);
    let mut peers = MessagePeers::default();
    let known = peers.of(&transport, 0);
    assert!(known.near && known.eager > 0 && known.credit.try_charge(1000, 1000));
    let before = known.eager;
    transport.limits.set(ProtocolLimits { eager: 16, ..LIMITS });
    assert_eq!(peers.of(&transport, 0).eager, before, "nobody has looked again");
    peers.look_at_all_again(&transport);
    let known = peers.of(&transport, 0);
    assert!(known.eager <= 16 && !known.credit.try_charge(1, 1000));
    assert_eq!((peers.len(), peers.may_owe(1, 1)), (1, false));
}

#[test]
fn choices_follow_the_threads_that_come_and_go() {
    static TURNS: ProcessorTurns = ProcessorTurns::new();
    TURNS.share(1, 2);
    let transport = transport(ProtocolLimits { turns: Some(&TURNS), ranks_each: 2, ..LIMITS });
    let mut peers = MessagePeers::default();
    let mut each = || peers.choices(&transport, 0).path().threads_each;
    assert_eq!(each(), 2, "the ranks share the processors already");
    (0..7).for_each(|_| TURNS.begin_thread());
    assert_eq!(each(), 4);
    (0..7).for_each(|_| TURNS.end_thread());
    assert_eq!((each(), each()), (2, 2));
}
