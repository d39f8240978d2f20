//! The limit on locked memory is reached in the middle of a job: large messages go through bounce buffers.

use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use weft_bootstrap::{Bootstrap, ThreadBootstrap, threads};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, Sge};
use weft_fabric_testing::adapters;
use weft_fabric_verbs::Verbs;
use weft_p2p::{
    MatchingContext, MessageTarget, ProtocolLimits, ReceiveSource, RequestId, SendMode, Want,
};
use weft_process::{Engine, Single};

/// Length in bytes of a message that goes by rendezvous.
const LEN: usize = 300_000;

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: `Sge::new` needs memory that is valid while in use: every caller keeps the bytes until the operation is
    // complete.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Sends `LEN` bytes from rank 0 to rank 1. Both wait for completion.
fn transfer(engine: &Engine<Verbs>, tag: i32) {
    let endpoint = engine.endpoint();
    let context = MatchingContext(9);
    let content: Vec<u8> = (0..LEN).map(|i| ((i as u64 * (tag as u64 + 7)) >> 3) as u8).collect();
    let mut memory = if endpoint.fabric().rank() == 0 { content.clone() } else { vec![0; LEN] };
    let request: Option<RequestId> = if endpoint.fabric().rank() == 0 {
        let target = MessageTarget { context, peer: 1, rank: 0, tag };
        endpoint.isend(target, sge(&mut memory), SendMode::Synchronous)
    } else {
        let want =
            Want { context, source: ReceiveSource::Rank { rank: 0, peer: 0 }, tag: Some(tag) };
        Some(endpoint.irecv(&want, sge(&mut memory)))
    };
    let since = Instant::now();
    let request = request.expect("never over at once");
    engine.drive(&Single, || {
        let trouble = endpoint.fabric().trouble();
        assert!(endpoint.fault().is_none(), "{:?}: {trouble:?}", endpoint.fault());
        assert!(since.elapsed() < Duration::from_secs(60), "a message does not arrive");
        endpoint.finish(request)
    });
    assert!(memory == content, "message {tag} is not what was sent");
}

/// Lowers the limit irrevocably.
fn lower(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: `setrlimit` needs a valid limit, which it only reads.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) }, 0);
}

fn rank(mut world: ThreadBootstrap, meeting: &Barrier, nodes: &[Vec<String>]) {
    let me = world.rank();
    let verbs = Verbs::connect_with(&mut world, adapters::options(nodes, me));
    let verbs = verbs.unwrap_or_else(|error| panic!("{error}"));
    let mut policy = WaitPolicy::new(false);
    policy.nap = Duration::from_millis(2);
    let engine = Engine::new(verbs, policy, ProtocolLimits::default());
    let made = || engine.endpoint().fabric().registrations().made;
    // This transfer also makes the connection.
    transfer(&engine, 1);
    let before = made();
    transfer(&engine, 2);
    let registered = made() - before;
    assert!(registered > 0, "a rendezvous registers the program's memory");
    meeting.wait();
    lower(64 << 10);
    meeting.wait();
    let before = made();
    transfer(&engine, 3);
    transfer(&engine, 4);
    println!(
        "rank {me}: {registered} registrations a message, {} beyond the limit",
        made() - before
    );
    assert_eq!(made(), before, "nothing can be registered");
    // Neither rank leaves before the other has taken its last messages.
    while !engine.endpoint().fabric().idle() {
        engine.progress();
    }
    meeting.wait();
}

#[test]
fn large_messages_go_through_buffers_where_nothing_can_be_registered() {
    const NAME: &str = "large_messages_go_through_buffers_where_nothing_can_be_registered";
    const AGAIN: &str = "WEFT_TEST_VERBS_AGAIN";
    let Some(nodes) = adapters::nodes() else { return };
    if std::env::var_os(AGAIN).is_some() {
        let meeting = Barrier::new(2);
        std::thread::scope(|scope| {
            for world in threads(2) {
                scope.spawn(|| rank(world, &meeting, &nodes));
            }
        });
        return;
    }
    // SAFETY: `geteuid` has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("NOT RUN: needs root, to become somebody whom the limit holds for");
        return;
    }
    let script = "ulimit -l unlimited; exec timeout 120 setpriv --reuid 65534 --regid 65534 \
                  --clear-groups \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(AGAIN, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    if text.contains("no permission on") {
        eprintln!("NOT RUN: only root may open the adapters here");
        return;
    }
    assert!(output.status.success(), "{}: {text}", output.status);
    assert!(text.contains("rank 0: ") && text.contains("rank 1: "), "{text}");
}
