//! The kernel and the initramfs, built once from Debian's kernel package, which is not installed.

use super::commands::quiet;
use super::host::{self, VmUnavailable, apt_get};
use super::log::Log;
use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package that depends on the newest kernel. The `-cloud-` flavour has no rdma_rxe.
const PACKAGE: &str = "linux-image-amd64";

/// Modules that the virtual machine needs: its disks and port, the rails, soft-RoCE. Modules on which they depend are added.
const MODULES: &[&str] = &[
    "virtio_pci",
    "9pnet_virtio",
    "9p",
    "virtio_console",
    "veth",
    "virtio_net",
    "sch_netem",
    // rxe asks for the checksum by name when a device is made; there is no modprobe inside to find it.
    "crc32_generic",
    "crc32_pclmul",
    "rdma_rxe",
    "rdma_ucm",
    "ib_umad",
];

/// Modules that a command may load by `weft-vm-modprobe`: a server and a client of NFS, block devices made of files, a log of each
/// write to a block device, from which the state at a power cut is made, and quotas.
const EXTRA: &[&str] =
    &["nfsd", "nfsv4", "loop", "dm_log_writes", "ext4", "crc32c_generic", "quota_v2"];

/// busybox's commands that `init` uses.
const APPLETS: &[&str] =
    &["sh", "mount", "mkdir", "insmod", "cat", "tr", "ln", "chroot", "poweroff"];

const INIT: &str = include_str!("../guest/init");

/// Free space that building takes: the package, what it unpacks to, and the image.
const ROOM: u64 = 800 << 20;

pub struct VmImage {
    /// An ELF file, or what the package has where it is packed in a way that we do not know.
    pub kernel: PathBuf,
    pub initrd: PathBuf,
}

/// Changes whenever an image would be built in another way.
fn recipe() -> String {
    let mut hasher = DefaultHasher::new();
    (INIT, MODULES, EXTRA, APPLETS, include_str!("image.rs")).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The image in `folder`, built if there is none by today's recipe.
pub fn get(folder: &Path, rebuild: bool, log: &Log) -> Result<VmImage, VmUnavailable> {
    let recipe = recipe();
    let mine = |path: &PathBuf| path.to_string_lossy().ends_with(&format!("-{recipe}"));
    let mut images: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("image-")))
        .collect();
    images.sort();
    let found = images.iter().rev().find(|p| mine(p)).filter(|_| !rebuild);
    let place = match found {
        Some(place) => place.clone(),
        None => {
            host::room(folder, ROOM)?;
            log.say("building the virtual machine, once: about half a minute");
            let work = folder.join("work");
            let _ = fs::remove_dir_all(&work);
            let built = build(&work, log);
            let version = match built {
                Ok(version) => version,
                Err(error) => {
                    let _ = fs::remove_dir_all(&work);
                    return Err(error);
                }
            };
            // Older images are of no more use.
            images.iter().for_each(|old| drop(fs::remove_dir_all(old)));
            let place = folder.join(format!("image-{version}-{recipe}"));
            fs::rename(work.join("image"), &place)
                .map_err(|e| format!("{}: {e}", place.display()))?;
            let _ = fs::remove_dir_all(&work);
            place
        }
    };
    log.note(&format!("image {}", place.display()));
    Ok(VmImage { kernel: place.join("kernel"), initrd: place.join("initrd.cpio") })
}

/// Makes `work/image`; the kernel's version.
fn build(work: &Path, log: &Log) -> Result<String, VmUnavailable> {
    let image = work.join("image");
    make(&image)?;
    let package = newest()?;
    let deb = log.step(&format!("downloaded {package}"), || download(&package, work))?;
    let unpacked = work.join("kernel");
    let version = log.step("unpacked the kernel", || {
        unpack(&deb, &unpacked).map_err(|e| host::explain("cannot unpack the kernel", &e))
    })?;
    log.step("made the kernel's ELF file", || {
        let packed = unpacked.join(format!("boot/vmlinuz-{version}"));
        let made = elf(&packed, &image.join("kernel"));
        made.map_err(|e| host::explain("cannot make the kernel's ELF file", &e))
    })?;
    log.step("made the initramfs", || {
        let to = image.join("initrd.cpio");
        let made = initramfs(&unpacked, &version, &work.join("root"), &to);
        made.map_err(|e| host::explain("cannot make the initramfs", &e))
    })?;
    log.step("copied the other modules", || {
        let made = extra(&unpacked, &version, &image);
        made.map_err(|e| host::explain("cannot copy modules", &e))
    })?;
    Ok(version)
}

fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))
}

/// The name of the newest kernel's package.
fn newest() -> Result<String, VmUnavailable> {
    let ask = || -> Result<Option<String>, String> {
        Ok(dependency(&quiet(Command::new("apt-cache").args(["depends", PACKAGE]))?))
    };
    // An error here means that apt does not know the package, perhaps for want of lists.
    if let Ok(Some(name)) = ask() {
        return Ok(name);
    }
    if !host::is_root() {
        return Err(VmUnavailable::NotRun(format!(
            "apt does not know {PACKAGE}; on Debian, as root: apt-get update"
        )));
    }
    host::update()?;
    match ask() {
        Ok(Some(name)) => Ok(name),
        _ => Err(VmUnavailable::NotRun(format!(
            "this system's package lists have no {PACKAGE}: the virtual machine needs Debian's kernel"
        ))),
    }
}

/// The versioned kernel among the dependencies that apt-cache prints.
fn dependency(depends: &str) -> Option<String> {
    let names = depends.lines().filter_map(|l| l.trim().strip_prefix("Depends: "));
    let mut kernels = names.filter(|n| n.starts_with("linux-image-") && *n != PACKAGE);
    kernels.next().map(str::to_owned)
}

fn download(package: &str, folder: &Path) -> Result<PathBuf, String> {
    let fetch = || quiet(apt_get().arg("download").arg(package).current_dir(folder));
    if fetch().is_err() {
        // Lists that are older than the archive name files that are no longer there.
        if host::is_root() {
            host::update()?;
        }
        fetch().map_err(|e| host::explain(&format!("cannot download {package}"), &e))?;
    }
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files = entries.flatten().map(|e| e.path());
    files
        .find(|p| p.extension().is_some_and(|e| e == "deb"))
        .ok_or_else(|| format!("apt-get download {package} left no file in {}", folder.display()))
}

/// Unpacks what we take modules from, as `depmod` and `modprobe` expect it; the kernel's version.
fn unpack(deb: &Path, to: &Path) -> Result<String, String> {
    make(to)?;
    let pattern = |folder: &str| format!("*/lib/modules/*/{folder}");
    quiet(
        // With pipefail a cut package is an error; bash is on every Debian.
        Command::new("bash")
            .args(["-o", "pipefail", "-c"])
            .arg("dpkg --fsys-tarfile \"$0\" | tar -x -C \"$1\" --wildcards \"${@:2}\"")
            .arg(deb)
            .arg(to)
            .args(["./boot/vmlinuz-*".to_owned(), pattern("modules.*")])
            .args(
                ["virtio", "net", "char", "infiniband", "block", "md"]
                    .map(|d| pattern(&format!("drivers/{d}"))),
            )
            .args(["fs", "net", "crypto", "lib", "arch"].map(|d| pattern(&format!("kernel/{d}")))),
    )?;
    // Since the merge of /usr the package has usr/lib; modprobe looks into lib.
    if !to.join("lib").exists() {
        symlink("usr/lib", to.join("lib")).map_err(|e| e.to_string())?;
    }
    let modules = to.join("lib/modules");
    let entries = fs::read_dir(&modules).map_err(|e| format!("{}: {e}", modules.display()))?;
    let version = entries
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .next()
        .ok_or("the kernel's package has no modules")?;
    // Newer kernels pack each module; inside nothing unpacks them.
    let mut find = Command::new("find");
    find.arg(&modules).args(["-name", "*.ko.xz", "-exec", "xz", "-d", "{}", "+"]);
    quiet(&mut find)?;
    quiet(Command::new("/sbin/depmod").arg("-b").arg(to).arg(&version))?;
    Ok(version)
}

/// Writes the ELF file that the kernel unpacks itself to: starting that takes seconds less, emulated.
fn elf(packed: &Path, to: &Path) -> Result<(), String> {
    let bytes = fs::read(packed).map_err(|e| format!("{}: {e}", packed.display()))?;
    let Some(inner) = payload(&bytes).filter(|p| p.starts_with(b"\xfd7zXZ\0")) else {
        return fs::write(to, bytes).map_err(|e| format!("{}: {e}", to.display()));
    };
    let out = fs::File::create(to).map_err(|e| format!("{}: {e}", to.display()))?;
    let mut command = Command::new("xz");
    command.args(["-dc", "--single-stream"]);
    feed(&mut command, inner, out)
}

/// The packed kernel in a bzImage (Linux, Documentation/x86/boot.rst: setup_sects at 0x1f1,
/// payload_offset and payload_length at 0x248, from version 2.08 of the protocol on).
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?));
    let version = u16::from_le_bytes(image.get(0x206..0x208)?.try_into().ok()?);
    if image.get(0x202..0x206)? != b"HdrS" || version < 0x208 {
        return None;
    }
    let setup = match *image.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (setup + 1) * 512 + word(0x248)? as usize;
    image.get(start..start.checked_add(word(0x24c)? as usize)?)
}

/// Runs a filter from bytes to a file.
fn feed(command: &mut Command, bytes: &[u8], to: fs::File) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let start = command.stdin(Stdio::piped()).stdout(to).stderr(Stdio::piped()).spawn();
    let mut child = start.map_err(|e| format!("cannot start {name}: {e}"))?;
    // The output of the command is short, so it cannot block the command while this process writes.
    let wrote = child.stdin.take().map(|mut i| i.write_all(bytes));
    let output = child.wait_with_output().map_err(|e| format!("{name}: {e}"))?;
    match wrote {
        Some(Ok(())) if output.status.success() => Ok(()),
        _ => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(format!("{name} failed: {}: {}", output.status, text.trim_end()))
        }
    }
}

/// Module files in an order in which each finds those that it needs, each once.
///
/// `depends` holds what `modprobe --show-depends` prints for each module: lines `insmod FILE OPTIONS`
/// in order, and `builtin NAME`, which need no loading.
fn order(depends: &[String]) -> Vec<PathBuf> {
    let lines = depends.iter().flat_map(|text| text.lines());
    let files = lines.filter_map(|l| l.strip_prefix("insmod ")?.split_whitespace().next());
    let mut seen = HashSet::new();
    files.filter(|file| seen.insert(*file)).map(PathBuf::from).collect()
}

/// The files of these modules and of those that they need, in the order of loading.
fn needed(unpacked: &Path, version: &str, modules: &[&str]) -> Result<Vec<PathBuf>, String> {
    let depends = |module: &&str| {
        let mut command = Command::new("/sbin/modprobe");
        // The machine's own settings (options, black lists) are none of ours.
        command.args(["-C", "/dev/null", "-S", version, "--show-depends", module, "-d"]);
        quiet(command.arg(unpacked))
    };
    Ok(order(&modules.iter().map(depends).collect::<Result<Vec<_>, _>>()?))
}

/// Copies [`EXTRA`] to `image`, as modprobe expects modules.
fn extra(unpacked: &Path, version: &str, image: &Path) -> Result<(), String> {
    let root = format!("lib/modules/{version}");
    let folder = image.join(&root);
    make(&folder)?;
    let copy = |from: &Path, to: &Path| {
        fs::copy(from, to)
            .map(drop)
            .map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))
    };
    for list in ["modules.order", "modules.builtin", "modules.builtin.modinfo"] {
        copy(&unpacked.join(&root).join(list), &folder.join(list))?;
    }
    for file in needed(unpacked, version, EXTRA)? {
        copy(&file, &folder.join(file.file_name().unwrap_or_default()))?;
    }
    quiet(Command::new("/sbin/depmod").arg("-b").arg(image).arg(version)).map(drop)
}

fn initramfs(unpacked: &Path, version: &str, root: &Path, to: &Path) -> Result<(), String> {
    let files = needed(unpacked, version, MODULES)?;
    for folder in ["bin", "modules", "proc", "sys", "dev", "host", "tmp.host"] {
        make(&root.join(folder))?;
    }
    let failed = |e: std::io::Error| format!("{}: {e}", root.display());
    let mut names = String::new();
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let copy = root.join("modules").join(&*name);
        quiet(Command::new("strip").args(["--strip-debug", "-o"]).arg(&copy).arg(file))?;
        names += &format!("{name}\n");
    }
    fs::write(root.join("modules/order"), names).map_err(failed)?;
    fs::copy("/bin/busybox", root.join("bin/busybox")).map_err(|e| format!("/bin/busybox: {e}"))?;
    for name in APPLETS {
        symlink("busybox", root.join("bin").join(name)).map_err(failed)?;
    }
    fs::write(root.join("init"), INIT).map_err(failed)?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(root.join("init"), executable).map_err(failed)?;
    let list = quiet(Command::new("find").arg(".").current_dir(root))?;
    let out = fs::File::create(to).map_err(|e| format!("{}: {e}", to.display()))?;
    let mut cpio = Command::new("cpio");
    cpio.args(["-o", "-H", "newc", "--quiet", "-R", "0:0"]).current_dir(root);
    feed(&mut cpio, list.as_bytes(), out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_after_what_they_need_and_once() {
        let first = "insmod /m/ring.ko \ninsmod /m/virtio.ko \ninsmod /m/pci.ko a=1\n".to_owned();
        let second = "builtin crc\ninsmod /m/ring.ko \ninsmod /m/9p.ko \n".to_owned();
        let files = ["/m/ring.ko", "/m/virtio.ko", "/m/pci.ko", "/m/9p.ko"].map(PathBuf::from);
        assert_eq!(order(&[first, second]), files);
        assert!(order(&[]).is_empty());
    }

    #[test]
    fn the_kernel_is_found_among_dependencies() {
        let text = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n  Depends: x\n";
        assert_eq!(dependency(text), Some("linux-image-6.1.0-56-amd64".to_owned()));
        assert_eq!(dependency("linux-image-amd64\n"), None);
    }

    #[test]
    fn the_payload_is_where_the_header_says() {
        let mut image = vec![0; 2048];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&3_u32.to_le_bytes());
        image[1040..1043].copy_from_slice(b"abc");
        assert_eq!(payload(&image), Some(&b"abc"[..]));
        image[0x24c..0x250].copy_from_slice(&5000_u32.to_le_bytes());
        assert_eq!(payload(&image), None);
        assert_eq!(payload(b"short"), None);
    }

    #[test]
    fn filters_report_their_failure() {
        let out = || fs::OpenOptions::new().write(true).open("/dev/null").unwrap();
        assert_eq!(feed(&mut Command::new("cat"), b"x", out()), Ok(()));
        let error = feed(Command::new("xz").arg("-dc"), b"not xz", out()).unwrap_err();
        assert!(error.contains("xz failed"), "{error}");
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = feed(&mut Command::new("cat"), b"x", full).unwrap_err();
        assert!(error.contains("No space left"), "{error}");
    }
}
