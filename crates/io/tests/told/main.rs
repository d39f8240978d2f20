//! Who hears that data are lost which seemed to be written.
#![cfg(not(miri))]

#[path = "../oracle/world.rs"]
mod world;

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use weft_io::storage::Storage;
use weft_io::storage::disk::{Disk, Kind};
use weft_io::storage::faulty::{Faulty, Plan};
use weft_io::{Amode, File, Pool, class};
use weft_process::{Error, Info};

const RDWR_CREATE: i32 = 32 | 2;

/// The rank whose host cannot hand over what was written.
const BAD: usize = 1;

/// What three ranks hear of a sync and of a close on a file system of this kind.
fn heard(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("file");
    world::run((3, false), async |comm| {
        let sync = (comm.rank() == BAD).then_some(libc::ENOSPC);
        let opener = move |path: &Path, options: &OpenOptions| {
            let plan = Plan { sync, kind: Some(kind), no_locks: true, ..Plan::default() };
            let storage = Faulty::new(Disk::new(options.open(path)?), plan);
            Ok(Arc::new(storage) as Arc<dyn Storage>)
        };
        let (pool, amode) = (Pool::new(comm.engine()), Amode::new(RDWR_CREATE).unwrap());
        let words = (name.as_os_str(), amode, &Info::default());
        let file = File::open(&comm, words, &pool, &opener).await.unwrap();
        let told = |result: Result<(), Error>, by: &str, all: bool| match result {
            Ok(()) => assert!(!all && comm.rank() != BAD, "{kind:?}, {by}: rank {}", comm.rank()),
            Err(error) => {
                assert!(all || comm.rank() == BAD, "{kind:?}, {by}: rank {}", comm.rank());
                assert_eq!(error.class(), class::NO_SPACE);
                assert_eq!(error.text().contains("rank 1"), comm.rank() != BAD, "{}", error.text());
            }
        };
        told(file.sync().await, "sync", kind != Kind::Local);
        let closed = file.close().await;
        // A close of one machine's own file system has nothing to hand over.
        match kind {
            Kind::Nfs => told(closed, "close", true),
            _ => closed.unwrap(),
        }
    });
}

#[test]
fn between_hosts_all_hear_that_one_could_not_hand_over() {
    for kind in [Kind::Nfs, Kind::Lustre, Kind::Network] {
        heard(kind);
    }
}

#[test]
fn on_one_machine_each_rank_hears_of_it_by_itself() {
    heard(Kind::Local);
}
