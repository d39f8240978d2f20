//! Tests that are particular to shared memory. The other tests are in `conformance.rs`.

use weft_bootstrap::{Bootstrap, threads};
use weft_fabric::{
    CopyModel, Fabric, FabricExt, FaultCause, Head, PostOutcome, RemoteAddr, RemoteRead,
    RemoteWrite, Sge,
};
use weft_fabric_shm::{Shm, ShmConnectError, ShmOptions};
use weft_intranode::ModelSource;

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: the element is used only in calls that take the bytes at once, while they are borrowed.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn run(n: usize, options: ShmOptions, body: impl Fn(&Shm, &mut dyn Bootstrap) + Sync) {
    std::thread::scope(|scope| {
        for mut world in threads(n) {
            let (body, options) = (&body, options.clone());
            scope.spawn(move || {
                let shm = Shm::connect_with(&mut world, options).unwrap();
                body(&shm, &mut world);
                world.fence().unwrap();
            });
        }
    });
}

#[test]
fn a_world_of_one_talks_to_itself() {
    run(1, ShmOptions::default(), |shm, _| {
        assert_eq!(shm.send(0, Head([1, 2, 3]), sge(&mut [7; 100]), None), PostOutcome::Done);
        let message = shm.receive(None).unwrap();
        let mut got = [0; 100];
        message.payload.read(&mut got);
        assert_eq!((message.peer, message.head, got), (0, Head([1, 2, 3]), [7; 100]));
        shm.release(message);
        assert!(shm.receive(None).is_none());
    });
}

#[test]
fn the_own_memory_of_a_peer_is_reached_where_permitted() {
    for cma in [true, false] {
        run(2, ShmOptions { cma, ..ShmOptions::default() }, |shm, world| {
            let mut memory = vec![shm.rank() as u8 + 1; 100_000];
            let region = shm.expose(sge(&mut memory)).unwrap();
            world.put("at", &region.remote.words().map(u64::to_ne_bytes).concat()).unwrap();
            world.fence().unwrap();
            let peer = 1 - shm.rank();
            let bytes = world.get(peer, "at").unwrap();
            let word = |i: usize| u64::from_ne_bytes(bytes[8 * i..][..8].try_into().unwrap());
            let at = RemoteAddr::from_words(std::array::from_fn(word));
            let mut got = vec![0; 100_000];
            let result = shm.read(peer, &RemoteRead::new(sge(&mut got), at, None));
            assert_eq!(result.is_ok(), shm.capabilities(peer).direct);
            assert!(cma || result.is_err());
            if result.is_ok() {
                assert!(got.iter().all(|&b| b == peer as u8 + 1));
            } else if cma {
                eprintln!("SKIPPED: this system forbids cross-memory attach");
            }
            world.fence().unwrap();
        });
    }
}

#[test]
fn a_limit_without_room_is_an_error_that_names_it() {
    std::thread::scope(|scope| {
        for mut world in threads(2) {
            scope.spawn(move || {
                let options = ShmOptions { segment_limit: 1 << 20, ..ShmOptions::default() };
                let error = Shm::connect_with(&mut world, options).err().unwrap();
                assert!(matches!(
                    error,
                    ShmConnectError::NoRoom { .. } | ShmConnectError::Lowest(_)
                ));
                let text = error.to_string();
                assert!(text.contains("1048576 bytes") && text.contains("ulimit"), "{text}");
            });
        }
    });
}

#[test]
fn a_full_arena_is_an_error_and_not_the_end() {
    let options = ShmOptions { segment_limit: 8 << 20, ..ShmOptions::default() };
    run(1, options, |shm, _| {
        let error = shm.allocate(8 << 20).unwrap_err();
        assert!(matches!(error.cause(), FaultCause::NoRoom { memory: false, .. }), "{error}");
        let region = shm.allocate(4 << 20).unwrap();
        shm.withdraw(region);
        shm.withdraw(shm.allocate(4 << 20).unwrap());
    });
}

#[test]
fn large_freed_memory_goes_back_and_comes_again_zeroed() {
    run(1, ShmOptions::default(), |shm, _| {
        for _ in 0..2 {
            let region = shm.allocate(20 << 20).unwrap();
            let mut bytes = vec![1; 20 << 20];
            region.local.read(&mut bytes);
            assert!(bytes.iter().all(|&b| b == 0));
            region.local.fill(&vec![7; 20 << 20]);
            shm.withdraw(region);
        }
    });
}

#[test]
fn exposed_memory_of_the_arena_is_reached_without_cma() {
    run(2, ShmOptions { cma: false, ..ShmOptions::default() }, |shm, world| {
        let region = shm.allocate(4096).unwrap();
        region.local.fill(&[shm.rank() as u8 + 1; 4096]);
        let exposed = shm.expose(region.local.part(100, 50)).unwrap();
        world.put("at", &exposed.remote.addr.to_ne_bytes()).unwrap();
        world.fence().unwrap();
        let peer = 1 - shm.rank();
        let addr = u64::from_ne_bytes(world.get(peer, "at").unwrap().try_into().unwrap());
        let mut got = [0; 50];
        shm.read(
            peer,
            &RemoteRead::new(sge(&mut got), RemoteAddr { key: exposed.remote.key, addr }, None),
        )
        .unwrap();
        assert_eq!(got, [peer as u8 + 1; 50]);
        world.fence().unwrap();
        shm.withdraw(exposed);
        shm.withdraw(region);
    });
}

#[test]
fn the_policy_counts_processors_of_all_ranks() {
    run(3, ShmOptions::default(), |shm, _| {
        let processors = shm.processors();
        assert!(processors >= 1);
        assert_eq!(shm.policy().fits(), 3 <= processors);
    });
}

#[test]
fn many_ranks_cost_what_they_touch() {
    run(48, ShmOptions::default(), |shm, world| {
        let next = (shm.rank() + 1) % 48;
        shm.send(next, Head([shm.rank() as u64, 0, 0]), Sge::EMPTY, None);
        let message = loop {
            if let Some(message) = shm.receive(None) {
                break message;
            }
            std::thread::yield_now();
        };
        assert_eq!(message.head.0[0] as usize, (shm.rank() + 47) % 48);
        shm.release(message);
        world.fence().unwrap();
        // All 48 ranks are in this process, so the result is the memory that all ranks have touched.
        assert!(resident() < 64 << 20, "{} bytes resident", resident());
    });
}

/// Publishes an address, and returns the address of the other rank of two.
fn exchange(world: &mut dyn Bootstrap, key: &str, at: RemoteAddr) -> RemoteAddr {
    world.put(key, &at.words().map(u64::to_ne_bytes).concat()).unwrap();
    world.fence().unwrap();
    let bytes = world.get(1 - world.rank(), key).unwrap();
    RemoteAddr::from_words(std::array::from_fn(|i| {
        u64::from_ne_bytes(bytes[8 * i..][..8].try_into().unwrap())
    }))
}

#[test]
fn arenas_are_opened_as_they_grow_and_no_further() {
    run(2, ShmOptions::default(), |shm, world| {
        let peer = 1 - shm.rank();
        let small = shm.allocate(4096).unwrap();
        let first = exchange(world, "small", small.remote);
        let view = shm.mapped(peer, first, 4096).unwrap();
        view.part(0, 1).fill(&[1]);
        // No rank may access memory that the owner has not opened.
        let beyond = first.offset(64 << 20);
        let error = shm.write(peer, &RemoteWrite::new(sge(&mut [1; 8]), beyond, None)).unwrap_err();
        assert!(matches!(error.cause(), FaultCause::Corrupt { .. }), "{error}");
        assert!(!shm.try_write(peer, &RemoteWrite::new(sge(&mut [1; 8]), beyond, None)));
        world.fence().unwrap();
        // Lengths beyond the peer's first reservation, twice, so that the peer maps the arena anew.
        for (i, len) in [100usize << 20, 300 << 20].into_iter().enumerate() {
            let large = shm.allocate(len).unwrap();
            let last = exchange(world, &format!("large{i}"), large.remote).offset(len as u64 - 8);
            // A signal handler does not open the memory.
            assert!(!shm.try_write(peer, &RemoteWrite::new(sge(&mut [3; 8]), last, None)));
            shm.write(peer, &RemoteWrite::new(sge(&mut [i as u8 + 5; 8]), last, None)).unwrap();
            assert!(shm.try_read(peer, &RemoteRead::new(sge(&mut [0; 8]), last, None)));
            world.fence().unwrap();
            let mut got = [0; 8];
            large.local.part(len - 8, 8).read(&mut got);
            assert_eq!(got, [i as u8 + 5; 8]);
        }
        // The old address shows the same memory.
        view.part(1, 1).fill(&[2]);
        world.fence().unwrap();
        let mut got = [0; 2];
        small.local.part(0, 2).read(&mut got);
        assert_eq!(got, [1, 2]);
        assert!(resident() < 64 << 20, "{} bytes resident", resident());
        world.fence().unwrap();
    });
}

/// Returns the number of bytes of shared memory that this process has touched.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(2).unwrap().parse::<u64>().unwrap() << 12
}

#[test]
fn more_than_the_machine_has_is_not_promised_by_all_ranks_together() {
    run(2, ShmOptions::default(), |shm, world| {
        let mut regions = Vec::new();
        let fault = loop {
            match shm.allocate(1 << 30) {
                Ok(region) => regions.push(region),
                Err(fault) => break fault,
            }
        };
        assert!(matches!(fault.cause(), FaultCause::NoRoom { .. }), "{fault}");
        world.put("count", &[u8::try_from(regions.len()).unwrap_or(u8::MAX)]).unwrap();
        world.fence().unwrap();
        let other = world.get(1 - world.rank(), "count").unwrap()[0];
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
        let total = meminfo.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() >> 20;
        assert!(regions.len() + other as usize <= total + 1 || other == u8::MAX);
        world.fence().unwrap();
        // Memory that was given back can be committed again.
        let some = !regions.is_empty();
        regions.into_iter().for_each(|region| shm.withdraw(region));
        world.fence().unwrap();
        if some {
            shm.withdraw(shm.allocate(1 << 30).unwrap());
        }
    });
}

/// Connects ranks, each with its own options.
fn connected(options: Vec<ShmOptions>) -> Vec<Result<Shm, ShmConnectError>> {
    let ranks: Vec<_> = threads(options.len())
        .into_iter()
        .zip(options)
        .map(|(mut world, options)| {
            std::thread::spawn(move || Shm::connect_with(&mut world, options))
        })
        .collect();
    ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
}

fn with_copies(copies: ModelSource) -> ShmOptions {
    ShmOptions { copies, ..ShmOptions::default() }
}

#[test]
fn all_ranks_have_the_copy_costs_of_the_lowest() {
    let path = std::env::temp_dir().join(format!("weft-copies-{}.toml", std::process::id()));
    std::fs::write(&path, "[copies]\nswitch = 7\ncached = 12345\n").unwrap();
    let others = [ModelSource::Measure, ModelSource::Generic];
    let all = [ModelSource::File(path.clone())].into_iter().chain(others).map(with_copies);
    let ranks = connected(all.collect());
    std::fs::remove_file(&path).unwrap();
    for rank in &ranks {
        let model = rank.as_ref().unwrap().copies().model();
        assert_eq!((model.switch, model.cached), (7000.0, 1e3 / 12345.0));
        assert_eq!(model.line, CopyModel::GENERIC.line);
    }
    // Without a request, no rank measures.
    for rank in connected(vec![ShmOptions::default(); 2]) {
        assert_eq!(rank.unwrap().copies().model(), &CopyModel::GENERIC);
    }
}

#[test]
fn a_file_of_copy_costs_that_is_none_is_told_by_all_ranks() {
    for ranks in [1, 3] {
        let options = with_copies(ModelSource::File("/no/such/file.toml".into()));
        for rank in connected(vec![options; ranks]) {
            let error = rank.err().unwrap().to_string();
            assert!(error.contains("/no/such/file.toml"), "{error}");
        }
    }
}
