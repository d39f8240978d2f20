//! Claims of CollGM's sections 3.2 and 3.3 about its transport, in virtual time on its machine file.

use std::cell::Cell;
use std::rc::Rc;
use weft_collective::{CommView, Members, Reception, Via};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, Fault, Sge, boxed};
use weft_fabric_sim::{Machine, SimOptions, run};
use weft_p2p::stream::{StreamCounts, StreamSizes};
use weft_p2p::{MatchingContext, ProtocolLimits};
use weft_process::Engine;

/// Measured pass of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Pass that also makes and registers the memory of the streams.
    First,
    /// Pass after such a pass: in the document, the memory for segments is registered beforehand (CollGM, section 3.3).
    Second,
}

/// Has all ranks wait for each other.
async fn meet(link: &CommView<Box<dyn Fabric>>) -> Result<(), Fault> {
    if link.rank > 0 {
        link.send(0, Sge::EMPTY).await?;
        return link.recv(0, Sge::EMPTY).await;
    }
    for rank in 1..link.size() {
        link.recv(rank, Sge::EMPTY).await?;
    }
    for rank in 1..link.size() {
        link.send(rank, Sge::EMPTY).await?;
    }
    Ok(())
}

/// Returns the events of a pass.
fn since(before: &StreamCounts, after: &StreamCounts) -> StreamCounts {
    StreamCounts {
        pieces: after.pieces - before.pieces,
        forwarded: after.forwarded - before.forwarded,
        copied_in: after.copied_in - before.copied_in,
        copied_out: after.copied_out - before.copied_out,
        stalls: after.stalls - before.stalls,
        ..StreamCounts::default()
    }
}

/// Returns the time of a pass until all ranks are done, in microseconds, and the counts of each rank.
fn time<P: Future<Output = Result<(), Fault>> + 'static>(
    ranks: usize,
    via: Via,
    sizes: StreamSizes,
    pass: Pass,
    program: impl Fn(CommView<Box<dyn Fabric>>) -> P + Clone + 'static,
) -> (f64, Vec<StreamCounts>) {
    let machine = Rc::new(Machine::load("collgm").unwrap());
    let members = Members::world(ranks);
    let counts: Rc<[Cell<StreamCounts>]> = (0..ranks).map(|_| Cell::default()).collect();
    let start = Rc::new(Cell::new(0));
    let outcome = run(&machine, SimOptions::new(ranks), |sim| {
        let engine =
            Engine::new(boxed(sim.clone()), WaitPolicy::new(true), ProtocolLimits::default());
        let endpoint = engine.endpoint().clone();
        assert!(endpoint.streams().set_sizes(sizes));
        let (rank, members, context) = (engine.rank(), members.clone(), MatchingContext(3));
        let (tag, reception) = (1, Reception::default());
        let view = move || CommView {
            endpoint: endpoint.clone(),
            members: members.clone(),
            rank,
            context,
            tag,
            via,
            reception,
        };
        let (program, counts, start) = (program.clone(), counts.clone(), start.clone());
        engine.run(async move {
            let link = view();
            let events = || link.endpoint.streams().counts();
            if pass == Pass::Second {
                program(view()).await.unwrap();
                meet(&link).await.unwrap();
            }
            let before = events();
            if rank == 0 {
                start.set(sim.clock());
            }
            program(view()).await.unwrap();
            counts[rank].set(since(&before, &events()));
        })
    });
    let end = outcome.unwrap().ends.into_iter().max().unwrap();
    ((end - start.get()) as f64 / 1e6, counts.iter().map(Cell::get).collect())
}

/// Transfers `len` bytes from rank 0 to rank 1.
fn transfer(via: Via, sizes: StreamSizes, pass: Pass, len: usize) -> (f64, Vec<StreamCounts>) {
    time(2, via, sizes, pass, move |link| async move {
        let data = Sge::phantom(len);
        match link.rank {
            0 => link.send(1, data).await,
            _ => link.recv(0, data).await,
        }
    })
}

/// Sizes with which all messages are eager, whatever their length.
const SEGMENTS: StreamSizes = StreamSizes {
    small: 4 << 10,
    credit: 64,
    segment: 64 << 10,
    slots: 64,
    tokens: 16,
    allowance: 2,
    window: 8,
    rendezvous: usize::MAX,
    block: 128 << 10,
    blocks: 4,
    flags: 64,
};

#[test]
fn segments_of_64_kib_are_among_the_best_and_larger_ones_cannot_overlap() {
    // The bound on outstanding data is the only number chosen to fit figure 3: two segments of 64 KiB.
    // CollGM does not give this number.
    let bound = 128 << 10;
    let times: Vec<(usize, f64, u64)> = (2..=10)
        .map(|shift| {
            let segment = 1 << (shift + 10);
            let window = (bound / segment).max(1);
            let sizes = StreamSizes { segment, window, allowance: window.min(2), ..SEGMENTS };
            let (time, counts) = transfer(Via::Native, sizes, Pass::Second, 32 << 20);
            (segment, time, counts[0].stalls)
        })
        .collect();
    let best = times.iter().map(|&(_, time, _)| time).fold(f64::MAX, f64::min);
    let (_, chosen, _) = times[4];
    // The simulator's ports hide the cost of a segment behind its bytes: 16 to 64 KiB differ by 0.03 %.
    assert!(chosen < 1.001 * best, "{times:?}");
    assert!(times[0].1 > chosen, "{times:?}");
    for &(segment, time, stalls) in &times {
        let overlaps = segment <= 64 << 10;
        assert_eq!(stalls == 0, overlaps, "{segment}: the early request keeps the sender going");
        assert!(overlaps || time > 1.3 * chosen, "{times:?}");
    }
}

#[test]
fn registration_in_blocks_hides_behind_the_transfer() {
    let blocks = |block| {
        transfer(
            Via::Native,
            StreamSizes { rendezvous: 0, block, ..SEGMENTS },
            Pass::First,
            32 << 20,
        )
    };
    let (piped, counts) = blocks(128 << 10);
    let (at_once, _) = blocks(32 << 20);
    assert_eq!((counts[0].pieces, counts[0].copied_in, counts[1].copied_out), (256, 0, 0));
    // One end registers at least 8192 pages at 3 us each.
    assert!(piped + 24_000.0 < at_once, "{piped} us in blocks, {at_once} us at once");
}

/// Sends `len` bytes down a chain of 8 ranks.
fn chain(via: Via, sizes: StreamSizes, len: usize, relay: bool) -> (f64, Vec<StreamCounts>) {
    time(8, via, sizes, Pass::Second, move |link| async move {
        let data = Sge::phantom(len);
        let next = [link.rank + 1];
        let to = if link.rank + 1 < link.size() { &next[..] } else { &[] };
        if link.rank == 0 {
            return link.send(1, data).await;
        }
        let mut sends = Vec::new();
        if relay {
            link.relay(link.rank - 1, data, to, &mut sends).await?;
        } else {
            link.recv(link.rank - 1, data).await?;
            sends.extend(to.iter().filter_map(|&to| link.isend(to, data)));
        }
        link.wait_all(sends).await
    })
}

#[test]
fn passing_on_beats_receiving_and_sending() {
    for len in [5000usize, 64 << 10, 1 << 20] {
        let segments = len.div_ceil(SEGMENTS.segment);
        let (passed, counts) = chain(Via::Native, SEGMENTS, len, true);
        let (stored, plain) = chain(Via::Native, SEGMENTS, len, false);
        for middle in &counts[1..7] {
            let copied = (middle.copied_in, middle.copied_out);
            assert_eq!(copied, (0, len as u64), "only into the program's memory");
            assert_eq!(middle.forwarded, segments as u64, "every segment from where it lay");
        }
        assert!(plain[1..7].iter().all(|c| (c.copied_in, c.forwarded) == (len as u64, 0)));
        assert!(passed < stored, "{len} bytes: {passed} us, {stored} us");
        if segments > 4 {
            // 7 hops of the whole message, against one such hop and 6 hops of a segment.
            assert!(3.0 * passed < stored, "{len} bytes: {passed} us, {stored} us");
        }
        let (messages, _) = chain(Via::Messages, SEGMENTS, len, true);
        assert!(passed < messages, "{len} bytes: {passed} us, by messages {messages} us");
    }
    // Messages in blocks are faster, too, although they are never copied.
    let blocks = StreamSizes { rendezvous: 256 << 10, ..SEGMENTS };
    let (passed, counts) = chain(Via::Native, blocks, 1 << 20, true);
    let (stored, _) = chain(Via::Native, blocks, 1 << 20, false);
    assert!(counts.iter().all(|c| c.copied_in + c.copied_out == 0));
    assert!(2.0 * passed < stored, "{passed} us, {stored} us");
}

#[test]
fn no_message_is_slower_than_by_point_to_point() {
    for len in [0, 8, 1024, 4096, 64 << 10, 1 << 20] {
        let (messages, _) = transfer(Via::Messages, SEGMENTS, Pass::Second, len);
        let (streams, _) = transfer(Via::Native, SEGMENTS, Pass::Second, len);
        assert!(streams <= messages, "{len} bytes: {streams} us, by messages {messages} us");
    }
}
