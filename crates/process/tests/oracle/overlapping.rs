//! Communicators of groups that overlap. Only their members make, use and free them, in one order everywhere, but each member in
//! its own time, under few tags and names. Each communicator has its members, and its data stay in it.

use fastrand::Rng;
use std::rc::Rc;
use weft_collective::algorithm::Carrier;
use weft_collective::catalog::ALGORITHMS;
use weft_collective::{CollectiveKind, Selection};
use weft_datatype::{Basic, Predefined, PredefinedOp};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, Staging, boxed};
use weft_fabric_sim::explore::Explored;
use weft_fabric_sim::{SimOptions, explore};
use weft_fabric_testing::machine::machine;
use weft_p2p::ProtocolLimits;
use weft_process::{Active, Buffer, Comm, Engine, Error, Group, MergePlace, RankBuffers};

/// Small limits, so that lists of members use all protocols of a message.
const LIMITS: ProtocolLimits =
    ProtocolLimits { eager: 200, credit: 4 << 10, ..ProtocolLimits::USUAL };

fn bytes() -> weft_datatype::Type {
    Predefined::new().of(Basic::BYTE).clone()
}

/// Kind of a step, the same for all ranks.
#[derive(Clone, Copy, Debug)]
enum How {
    Group,
    FromGroup,
    /// The communicator is made from two groups, into which the group is cut.
    FromGroups,
    Intercomm,
}

/// Sends rank and step of every member to all members, and checks the ranks and steps of all members.
async fn all_speak<F: Fabric>(comm: &Comm<F>, step: usize) -> Result<(), String> {
    let (size, me) = (comm.size(), comm.rank());
    let all: Staging = comm.engine().endpoint().staging().take(4 * size);
    let word = |rank: usize| (comm.group().ranks()[rank] << 16 | step as u32).to_ne_bytes();
    all.sge().part(4 * me, 4).fill(&word(me));
    let first = Buffer::over(all.sge().part(0, 4), bytes());
    let said = |e: Error| format!("step {step}: {e:?}");
    comm.allgather(None, RankBuffers::Equal { first, ranks: size }).await.map_err(said)?;
    let mut heard = vec![0; 4 * size];
    all.sge().read(&mut heard);
    for (rank, said) in heard.chunks_exact(4).enumerate() {
        if said != word(rank) {
            return Err(format!("step {step}: rank {rank} of {:?} said {said:x?}", comm.group()));
        }
    }
    comm.barrier().await.map_err(said)
}

/// Makes the communicator of step `step`, and returns it with its members.
async fn make<F: Fabric>(
    world: &Comm<F>,
    how: How,
    group: &Group,
    (step, tag): (usize, usize),
) -> Result<Rc<Comm<F>>, Error> {
    let engine = world.engine();
    let me = group.rank_of(engine.rank() as u32).expect("a member");
    let name = ["weft://one", "weft://other"][tag].as_bytes();
    let cut = 1 + step % (group.size() - 1);
    let sides = [0..cut, cut..group.size()].map(|part| group.include(&part.collect::<Vec<_>>()));
    let mine = usize::from(me >= cut);
    // Members other than the first ones lead, too.
    let leaders = sides.each_ref().map(|side| step % side.size());
    match how {
        How::Group => world.create_group(group, tag as i32).await,
        How::FromGroup => Comm::from_group(engine, group, name).await,
        How::FromGroups => {
            let remote = Some((&sides[1 - mine], leaders[1 - mine]));
            Comm::intercomm_from_groups(engine, &sides[mine], leaders[mine], remote, name)
                .await?
                .join()
        }
        How::Intercomm => {
            let local = world.create_group(&sides[mine], tag as i32).await?;
            let other = sides[1 - mine].ranks()[leaders[1 - mine]] as usize;
            local.intercomm(leaders[mine], Some((world, other)), tag as i32).await?.join()
        }
    }
}

/// Runs the steps of one rank.
async fn overlap<F: Fabric>(world: Rc<Comm<F>>, steps: usize, seed: u64) -> Result<u64, String> {
    let mut rng = Rng::with_seed(seed);
    let engine = world.engine().clone();
    let mut live: Vec<(usize, Rc<Comm<F>>)> = Vec::new();
    for step in 0..steps {
        let mut ranks: Vec<u32> = (0..world.size() as u32).collect();
        rng.shuffle(&mut ranks);
        ranks.truncate(if rng.bool() { 2 } else { rng.usize(2..=world.size()) });
        let how = [How::Group, How::Group, How::FromGroup, How::FromGroups, How::Intercomm];
        let (how, tag) = (how[rng.usize(..how.len())], rng.usize(..2));
        let (again, free) = (rng.bool(), rng.usize(..8));
        let group = Group::new(ranks);
        if group.rank_of(engine.rank() as u32).is_some() {
            let made = make(&world, how, &group, (step, tag)).await;
            let made = made.map_err(|e| format!("step {step}, {how:?}: {e:?}"))?;
            let whole = match made.remote() {
                Some(remote) => made.group().size() + remote.size(),
                None => made.size(),
            };
            if whole != group.size() {
                return Err(format!("step {step}, {how:?}: {whole} members of {group:?}"));
            }
            let one = if made.remote().is_some() {
                // Merges both groups, with this process's side where it was.
                let second = made.group().ranks()[0] != group.ranks()[0];
                let place = if second { MergePlace::High } else { MergePlace::Low };
                made.merge(place).await.map_err(|e| format!("step {step}: {e:?}"))?
            } else {
                made.clone()
            };
            if one.group().ranks() != group.ranks() {
                return Err(format!("step {step}, {how:?}: {:?}, not {group:?}", one.group()));
            }
            all_speak(&one, step).await?;
            live.push((step, one));
        }
        // Some of the live communicators are used, regardless of the ranks that have come so far.
        for (old, comm) in live.iter().filter(|(old, _)| again && old % 3 == step % 3) {
            if comm.remote().is_none() {
                all_speak(comm, *old).await?;
            }
        }
        live.retain(|(old, _)| old % 8 != free);
    }
    world.barrier().await.map_err(|e| format!("{e:?}"))?;
    Ok(seed)
}

fn explored(ranks: usize, seeds: std::ops::Range<u64>) -> Explored {
    let machine = machine(2);
    let steps = 24;
    let found = explore(&machine, SimOptions::new(ranks), seeds, |sim| {
        let engine = Engine::new(boxed(sim), WaitPolicy::new(true), LIMITS);
        let world = Comm::world(&engine);
        let seed = 77;
        engine.run(async move { overlap(world, steps, seed).await })
    });
    found.unwrap_or_else(|found| panic!("{ranks} ranks: {found}"))
}

#[test]
fn overlapping_groups_under_random_delays() {
    for ranks in [2, 3, 5, 8] {
        explored(ranks, 0..40);
    }
}

/// Returns the sum of `mine` by RDMA writes, from notify buffers that all communicators of a process share.
async fn sum<F: Fabric>(comm: &Comm<F>, mine: i32) -> Result<i32, String> {
    let memory = comm.engine().endpoint().staging().take(4);
    memory.sge().fill(&mine.to_ne_bytes());
    let ints = Buffer::over(memory.sge(), Predefined::new().of(Basic::INT).clone());
    comm.allreduce(None, ints, Rc::new(Sum)).await.map_err(|e| format!("{e:?}"))?;
    let mut bytes = [0; 4];
    memory.sge().read(&mut bytes);
    Ok(i32::from_ne_bytes(bytes))
}

struct Sum;

impl weft_collective::ElementReduction for Sum {
    fn combine(&self, left: weft_fabric::Sge, right: weft_fabric::Sge) {
        let summed = PredefinedOp::Sum.apply(
            Basic::INT,
            weft_datatype::ElementSpacing::Packed,
            right.len() / 4,
            left,
            right,
        );
        assert!(summed.is_ok());
    }

    fn commutes(&self) -> bool {
        true
    }
}

/// Runs each pair of ranks in turn, however late other ranks are: memory that is written from is not used again before the data
/// have left.
async fn pairs<F: Fabric>(world: Rc<Comm<F>>) -> Result<u64, String> {
    let me = world.rank();
    let mut closing = Vec::new();
    for round in 0..3 {
        for i in 0..world.size() {
            for j in i + 1..world.size() {
                if me != i && me != j {
                    continue;
                }
                let group = world.group().include(&[i, j]);
                let comm = world.create_group(&group, 0).await.map_err(|e| format!("{e:?}"))?;
                comm.select(world.selection());
                let say = |rank: usize| (1000 * round + 100 * i + 10 * j + rank) as i32;
                let found = sum(&comm, say(me)).await?;
                if found != say(i) + say(j) {
                    return Err(format!(
                        "round {round}, {i} and {j}: {found} for {}",
                        say(i) + say(j)
                    ));
                }
                closing.push(comm.engine().spawn(comm.close()));
            }
        }
    }
    for task in closing {
        world.finished(Active::Task(task)).await.map_err(|e| format!("{e:?}"))?;
    }
    world.barrier().await.map_err(|e| format!("{e:?}"))?;
    Ok(0)
}

#[test]
fn memory_of_freed_communicators_is_lent_again_under_random_delays() {
    let written = ALGORITHMS
        .iter()
        .filter(|a| a.operation == CollectiveKind::Allreduce && a.carrier == Carrier::Writes);
    let mut tried = 0;
    for algorithm in written {
        let found = explore(&machine(1), SimOptions::new(4), 0..100, |sim| {
            let engine = Engine::new(boxed(sim), WaitPolicy::new(true), LIMITS);
            let world = Comm::world(&engine);
            let mut selection = Selection::default();
            selection.ask(CollectiveKind::Allreduce, Some(algorithm.usual()));
            world.select(Rc::new(selection));
            engine.run(pairs(world))
        });
        found.unwrap_or_else(|found| panic!("{}: {found}", algorithm.name));
        tried += 1;
    }
    assert!(tried > 0);
}
