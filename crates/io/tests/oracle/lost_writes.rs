//! Reports of data that are lost after their write has succeeded.

use crate::faulty::{FaultPlan, FaultyStorage};
use crate::world;
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use weft_io::storage::Storage;
use weft_io::storage::disk::{Disk, FileSystemKind};
use weft_io::{Amode, File, IoPool, OpenArguments, class};
use weft_process::{Error, Info};

const RDWR_CREATE: i32 = 32 | 2;

/// Rank whose host cannot publish its data.
const BAD: usize = 1;

/// Checks the results of a sync and of a close of three ranks on a file system of this kind.
fn check_reports(kind: FileSystemKind) {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("file");
    world::run((3, false), async |comm| {
        let sync = (comm.rank() == BAD).then_some(libc::ENOSPC);
        let opener = move |path: &Path, options: &OpenOptions| {
            let plan = FaultPlan { sync, kind: Some(kind), no_locks: true, ..FaultPlan::default() };
            let storage = FaultyStorage::new(Disk::new(options.open(path)?), plan);
            Ok(Arc::new(storage) as Arc<dyn Storage>)
        };
        let (pool, amode) = (IoPool::new(comm.engine()), Amode::new(RDWR_CREATE).unwrap());
        let info = Info::default();
        let arguments = OpenArguments { name: name.as_os_str(), amode, info: &info };
        let file = File::open(&comm, arguments, &pool, &opener).await.unwrap();
        let check = |result: Result<(), Error>, by: &str, all: bool| match result {
            Ok(()) => assert!(!all && comm.rank() != BAD, "{kind:?}, {by}: rank {}", comm.rank()),
            Err(error) => {
                assert!(all || comm.rank() == BAD, "{kind:?}, {by}: rank {}", comm.rank());
                assert_eq!(error.class(), class::NO_SPACE);
                assert_eq!(error.text().contains("rank 1"), comm.rank() != BAD, "{}", error.text());
            }
        };
        check(file.sync().await, "sync", kind != FileSystemKind::Local);
        let closed = file.close().await;
        // Other file systems publish nothing at a close.
        match kind {
            FileSystemKind::Nfs => check(closed, "close", true),
            _ => closed.unwrap(),
        }
    });
}

#[test]
fn between_hosts_all_ranks_report_a_lost_write() {
    for kind in [FileSystemKind::Nfs, FileSystemKind::Lustre, FileSystemKind::Network] {
        check_reports(kind);
    }
}

#[test]
fn on_one_host_only_the_writer_reports_a_lost_write() {
    check_reports(FileSystemKind::Local);
}
