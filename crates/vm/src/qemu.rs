//! QEMU: its command line, and a process that ends with this program.

use super::host;
use super::image::VmImage;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Configuration of a virtual machine.
pub struct MachineShape<'a> {
    pub image: &'a VmImage,
    pub cpus: usize,
    /// Memory in MiB.
    pub memory: usize,
    /// Maximum MTU of the rails in bytes, if they are devices of QEMU.
    pub mtu: u32,
    /// Words of the kernel's command line that `init` reads, such as `weft.agent=...`.
    pub words: &'a [String],
    /// The folder of the host that is mounted writable.
    pub out: &'a Path,
    /// The folder for the logs of the kernel and of QEMU.
    pub logs: &'a Path,
}

pub struct VirtualMachine {
    child: Child,
    /// Connection to the agent.
    pub agent: UnixStream,
    logs: [PathBuf; 2],
}

impl VirtualMachine {
    /// Starts machine `number`. `wires` are its network devices' ends of the cables to the other machine.
    pub fn start(
        shape: &MachineShape,
        number: usize,
        wires: &[UnixStream],
    ) -> Result<VirtualMachine, String> {
        let failed = |e: std::io::Error| format!("cannot start QEMU: {e}");
        let (agent, theirs) = UnixStream::pair().map_err(failed)?;
        let logs = ["console", "qemu"].map(|n| shape.logs.join(format!("{n}-{number}.log")));
        // The log files are emptied, so that the log of an earlier run is never shown.
        fs::write(&logs[0], "").map_err(|e| format!("{}: {e}", logs[0].display()))?;
        let errors = File::create(&logs[1]).map_err(|e| format!("{}: {e}", logs[1].display()))?;
        for fd in wires.iter().chain([&theirs]) {
            inherit(fd.as_fd())?;
        }
        // If this program is killed, the kernel kills QEMU too.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "qemu-system-x86_64"])
            .args(arguments(shape, number, host::has_kvm(), &logs[0], &theirs, wires))
            .stdin(Stdio::null())
            .stdout(errors.try_clone().map_err(failed)?)
            .stderr(errors);
        let child = command.spawn().map_err(failed)?;
        Ok(VirtualMachine { child, agent, logs })
    }

    /// Returns true if the machine has ended by itself.
    pub fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends the machine immediately, like a power cut.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Returns the last lines of QEMU's log and of the kernel's log. If the kernel gave a reason for its end, the reason comes
    /// first.
    pub fn last_words(&self) -> String {
        let mut all = String::new();
        for path in &self.logs {
            let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
            let words = last_words(&text);
            if !words.is_empty() {
                all += &format!("\n{}:\n  {}", path.display(), words.join("\n  "));
            }
        }
        all
    }
}

/// Returns the lines of a log that name a reason, and its last lines.
fn last_words(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(12));
    let reasons = ["Kernel panic", "BUG:", "Oops", "Out of memory", "sysrq: "];
    let named = before.iter().filter(|l| reasons.iter().any(|r| l.contains(r)));
    named.chain(last).copied().collect()
}

impl Drop for VirtualMachine {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Lets child processes inherit a descriptor.
fn inherit(fd: BorrowedFd) -> Result<(), String> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty())).map(drop).map_err(|e| format!("fcntl: {e}"))
}

fn arguments(
    shape: &MachineShape,
    number: usize,
    kvm: bool,
    console: &Path,
    agent: &UnixStream,
    wires: &[UnixStream],
) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| all.extend(words.iter().map(|w| (*w).to_owned()));
    // QEMU takes the first accelerator that works.
    if kvm {
        add(&["-accel", "kvm"]);
    }
    add(&["-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max"]);
    add(&["-smp", &shape.cpus.to_string(), "-m", &shape.memory.to_string()]);
    add(&["-name", &format!("weft-vm{number}"), "-nodefaults", "-no-user-config", "-no-reboot"]);
    add(&["-display", "none", "-serial", &format!("file:{}", commas(console))]);
    add(&["-kernel", &shape.image.kernel.display().to_string()]);
    add(&["-initrd", &shape.image.initrd.display().to_string()]);
    let kernel = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable \
                  random.trust_cpu=on";
    add(&["-append", &format!("{kernel} {}", shape.words.join(" "))]);
    let share = "security_model=none,multidevs=remap";
    add(&["-fsdev", &format!("local,id=root,path=/,readonly=on,{share}")]);
    add(&["-device", "virtio-9p-pci,fsdev=root,mount_tag=root"]);
    add(&["-fsdev", &format!("local,id=out,path={},{share}", commas(shape.out))]);
    add(&["-device", "virtio-9p-pci,fsdev=out,mount_tag=out"]);
    add(&["-device", "virtio-serial-pci"]);
    add(&["-chardev", &format!("socket,id=agent,fd={}", agent.as_raw_fd())]);
    add(&["-device", "virtserialport,chardev=agent,nr=1,name=agent"]);
    for (i, wire) in wires.iter().enumerate() {
        add(&["-netdev", &format!("socket,id=net{i},fd={}", wire.as_raw_fd())]);
        let mac = format!("02:77:00:00:0{i}:0{}", number + 1);
        let mtu = shape.mtu;
        add(&["-device", &format!("virtio-net-pci,netdev=net{i},mac={mac},host_mtu={mtu}")]);
    }
    all
}

/// Returns a path in the syntax of QEMU's options: each comma is doubled.
fn commas(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_panic_is_among_its_last_words() {
        let mut text = "[1] Kernel panic - not syncing\r\n".to_owned();
        text += &"[2] some register\r\n\r\n".repeat(40);
        let words = last_words(&text);
        assert_eq!((words.len(), words[0]), (13, "[1] Kernel panic - not syncing"));
        assert_eq!(last_words("one\n"), ["one"]);
        assert!(last_words("").is_empty());
    }

    #[test]
    fn command_lines_name_every_share_and_wire() {
        let image = VmImage { kernel: "/k".into(), initrd: "/i".into() };
        let shape = MachineShape {
            image: &image,
            cpus: 2,
            memory: 512,
            mtu: 4200,
            words: &["weft.agent=/a".to_owned()],
            out: Path::new("/o,ut"),
            logs: Path::new("/l"),
        };
        let (agent, wire) = UnixStream::pair().unwrap();
        let of = |kvm, wires: &[UnixStream]| {
            arguments(&shape, 1, kvm, Path::new("/c"), &agent, wires).join(" ")
        };
        let one = of(false, &[]);
        assert!(one.contains("path=/o,,ut,") && one.contains("weft.agent=/a"), "{one}");
        assert!(one.contains("path=/,readonly=on"), "{one}");
        assert!(!one.contains("kvm") && !one.contains("virtio-net"), "{one}");
        let two = of(true, &[wire]);
        assert!(two.starts_with("-accel kvm -accel tcg"), "{two}");
        assert!(two.contains("mac=02:77:00:00:00:02,host_mtu=4200"), "{two}");
    }
}
