//! Errors name the cause, the place and a remedy, and nothing hangs.

use std::time::{Duration, Instant};
use weft_bootstrap::{Bootstrap, ThreadBootstrap, threads};
use weft_fabric::{
    Fabric, Fault, FaultCause, Head, PostOutcome, RemoteAddr, RemoteRead, RemoteWrite, Sge,
};
use weft_fabric_testing::adapters;
use weft_fabric_verbs::{Verbs, VerbsConnectError, VerbsOptions};

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: `Sge::new` needs memory that is valid while in use: every caller keeps the bytes until the operation is
    // complete.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Runs a closure for each of two ranks, which have no connections yet.
fn two(
    change: fn(&mut VerbsOptions),
    first: impl FnOnce(Verbs, &mut ThreadBootstrap) + Send,
    second: impl FnOnce(Verbs, &mut ThreadBootstrap) + Send,
) {
    let Some(nodes) = adapters::nodes() else { return };
    let mut worlds = threads(2);
    let (mut b, mut a) = (worlds.pop().unwrap(), worlds.pop().unwrap());
    let connect = |world: &mut ThreadBootstrap| {
        let mut options = adapters::options(&nodes, world.rank());
        change(&mut options);
        Verbs::connect_with(world, options).unwrap_or_else(|error| panic!("{error}"))
    };
    std::thread::scope(|scope| {
        scope.spawn(move || first(connect(&mut a), &mut a));
        scope.spawn(move || second(connect(&mut b), &mut b));
    });
}

/// Returns the next message of any peer, or the fault if the fabric has failed.
fn take(verbs: &Verbs) -> Result<u64, Fault> {
    let start = Instant::now();
    let sleeper = verbs.sleeper();
    loop {
        verbs.progress();
        if let Some(message) = verbs.receive(None) {
            let number = message.head.0[0];
            verbs.release(message);
            return Ok(number);
        }
        if let Some(fault) = verbs.fault() {
            return Err(fault);
        }
        assert!(start.elapsed() < Duration::from_secs(60), "neither message nor fault");
        let token = sleeper.arm();
        if !verbs.progress() {
            sleeper.sleep(token, Duration::from_millis(500));
        }
        sleeper.disarm();
    }
}

fn send(verbs: &Verbs, number: u64) {
    let posted = verbs.send(1 - verbs.rank(), Head([number, 0, 0]), Sge::EMPTY, None);
    assert_eq!(posted, PostOutcome::Done);
}

/// Ends without disconnecting, like a process that was killed.
fn die(verbs: Verbs) {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _verbs = verbs;
        std::panic::resume_unwind(Box::new("killed"));
    }));
    assert!(panic.is_err());
}

#[test]
fn a_sender_hears_that_its_peer_has_died() {
    two(
        |_| (),
        |verbs, world| {
            send(&verbs, 1);
            assert_eq!(take(&verbs), Ok(2));
            world.fence().unwrap();
            let start = Instant::now();
            send(&verbs, 3);
            assert_eq!(take(&verbs), Err(Fault::lost(1)));
            let text = verbs.trouble().unwrap();
            eprintln!("after {:?}: {text}", start.elapsed());
            assert!(text.starts_with("it is on "), "{text}");
            assert!(text.contains("did not acknowledge for at least"), "{text}");
            // Later operations are refused immediately.
            let region = verbs.allocate(8).unwrap();
            let at = region.remote;
            assert!(verbs.write(1, &RemoteWrite::new(region.local, at, None)).is_err());
        },
        |verbs, world| {
            assert_eq!(take(&verbs), Ok(1));
            send(&verbs, 2);
            while !verbs.idle() {
                verbs.progress();
            }
            die(verbs);
            world.fence().unwrap();
        },
    );
}

/// Nothing is sent to the dead peer, so only the keepalive can detect its death.
#[test]
fn a_receiver_hears_that_its_peer_has_died() {
    two(
        |options| options.keepalive = Duration::from_millis(300),
        |verbs, world| {
            send(&verbs, 1);
            assert_eq!(take(&verbs), Ok(2));
            world.fence().unwrap();
            assert_eq!(take(&verbs), Err(Fault::lost(1)));
        },
        |verbs, world| {
            assert_eq!(take(&verbs), Ok(1));
            send(&verbs, 2);
            while !verbs.idle() {
                verbs.progress();
            }
            die(verbs);
            world.fence().unwrap();
        },
    );
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    two(
        |options| options.patience = Duration::from_millis(400),
        |verbs, world| {
            send(&verbs, 1);
            assert_eq!(take(&verbs), Err(Fault::lost(1)));
            let text = verbs.trouble().unwrap();
            assert!(text.contains("has not answered"), "{text}");
            world.fence().unwrap();
        },
        |verbs, world| {
            // This rank makes no progress.
            world.fence().unwrap();
            drop(verbs);
        },
    );
}

/// A peer that has disconnected causes no fault, until this process sends it a message.
#[test]
fn a_peer_that_has_left_is_no_fault_until_it_is_sent_to() {
    two(
        |options| options.keepalive = Duration::from_millis(50),
        |verbs, world| {
            for number in 0..100 {
                send(&verbs, number);
                assert_eq!(take(&verbs), Ok(number));
            }
            world.fence().unwrap();
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(3000) {
                verbs.progress();
                assert_eq!(verbs.fault(), None, "{:?}", verbs.trouble());
                std::thread::sleep(Duration::from_millis(1));
            }
            send(&verbs, 1);
            assert_eq!(take(&verbs), Err(Fault::lost(1)));
            assert!(verbs.trouble().unwrap().contains("has left"), "{:?}", verbs.trouble());
        },
        |verbs, world| {
            for number in 0..100 {
                assert_eq!(take(&verbs), Ok(number));
                send(&verbs, number);
            }
            drop(verbs);
            world.fence().unwrap();
        },
    );
}

#[test]
fn a_withdrawn_region_is_refused_by_the_adapter() {
    two(
        |_| (),
        |verbs, world| {
            let at = adapters::exchange(world, "at", RemoteAddr::default());
            let mut into = vec![0; 100_000];
            world.fence().unwrap();
            verbs.read(1, &RemoteRead::new(sge(&mut into), at, None)).unwrap();
            let fault = take(&verbs).unwrap_err();
            assert!(matches!(fault.cause(), FaultCause::Corrupt { rank: 1, .. }), "{fault}");
            assert!(verbs.trouble().unwrap().contains("withdrawn"), "{:?}", verbs.trouble());
            assert!(into.iter().all(|&b| b == 0));
            world.fence().unwrap();
        },
        |verbs, world| {
            let mut memory = vec![1; 100_000];
            let region = verbs.expose(sge(&mut memory)).unwrap();
            adapters::exchange(world, "at", region.remote);
            verbs.withdraw(region);
            world.fence().unwrap();
            // Answers the connect request, until the other end fails.
            let _ = take(&verbs);
            world.fence().unwrap();
        },
    );
}

/// Returns the error of a single process with these options.
fn refused(change: impl FnOnce(&mut VerbsOptions, &[Vec<String>])) -> Option<VerbsConnectError> {
    let nodes = adapters::nodes()?;
    let mut options = adapters::options(&nodes, 0);
    change(&mut options, &nodes);
    let mut world = threads(1).pop().unwrap();
    Some(Verbs::connect_with(&mut world, options).err().expect("an error"))
}

#[test]
fn wrong_choices_are_named_with_what_there_is() {
    if let Some(error) = refused(|options, _| options.devices = vec!["mlx7_9".to_owned()]) {
        let text = error.to_string();
        assert!(text.contains("`mlx7_9`") && text.contains(":1"), "{text}");
    }
    if let Some(error) = refused(|options, _| options.gid_index = Some(200)) {
        let text = error.to_string();
        assert!(text.contains("index 200"), "{text}");
    }
    if let Some(error) = refused(|options, _| options.rail = Some(7)) {
        let text = error.to_string();
        assert!(text.contains("the option `rail` is 7, but must be less than"), "{text}");
    }
}

#[test]
fn a_failure_of_one_is_known_to_all() {
    let Some(nodes) = adapters::nodes() else { return };
    let mut worlds = threads(2);
    let (mut b, mut a) = (worlds.pop().unwrap(), worlds.pop().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let options =
                VerbsOptions { devices: vec!["nonesuch".to_owned()], ..VerbsOptions::default() };
            assert!(Verbs::connect_with(&mut a, options).is_err());
        });
        let options = adapters::options(&nodes, 1);
        let error = Verbs::connect_with(&mut b, options).err().expect("an error");
        let text = error.to_string();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let start = format!("process 0 on {}: ", host.trim());
        assert!(text.starts_with(&start) && text.contains("nonesuch"), "{text}");
    });
}

#[test]
fn mtus_that_differ_are_noted_and_the_smaller_is_used() {
    two(
        |_| (),
        |verbs, world| {
            // The two cables of the virtual machine may have different MTUs (`--mtu 4200,1500`).
            let mtu = |end: &str| std::fs::read_to_string(format!("/sys/class/net/{end}/mtu")).ok();
            let text = verbs.describe().join("\n");
            let noted = text.contains("the smaller is used");
            assert_eq!(noted, mtu("va0") != mtu("vb0"), "{text}");
            world.fence().unwrap();
        },
        |_, world| world.fence().unwrap(),
    );
    let Some(nodes) = adapters::nodes() else { return };
    let run = |mut world: ThreadBootstrap| {
        let mut options = adapters::options(&nodes, world.rank());
        options.mtu = (world.rank() == 1).then_some(1024);
        let verbs = Verbs::connect_with(&mut world, options).unwrap();
        let lines = verbs.describe();
        assert!(lines.iter().any(|line| line.contains("the smaller is used")), "{lines:?}");
        assert_eq!(verbs.capabilities(1 - world.rank()).mtu, 1024);
        let mut payload = vec![7; 8000];
        let posted = verbs.send(1 - world.rank(), Head([1, 0, 0]), sge(&mut payload), None);
        if posted == PostOutcome::Later {
            while !verbs.idle() {
                verbs.progress();
            }
        }
        assert_eq!(take(&verbs), Ok(1));
        world.fence().unwrap();
    };
    std::thread::scope(|scope| {
        for world in threads(2) {
            scope.spawn(|| run(world));
        }
    });
}

/// Rank 1 has only the second cable. Both ranks use this cable, although its number differs.
#[test]
fn rails_are_of_networks_that_all_have() {
    let Some(nodes) = adapters::nodes().filter(|n| n.len() == 2 && n[0].len() == 2) else { return };
    let run = |mut world: ThreadBootstrap| {
        let me = world.rank();
        let mut options = adapters::options(&nodes, me);
        if me == 1 {
            options.devices.remove(0);
        }
        let verbs = Verbs::connect_with(&mut world, options).unwrap();
        assert_eq!(verbs.capabilities(1 - me).rails, 1);
        let text = verbs.describe().join("\n");
        assert!(text.contains(&format!("rail 0: {}", nodes[me][1])), "{text}");
        let note = format!("{} in network RoCE 10.77.0.0/24 is not used, since", nodes[0][0]);
        let why = "process 1 on vm0 has ports in RoCE 10.77.1.0/24 only";
        assert_eq!(text.contains(&note) && text.contains(why), me == 0, "{text}");
        send(&verbs, 7);
        assert_eq!(take(&verbs), Ok(7));
        while !verbs.idle() {
            verbs.progress();
        }
        world.fence().unwrap();
    };
    std::thread::scope(|scope| {
        for world in threads(2) {
            scope.spawn(|| run(world));
        }
    });
}
