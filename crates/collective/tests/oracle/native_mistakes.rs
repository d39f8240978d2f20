//! Forbidden words from a peer of a stream end the waits with an error that names the peer.

use std::rc::Rc;
use weft_collective::{CommView, Members, Reception, Via};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{ArrivedMessage, Fabric, Fault, Head, Sge, boxed};
use weft_fabric_sim::{Machine, Sim, SimOptions, run};
use weft_p2p::stream::StreamSizes;
use weft_p2p::{MatchingContext, ProtocolLimits};
use weft_process::Engine;

const OPEN: u64 = 0x61;
const CHUNK: u64 = 0x62;
const GRANT: u64 = 0x63;
const ADDRESS: u64 = 0x64;
const CONVERT: u64 = 0x65;
const UNABLE: u64 = 0x66;
const CREDIT: u64 = 0x68;

const BLOCKS: u64 = 2;
const BLOCK: usize = 128 << 10;

/// Sends a head and some words that no stream would send.
fn say(sim: &Sim, head: [u64; 3], words: &[u64]) {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    // SAFETY: `bytes` stays allocated and readable until the send is complete: the payload is inline, so `send` copies it
    // before it returns.
    let payload = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
    sim.send(1, Head(head), payload, None);
}

/// Returns the next message for `sim`.
async fn hear(sim: &Sim) -> [u64; 3] {
    let mut found: Option<ArrivedMessage> = None;
    std::future::poll_fn(|_| {
        found = sim.receive(None);
        if found.is_some() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    let message = found.expect("it was found");
    let Head(words) = message.head;
    sim.release(message);
    words
}

/// Runs `talk` at rank 0 on the bare fabric while rank 1 receives 512 KiB from it; returns the fault of the receive.
fn receive<P: Future<Output = ()> + 'static>(talk: impl Fn(Sim) -> P) -> Option<Fault> {
    let machine = Rc::new(Machine::load("collgm").unwrap());
    let members = Members::world(2);
    let ended = Rc::new(std::cell::RefCell::new(None));
    let outcome =
        run(&machine, SimOptions::new(2), |sim| -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
            if sim.rank() == 0 {
                return Box::pin(talk(sim));
            }
            let engine = Engine::new(boxed(sim), WaitPolicy::new(true), ProtocolLimits::default());
            let (endpoint, members) = (engine.endpoint().clone(), members.clone());
            let (context, via) = (MatchingContext(3), Via::Native);
            let reception = Reception::default();
            let link = CommView { endpoint, members, rank: 1, context, tag: 1, via, reception };
            let ended = ended.clone();
            Box::pin(engine.run(async move {
                let fault = link.recv(0, Sge::phantom(4 * BLOCK)).await.err();
                *ended.borrow_mut() = fault;
            }))
        });
    // If rank 1 waits for ever, it has found no mistake.
    outcome.map_or(None, |_| ended.borrow_mut().take())
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let corrupt = |what| Some(Fault::corrupt(0, what));
    let open = |mode: u64, count: u64| OPEN | count << 8 | mode << 16 | 1 << 32;
    let segment = StreamSizes::default().segment as u64;
    let cases: [([u64; 3], &[u64], &str); 12] = [
        ([open(1, 0), 3, 0], &[], "announcement of a message"),
        ([open(7, 0), 3, 0], &[9000, 0, segment], "announcement of a message"),
        ([open(1, 0), 3, 0], &[0, 0, segment], "announcement of a message"),
        ([open(1, 0), 3, 0], &[9000, 0, segment + 1], "announcement of a message"),
        ([open(1, 0), 3, 0], &[1 << 50, 0, segment], "announcement of a message"),
        ([open(1, 1), 3, 0], &[9000, 0, segment], "name of a place"),
        ([open(1, 5), 3, 0], &[9000, 0, segment], "announcement of a message"),
        ([CHUNK, 64, segment], &[0; 4], "address of segments"),
        ([GRANT | 1 << 8 | 5 << 32, 0, 1], &[], "grant of places"),
        ([ADDRESS | 5 << 32, 0, 1], &[0; 8], "address of a block"),
        ([UNABLE | 5 << 32, 0, 0], &[], "refusal of a block"),
        ([CREDIT, 1, 0], &[], "credit of small messages"),
    ];
    for (head, words, what) in cases {
        let words = words.to_vec();
        let fault = receive(move |sim| {
            let words = words.clone();
            async move { say(&sim, head, &words) }
        });
        assert_eq!(fault, corrupt(what), "{head:x?}");
    }
}

#[test]
fn a_sender_that_cannot_write_a_block_is_asked_for_segments_from_there() {
    for written in [0, 1] {
        let fault = receive(move |sim| async move {
            let open = OPEN | BLOCKS << 16 | 1 << 32;
            say(&sim, [open, 3, 77], &[4 * BLOCK as u64, 0, BLOCK as u64]);
            let [word, _, numbers] = hear(&sim).await;
            assert_eq!((word & 0xff, word >> 32, numbers as u32), (ADDRESS, 77, 0));
            let receive = numbers >> 32;
            // The previous block has not arrived yet, so the receiver must wait for it.
            say(&sim, [UNABLE | receive << 32, written, 0], &[]);
            if written > 0 {
                // That block never arrives; a meaningless message ends the wait instead.
                say(&sim, [UNABLE | receive << 32, 9, 0], &[]);
                return;
            }
            loop {
                let [word, base, _] = hear(&sim).await;
                if word & 0xff == CONVERT {
                    assert_eq!((word >> 32, base), (77, 0));
                    break;
                }
                // Earlier messages, and places prepared for a next message.
                assert!([ADDRESS, CHUNK, GRANT].contains(&(word & 0xff)), "{word:x}");
            }
            say(&sim, [CREDIT, 1, 0], &[]);
        });
        let what = if written > 0 { "refusal of a block" } else { "credit of small messages" };
        assert_eq!(fault, Some(Fault::corrupt(0, what)));
    }
}
