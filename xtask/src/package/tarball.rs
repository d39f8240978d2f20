//! A compressed tar archive of an installation, which works in every folder.

use super::job::{PackageJob, VERSION, source_date};
use super::staging;
use crate::files::run;
use std::path::PathBuf;
use std::process::Command;

/// Makes the archive. Its files are in one folder, which has the archive's name. gzip makes larger archives than xz, but is on every
/// system.
pub fn make(job: &PackageJob) -> Result<PathBuf, String> {
    let name = format!("weft-{VERSION}-{}-linux", std::env::consts::ARCH);
    staging::stage(job.prefix, &job.work.join(&name))?;
    let archive = job.dist.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--gzip"]);
    tar.arg(format!("--mtime=@{}", source_date()?)).arg("-C").arg(job.work);
    run(tar.arg("-cf").arg(&archive).arg(&name), "tar")?;
    Ok(archive)
}
