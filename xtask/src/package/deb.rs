//! A package for Debian and Ubuntu. The installation has a folder of its own, and Debian's alternatives link to it, as to MPICH and to
//! Open MPI.

use super::job::{PackageJob, SUMMARY, VERSION, filled, source_date};
use super::staging;
use crate::completions::SHELLS;
use crate::files::{files, link, rename, run, write};
use crate::install::PKG_CONFIG;
use crate::needs;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "weft-mpi";

/// Files of the package's control archive, each with its template and its mode.
const CONTROL: [(&str, &str, u32); 6] = [
    ("control", include_str!("../../../packaging/deb/control"), 0o644),
    ("postinst", include_str!("../../../packaging/deb/postinst"), 0o755),
    ("prerm", include_str!("../../../packaging/deb/prerm"), 0o755),
    ("postrm", include_str!("../../../packaging/deb/postrm"), 0o755),
    ("shlibs", include_str!("../../../packaging/deb/shlibs"), 0o644),
    ("triggers", include_str!("../../../packaging/deb/triggers"), 0o644),
];

const COPYRIGHT: &str = include_str!("../../../packaging/deb/copyright");
const CHANGELOG: &str = include_str!("../../../packaging/deb/changelog");
const OVERRIDES: &str = include_str!("../../../packaging/deb/lintian-overrides");

/// Number of the package among those of the same version.
const REVISION: u32 = 1;

/// Architectures, each with Debian's name.
const ARCHITECTURES: [(&str, &str); 2] = [("x86_64", "amd64"), ("aarch64", "arm64")];

/// Programs of which other MPI packages have one with the same name. An alternative leads from the name to the program.
const SHARED: [&str; 5] = ["mpicc", "mpicxx", "mpifort", "mpiexec", "mpirun"];

/// Folders in which Debian's shells search for completions, in the order of [`SHELLS`]. Alternatives link to the completions of
/// shared programs.
const COMPLETIONS: [&str; 3] = [
    "usr/share/bash-completion/completions",
    "usr/share/zsh/vendor-completions",
    "usr/share/fish/vendor_completions.d",
];

/// Makes the package.
pub fn make(job: &PackageJob) -> Result<PathBuf, String> {
    let cpu = std::env::consts::ARCH;
    let architecture = ARCHITECTURES.into_iter().find(|(name, _)| *name == cpu);
    let (_, architecture) = architecture.ok_or(format!("Debian's name of {cpu} is not known"))?;
    let (root, triplet) = (job.work.join("root"), format!("{cpu}-linux-gnu"));
    let private = format!("usr/lib/{triplet}/weft");
    let home = root.join(&private);
    staging::stage(job.prefix, &home)?;
    let glibc = needs::glibc(&home)?.to_string();
    let date = date(source_date()?)?;

    let bin = format!("../lib/{triplet}/weft/bin");
    for name in SHARED {
        link(format!("{bin}/{name}"), &root.join(format!("usr/bin/{name}.weft")))?;
    }
    link(format!("{bin}/weft"), &root.join("usr/bin/weft"))?;
    // The alternative's link needs its folder.
    link(
        format!("../../lib/{triplet}/weft/include"),
        &root.join(format!("usr/include/{triplet}/weft")),
    )?;
    libraries_are_data(&home.join("lib"))?;
    // Only this library has a name that no other package uses for something else.
    let library = "libmpi_abi.so.1";
    link(format!("weft/lib/{library}"), &root.join(format!("usr/lib/{triplet}/{library}")))?;
    for (name, _) in PKG_CONFIG {
        let to = root.join(format!("usr/lib/{triplet}/pkgconfig")).join(name);
        pkg_config(&home.join("lib/pkgconfig").join(name), &private, &to)?;
    }
    for (shell, folder) in SHELLS.iter().zip(COMPLETIONS) {
        let name = shell.file("weft");
        let from = format!("../../../lib/{triplet}/weft/{}/{name}", shell.folder);
        link(from, &root.join(folder).join(name))?;
    }
    manual(&home.join("share/man"), &root.join("usr/share/man"))?;

    let size = size(&root)?.to_string();
    let version = format!("{VERSION}-{REVISION}");
    let values = [
        ("VERSION", &*version),
        ("SUMMARY", SUMMARY),
        ("ARCHITECTURE", architecture),
        ("TRIPLET", &triplet),
        ("GLIBC", &glibc),
        ("SIZE", &size),
        ("DATE", &date),
    ];
    for (name, template, mode) in CONTROL {
        let file = root.join("DEBIAN").join(name);
        write(&file, filled(template, &values))?;
        set_mode(&file, mode)?;
    }
    documents(&home, &root.join("usr/share/doc").join(PACKAGE), &filled(CHANGELOG, &values))?;
    write(&root.join("usr/share/lintian/overrides").join(PACKAGE), OVERRIDES)?;
    let package = job.dist.join(format!("{PACKAGE}_{version}_{architecture}.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.env("SOURCE_DATE_EPOCH", source_date()?.to_string());
    dpkg.args(["-Zxz", "--root-owner-group", "--build"]).arg(&root).arg(&package);
    run(&mut dpkg, "dpkg")?;
    Ok(package)
}

/// Writes the file for pkg-config, whose prefix is not relative, because alternatives link to the file.
fn pkg_config(from: &Path, private: &str, to: &Path) -> Result<(), String> {
    let text = fs::read_to_string(from).map_err(|e| format!("{}: {e}", from.display()))?;
    write(to, text.replace("prefix=${pcfiledir}/../..", &format!("prefix=/{private}")))
}

/// Takes the permission to execute from libraries, as Debian's policy says.
fn libraries_are_data(folder: &Path) -> Result<(), String> {
    let libraries = files(folder)?.into_iter().map(|path| folder.join(path));
    libraries.filter(|path| needs::is_elf(path)).try_for_each(|path| set_mode(&path, 0o644))
}

fn set_mode(file: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(file, fs::Permissions::from_mode(mode))
        .map_err(|e| format!("{}: {e}", file.display()))
}

/// Moves the documents to the place that Debian's policy names, and adds its own files.
fn documents(home: &Path, doc: &Path, changelog: &str) -> Result<(), String> {
    let from = home.join(staging::DOCUMENTS);
    rename(&from, doc)?;
    // The folder that contained only these documents is empty now.
    from.parent().map_or(Ok(()), fs::remove_dir).map_err(|e| format!("{}: {e}", from.display()))?;
    let mit = doc.join("LICENSE-MIT");
    let mit = fs::read_to_string(&mit).map_err(|e| format!("{}: {e}", mit.display()))?;
    // In this format, a line with a dot stands for an empty line.
    let line = |line: &str| if line.trim().is_empty() { " .".into() } else { format!(" {line}") };
    let mit = mit.lines().map(line).collect::<Vec<_>>().join("\n");
    write(&doc.join("copyright"), filled(COPYRIGHT, &[("MIT", &mit)]))?;
    rename(&doc.join("CHANGELOG.md"), &doc.join("changelog"))?;
    write(&doc.join("changelog.Debian"), changelog)?;
    run(
        Command::new("gzip")
            .arg("-9n")
            .args(["changelog", "changelog.Debian"].map(|name| doc.join(name))),
        "gzip",
    )
}

/// Section in the title of a function's page, before and after the move.
const SECTION: &str = " 3 \"\"";
const DEBIAN_SECTION: &str = " 3weft \"\"";

/// Moves the manual pages to the place that Debian's `man` searches. Pages of functions get the section `3weft`, and pages of shared
/// commands the suffix `.weft`, because other MPI packages have pages with the same names.
fn manual(from: &Path, to: &Path) -> Result<(), String> {
    for path in files(from)? {
        let text = fs::read_to_string(from.join(&path));
        let mut text = text.map_err(|e| format!("{}: {e}", path.display()))?;
        if let Some(target) = text.strip_prefix(".so ") {
            text = format!(".so {}\n", page(Path::new(target.trim())).display());
        }
        let text =
            if path.starts_with("man3") { text.replacen(SECTION, DEBIAN_SECTION, 1) } else { text };
        write(&to.join(page(&path)), text)?;
    }
    fs::remove_dir_all(from).map_err(|e| format!("{}: {e}", from.display()))?;
    run(Command::new("gzip").arg("-9nr").arg(to), "gzip")
}

/// Returns the path of a manual page in Debian.
fn page(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(match name.rsplit_once('.') {
        Some((_, "3")) => format!("{name}weft"),
        Some((command, section)) if command.starts_with("mpi") => {
            format!("{command}.weft.{section}")
        }
        _ => name.into_owned(),
    })
}

/// Returns a time as Debian's changelogs have it.
fn date(seconds: u64) -> Result<String, String> {
    let mut date = Command::new("date");
    date.env("LC_ALL", "C").args(["-u", "-R", "-d", &format!("@{seconds}")]);
    let output = date.output().map_err(|e| format!("cannot run date: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the size of all files below `root` in KiB.
fn size(root: &Path) -> Result<u64, String> {
    let sizes = files(root)?.into_iter().map(|path| fs::symlink_metadata(root.join(path)));
    Ok(sizes.flatten().map(|data| data.len().div_ceil(1024)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_names_that_other_packages_do_not_use() {
        for (here, debian) in [
            ("man3/MPI_Send.3", "man3/MPI_Send.3weft"),
            ("man1/mpic++.1", "man1/mpic++.weft.1"),
            ("man1/mpiCC.1", "man1/mpiCC.weft.1"),
            ("man1/weft-info.1", "man1/weft-info.1"),
        ] {
            assert_eq!(page(Path::new(here)), Path::new(debian));
        }
    }
}
