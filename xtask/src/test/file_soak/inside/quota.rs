//! A user's quota on ext4: a rank that writes beyond it gets MPI_ERR_QUOTA (tests/c/files/full.c). Not every kernel has quotas, so
//! this test needs the kernel of the virtual machine.

use super::device::{device, done, folder};
use nix::sys::quota::{Dqblk, QuotaType, QuotaValidFlags, quotactl_set};
use std::path::Path;

/// Numbers of ranks of the program.
const RANKS: [&str; 3] = ["1", "2", "4"];

/// Number of times that the test prints `ok`.
pub const CHECKS: usize = RANKS.len();

const PLACE: &str = "/tmp/quota";

/// User that runs the program, because root has no quota.
const USER: i32 = 65534;

/// The user's quota in KiB. It is less than the program writes, and the file system has room for more.
const LIMIT: u64 = 5 << 10;

/// Runs the program on a file system with a quota.
pub fn run(prefix: &Path, program: &Path) -> Result<(), String> {
    done(&["weft-vm-modprobe", "loop", "ext4", "quota_v2"])?;
    folder(PLACE)?;
    let disk = device("/tmp/disk", 64 << 20)?;
    done(&["mkfs.ext4", "-q", "-O", "quota", "-E", "quotatype=usrquota", &disk])?;
    // By default, the file system counts blocks but does not enforce the quota.
    done(&["mount", "-t", "ext4", "-o", "usrquota", &disk, PLACE])?;
    done(&["chmod", "777", PLACE])?;
    let mut limit = Dqblk::default();
    limit.set_blocks_hard_limit(LIMIT);
    quotactl_set(QuotaType::USRQUOTA, &*disk, USER, &limit, QuotaValidFlags::QIF_BLIMITS)
        .map_err(|e| format!("quota of {disk}: {e}"))?;
    let [mpiexec, program] =
        [&prefix.join("bin/mpiexec"), program].map(|p| p.display().to_string());
    let user = [format!("--reuid={USER}"), format!("--regid={USER}")];
    for ranks in RANKS {
        let words =
            ["setpriv", &user[0], &user[1], "--clear-groups", &mpiexec, "--timeout", "200", "-n"];
        let said = done(&[&words[..], &[ranks, &program, PLACE, "quota"]].concat())?;
        if !said.contains("correct") {
            return Err(format!("on {ranks} ranks: {said}"));
        }
        println!("ok   a quota of {LIMIT} KiB on ext4, on {ranks} ranks");
    }
    done(&["umount", PLACE]).map(drop)
}
