//! The library's own protocols under many schedules.

use std::rc::Rc;
use weft_collective::{
    CommView, ElementReduction, Members, Reception, ReductionBuffers, Via, allreduce, alltoall,
    barrier, bcast,
};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, Sge, Staging};
use weft_fabric_sim::{Sim, SimOptions, explore};
use weft_fabric_testing::machine::machine;
use weft_p2p::{MatchingContext, ProtocolLimits};
use weft_process::Engine;

const SEEDS: u64 = 300;

struct Sum;

impl ElementReduction for Sum {
    fn combine(&self, left: Sge, right: Sge) {
        let sums = words(left).into_iter().zip(words(right)).map(|(a, b)| a.wrapping_add(b));
        fill(right, sums.collect());
    }

    fn commutes(&self) -> bool {
        true
    }
}

fn words(memory: Sge) -> Vec<u64> {
    let mut bytes = vec![0; memory.len()];
    memory.read(&mut bytes);
    bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8"))).collect()
}

fn fill(memory: Sge, words: Vec<u64>) {
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
    memory.fill(&bytes);
}

/// Returns the block of `len` words that `from` has for `to` in an operation.
fn block(tag: i32, from: usize, to: usize, len: usize) -> Vec<u64> {
    (0..len as u64).map(|i| i << 40 | (tag as u64) << 20 | (from << 10 | to) as u64).collect()
}

fn expect(what: &str, got: Vec<u64>, expected: Vec<u64>) -> Result<(), String> {
    let differs = got.iter().zip(&expected).position(|(a, b)| a != b);
    match differs {
        None => Ok(()),
        Some(i) => Err(format!("{what}: word {i} is {:#x}, not {:#x}", got[i], expected[i])),
    }
}

/// Runs collectives with payloads from eager to rendezvous, one after the other.
async fn collectives(engine: Rc<Engine<Sim>>) -> Result<(), String> {
    let endpoint = engine.endpoint().clone();
    let (me, n) = (engine.rank(), endpoint.fabric().size());
    let members = Members::world(n);
    let link = |tag: i32| {
        let (endpoint, members) = (endpoint.clone(), members.clone());
        CommView {
            endpoint,
            members,
            rank: me,
            context: MatchingContext(3),
            tag,
            via: Via::Messages,
            reception: Reception::Marks,
        }
    };
    let stage = |content: Vec<u64>| -> Staging {
        let staging = endpoint.staging().take(8 * content.len());
        fill(staging.sge(), content);
        staging
    };
    let sges = |all: &[Staging]| -> Vec<Sge> { all.iter().map(Staging::sge).collect() };
    for (round, len) in [1, 20, 200, 1000].into_iter().enumerate() {
        let tag = 10 * round as i32;
        let (data, sum) = (stage(block(tag, me, 0, len)), stage(vec![0; len]));
        let buffers = ReductionBuffers { data: data.sge(), result: sum.sge(), element: 1 };
        allreduce::pairwise_exchange(&link(tag), buffers, &Sum)
            .await
            .map_err(|fault| fault.to_string())?;
        let mut expected = vec![0u64; len];
        for from in 0..n {
            let operand = block(tag, from, 0, len);
            expected.iter_mut().zip(operand).for_each(|(sum, word)| *sum += word);
        }
        expect("allreduce", words(sum.sge()), expected)?;

        let root = round % n;
        let content = if me == root { block(tag, root, 1, len) } else { vec![0; len] };
        let data = stage(content);
        bcast::binomial(&link(tag + 1), root, data.sge()).await.map_err(|f| f.to_string())?;
        expect("bcast", words(data.sge()), block(tag, root, 1, len))?;
        barrier::dissemination(&link(tag + 2)).await.map_err(|fault| fault.to_string())?;

        let out: Vec<_> = (0..n).map(|to| stage(block(tag, me, to, len))).collect();
        let into: Vec<_> = (0..n).map(|_| stage(vec![0; len])).collect();
        alltoall::pairwise(&link(tag + 3), &sges(&out), &sges(&into))
            .await
            .map_err(|fault| fault.to_string())?;
        for (from, got) in into.iter().enumerate() {
            expect("alltoall", words(got.sge()), block(tag, from, me, len))?;
        }
        // The send buffers are given back here: a late read would see other words.
        out.iter().for_each(|block| fill(block.sge(), vec![u64::MAX; len]));
    }
    Ok(())
}

#[test]
fn collectives_are_right_in_every_order() {
    for (ranks_per_node, limits) in [
        (1, ProtocolLimits { eager: 512, credit: 2048, ..ProtocolLimits::default() }),
        (2, ProtocolLimits { eager: 4096, credit: 16 << 10, ..ProtocolLimits::default() }),
    ] {
        let program = |sim| {
            let engine = Engine::new(sim, WaitPolicy::new(true), limits);
            engine.run(collectives(engine.clone()))
        };
        let explored = explore(&machine(ranks_per_node), SimOptions::new(5), 0..SEEDS, program);
        match explored {
            Ok(explored) => assert_eq!(explored.seeds, SEEDS),
            Err(found) => panic!("{ranks_per_node} ranks on a node, {limits:?}: {found}"),
        }
    }
}
