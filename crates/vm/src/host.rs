//! Requirements on this machine: Debian's packages, which are installed here if this user may do so.

use super::commands::quiet;
use super::log::Log;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Debian packages from which the virtual machine is built, and whose programs run in it.
const PACKAGES: &[&str] = &[
    "qemu-system-x86",
    "busybox-static",
    "cpio",
    "kmod",
    "xz-utils",
    "binutils",
    "util-linux",
    "iproute2",
    "libibverbs1",
    "ibverbs-providers",
    "ibverbs-utils",
    "rdmacm-utils",
];

/// Reason why the virtual machine is unavailable: this machine cannot run virtual machines (which is no failure of the code under
/// test), or a step failed.
#[derive(Debug, PartialEq)]
pub enum VmUnavailable {
    NotRun(String),
    Failed(String),
}

impl From<String> for VmUnavailable {
    fn from(text: String) -> VmUnavailable {
        VmUnavailable::Failed(text)
    }
}

/// Returns an apt-get command that asks no questions, and waits for the lock of another apt-get.
pub fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args([
        "-qq",
        "-o",
        "DPkg::Lock::Timeout=120",
        // The user _apt often cannot write to the project's directory.
        "-o",
        "APT::Sandbox::User=root",
    ]);
    command
}

pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Installs missing packages, as root. Fails if packages are not available.
pub fn prepare(log: &Log) -> Result<(), VmUnavailable> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(VmUnavailable::NotRun("the virtual machine needs Linux on x86-64".to_owned()));
    }
    for tool in ["dpkg-query", "apt-get", "apt-cache"] {
        if find(tool).is_none() {
            return Err(VmUnavailable::NotRun(format!(
                "no {tool} on this machine: the virtual machine is built from Debian's packages"
            )));
        }
    }
    let missing = missing(&installed());
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if !is_root() {
        return Err(VmUnavailable::NotRun(format!(
            "missing Debian packages; as root: apt-get install --no-install-recommends {names}"
        )));
    }
    log.say(&format!("installing Debian packages: {names}"));
    log.step("packages installed", || {
        update()?;
        quiet(apt_get().args(["install", "-y", "--no-install-recommends"]).args(&missing))
            .map_err(|e| explain(&format!("cannot install {names}"), &e))
    })?;
    Ok(())
}

/// Updates the package lists.
pub fn update() -> Result<(), String> {
    quiet(apt_get().arg("update"))
        .map(drop)
        .map_err(|e| explain("cannot read the package lists", &e))
}

/// Returns a program's error, cut to a few lines, with the most likely reason.
pub fn explain(what: &str, error: &str) -> String {
    let says = |texts: &[&str]| texts.iter().any(|t| error.contains(t));
    let reason = if says(&["Could not resolve", "Temporary failure", "Could not connect"]) {
        "the network cannot be reached; the virtual machine needs it once, for Debian's packages"
    } else if says(&["No space left", "enough free space"]) {
        "the disk is full; free some space"
    } else {
        "it says"
    };
    let lines: Vec<&str> = error.lines().collect();
    let mut shown = lines[..lines.len().min(6)].join("\n");
    if lines.len() > 6 {
        shown += &format!("\n({} lines more)", lines.len() - 6);
    }
    format!("{what}: {reason}:\n{shown}")
}

fn find(tool: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(tool))
        .find(|file| file.is_file())
}

/// Returns dpkg's status of the packages: for each package a line with status and name.
fn installed() -> String {
    let format = "${db:Status-Abbrev} ${Package}\n";
    // dpkg-query fails if it does not know a package, but still reports the other packages.
    let output = Command::new("dpkg-query").args(["-W", "-f", format]).args(PACKAGES).output();
    output.map_or(String::new(), |o| String::from_utf8_lossy(&o.stdout).into_owned())
}

fn missing(installed: &str) -> Vec<&'static str> {
    let have = |name: &str| {
        installed.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some("ii") && words.next() == Some(name)
        })
    };
    PACKAGES.iter().copied().filter(|name| !have(name)).collect()
}

/// Fails if the file system of `folder` has less than `bytes` free.
pub fn room(folder: &Path, bytes: u64) -> Result<(), String> {
    let name = folder.display();
    let stat = nix::sys::statvfs::statvfs(folder).map_err(|e| format!("{name}: {e}"))?;
    let free = stat.blocks_available() as u64 * stat.fragment_size() as u64;
    if free < bytes {
        let mib = |b: u64| b >> 20;
        return Err(format!(
            "{name} has {} MiB free; building the virtual machine takes {} MiB: free some space",
            mib(free),
            mib(bytes)
        ));
    }
    Ok(())
}

/// Returns true if KVM can be used: the processor offers it and this process may open it. On a processor without these flags,
/// /dev/kvm belongs to a paravirtual system that cannot run an ordinary kernel.
pub fn has_kvm() -> bool {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let offered = flags
        .lines()
        .find(|l| l.starts_with("flags"))
        .is_some_and(|l| l.split_whitespace().any(|f| f == "vmx" || f == "svm"));
    offered && fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok()
}

/// Returns the numbers of user and group.
pub fn user(name: &str) -> Result<(u32, u32), String> {
    match nix::unistd::User::from_name(name) {
        Ok(Some(user)) => Ok((user.uid.as_raw(), user.gid.as_raw())),
        Ok(None) => Err(format!("--user '{name}': no such user on this machine (see /etc/passwd)")),
        Err(e) => Err(format!("--user '{name}': {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_packages_are_those_that_are_not_installed() {
        let all: String = PACKAGES.iter().map(|p| format!("ii  {p}\n")).collect();
        assert!(missing(&all).is_empty());
        let removed = all.replace("ii  cpio", "rc  cpio").replace("ii  kmod\n", "");
        assert_eq!(missing(&removed), ["cpio", "kmod"]);
        assert_eq!(missing("").len(), PACKAGES.len());
    }

    #[test]
    fn a_full_disk_is_named() {
        let error = room(Path::new("/"), u64::MAX).unwrap_err();
        assert!(error.contains("MiB free"), "{error}");
        assert_eq!(room(Path::new("/"), 0), Ok(()));
    }

    #[test]
    fn unknown_users_are_named() {
        assert_eq!(user("root"), Ok((0, 0)));
        assert!(user("no such user").unwrap_err().contains("no such user"));
    }

    #[test]
    fn errors_get_a_reason_and_are_short() {
        let text = explain("x", "Err: Could not resolve 'deb.debian.org'");
        assert!(text.starts_with("x: the network cannot be reached"), "{text}");
        let text = explain("x", &"tar: a: No space left on device\n".repeat(900));
        assert!(text.starts_with("x: the disk is full"), "{text}");
        assert!(text.ends_with("(894 lines more)"), "{text}");
    }
}
