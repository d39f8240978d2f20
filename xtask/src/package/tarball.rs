//! A compressed tar archive of an installation, which works in every folder.

use super::{PackageJob, VERSION, source_date, staging};
use std::path::PathBuf;
use std::process::Command;

/// Makes the archive. Its files are in one folder, which has the archive's name.
pub fn make(job: &PackageJob) -> Result<PathBuf, String> {
    let name = format!("weft-{VERSION}-{}-linux", std::env::consts::ARCH);
    staging::stage(job.prefix, &job.work.join(&name))?;
    let archive = job.dist.join(format!("{name}.tar.xz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", source_date()?)).arg("-C").arg(job.work);
    // xz gives the same archive for each number of threads greater than one.
    tar.env("XZ_OPT", "-6 -T2").arg("-cJf").arg(&archive).arg(&name);
    staging::run(&mut tar, "tar, xz-utils")?;
    Ok(archive)
}
