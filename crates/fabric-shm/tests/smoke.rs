//! Two ranks in two threads: the shortest use of every operation.
#![cfg(not(loom))]

use weft_bootstrap::{Bootstrap, threads};
use weft_fabric::{Fabric, Head, Posted, RemoteAddr, Sge};
use weft_fabric_shm::{Options, Shm};

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: used only in calls that take the bytes at once, while they are borrowed.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn run(n: usize, options: Options, body: impl Fn(&Shm, &mut dyn Bootstrap) + Sync) {
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
    run(1, Options::default(), |shm, _| {
        assert_eq!(shm.send(0, Head([1, 2, 3]), sge(&mut [7; 100]), None), Posted::Done);
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
        run(2, Options { cma, ..Options::default() }, |shm, world| {
            let mut memory = vec![shm.rank() as u8 + 1; 100_000];
            let region = shm.expose(sge(&mut memory)).unwrap();
            world.put("at", &region.remote.addr.to_ne_bytes()).unwrap();
            world.put("key", &region.remote.key.to_ne_bytes()).unwrap();
            world.fence().unwrap();
            let peer = 1 - shm.rank();
            let mut word =
                |key: &str| u64::from_ne_bytes(world.get(peer, key).unwrap().try_into().unwrap());
            let at = RemoteAddr { addr: word("at"), key: word("key") };
            let mut got = vec![0; 100_000];
            let result = shm.read(peer, sge(&mut got), at, None);
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
