//! A Slurm of three nodes, all of which are this machine, from Debian's packages, with its own configuration, keys and ports, independent of any Slurm of the
//! machine.

use super::tools::{quiet, step};
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names of Debian's packages. `libpmix-dev` contains the file name `libpmix.so`, which Slurm's plugin loads.
const PACKAGES: [&str; 6] =
    ["slurm-wlm", "slurmd", "slurmctld", "munge", "libpmix2", "libpmix-dev"];
const PROGRAMS: [&str; 5] = ["munged", "mungekey", "slurmctld", "slurmd", "srun"];
/// Partition of two nodes, whose names are no names of this machine.
pub const TWO_NODES: &str = "two";
/// Nodes of the partition.
pub const NODES: [&str; 2] = ["weft-a", "weft-b"];
/// Maximum time until the daemons are ready.
const LIMIT: Duration = Duration::from_secs(30);

/// Running daemons, which end when this value is dropped.
pub struct Slurm {
    folder: PathBuf,
    daemons: Vec<Child>,
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // Ends the daemons in the opposite order of their start. Each daemon is a child of this process, so no other process can
        // have its process number.
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

impl Slurm {
    /// Starts Slurm. An error is the reason why this machine cannot run Slurm.
    pub fn start() -> Result<Slurm, String> {
        if !nix::unistd::geteuid().is_root() {
            return Err("Slurm's daemons need root".to_owned());
        }
        if !PROGRAMS.iter().all(|program| is_there(program)) {
            install()?;
        }
        // The folder is not below the target folder, because munged requires that only root can write to each folder above it.
        let folder = PathBuf::from(format!("/run/weft-test-slurm-{}", std::process::id()));
        let mut slurm = Slurm { folder, daemons: Vec::new() };
        slurm.munge()?;
        slurm.slurm()?;
        Ok(slurm)
    }

    /// Returns the environment variable that makes Slurm's commands use this Slurm.
    pub fn variable(&self) -> (String, String) {
        ("SLURM_CONF".to_owned(), self.folder.join("slurm.conf").display().to_string())
    }

    /// Starts a daemon that stays in the foreground.
    fn daemon(&mut self, command: &mut Command) -> Result<(), String> {
        let (key, value) = self.variable();
        let log = fs::File::create(self.folder.join(format!("{}.out", self.daemons.len())))
            .map_err(|e| format!("{}: {e}", self.folder.display()))?;
        command.env(key, value).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
        self.daemons.push(child);
        Ok(())
    }

    fn munge(&mut self) -> Result<(), String> {
        let munge = nix::unistd::User::from_name("munge").ok().flatten();
        let munge = munge.ok_or("there is no user munge")?;
        let place = self.folder.join("munge");
        fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
        let (uid, gid) = (munge.uid.as_raw(), munge.gid.as_raw());
        let key = place.join("key");
        quiet(Command::new("mungekey").arg("-c").arg("-k").arg(&key))?;
        for path in [&place, &key] {
            chown(path, Some(uid), Some(gid)).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let mut munged = Command::new("setpriv");
        munged.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}"));
        munged.args(["--clear-groups", "munged", "--foreground", "--num-threads=2"]);
        for (option, file) in [
            ("--key-file", "key"),
            ("--socket", "socket"),
            ("--pid-file", "pid"),
            ("--log-file", "log"),
            ("--seed-file", "seed"),
        ] {
            munged.arg(format!("{option}={}", place.join(file).display()));
        }
        self.daemon(&mut munged)?;
        self.wait(&place.join("socket"), &|path: &Path| path.exists())
    }

    fn slurm(&mut self) -> Result<(), String> {
        let host = nix::unistd::gethostname().map_err(|e| format!("host name: {e}"))?;
        let host = host.to_string_lossy();
        let host = host.split('.').next().unwrap_or_default();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let text = configuration(&self.folder, host, processors, free_ports()?);
        let nodes = [host, NODES[0], NODES[1]];
        // A killed step leaves files. They must not disturb a later step with the same number.
        let steps = self.folder.join("steps");
        fs::create_dir_all(&steps).map_err(|e| format!("{}: {e}", steps.display()))?;
        let mpi = format!("PMIxCliTmpDirBase={}\n", steps.display());
        for (file, text) in [("slurm.conf", text.as_str()), ("mpi.conf", &mpi), ("cgroup.conf", "")]
        {
            fs::write(self.folder.join(file), text).map_err(|e| format!("{file}: {e}"))?;
        }
        let conf = self.folder.join("slurm.conf");
        for folder in ["ctld"].iter().chain(&nodes) {
            let spool = self.folder.join(folder);
            fs::create_dir_all(&spool).map_err(|e| format!("{}: {e}", spool.display()))?;
        }
        self.daemon(Command::new("slurmctld").args(["-D", "-f"]).arg(&conf))?;
        for node in nodes {
            self.daemon(Command::new("slurmd").args(["-D", "-N", node, "-f"]).arg(&conf))?;
        }
        let (key, value) = self.variable();
        self.wait(&self.folder.join("slurmctld.log"), &|_| {
            let mut sinfo = Command::new("sinfo");
            sinfo.args(["-h", "-N", "-o", "%t"]).env(&key, &value);
            quiet(&mut sinfo).is_ok_and(|states| {
                states.lines().filter(|state| state.trim() == "idle").count() == nodes.len()
            })
        })
    }

    fn wait(&self, what: &Path, is_ready: &dyn Fn(&Path) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + LIMIT;
        while !is_ready(what) {
            if Instant::now() > deadline {
                return Err(format!("not ready after {LIMIT:?}:\n{}", self.logs()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Returns the last lines of the daemons' logs.
    pub fn logs(&self) -> String {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let files = entries.map(|e| e.path()).filter(|p| {
            p.extension().is_some_and(|extension| extension == "log" || extension == "out")
        });
        let end = |path: PathBuf| {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let end = lines[lines.len().saturating_sub(20)..].join("\n");
            format!("{}:\n{end}\n", path.display())
        };
        files.map(end).collect()
    }
}

/// Returns ports of this machine that are free now: for the controller, and for each node.
fn free_ports() -> Result<[u16; 4], String> {
    let listen = || std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| format!("port: {e}"));
    let held = [listen()?, listen()?, listen()?, listen()?];
    Ok(held.map(|l| l.local_addr().map(|a| a.port()).unwrap_or_default()))
}

fn configuration(folder: &Path, host: &str, processors: usize, ports: [u16; 4]) -> String {
    let folder = folder.display();
    let [control, own, a, b] = ports;
    let node = |name: &str, port: u16| {
        format!(
            "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={processors} \
             RealMemory=100 State=UNKNOWN\n"
        )
    };
    let nodes = [node(host, own), node(NODES[0], a), node(NODES[1], b)].concat();
    let [first, second] = NODES;
    format!(
        "ClusterName=weft\n\
         SlurmctldHost={host}(127.0.0.1)\n\
         SlurmctldPort={control}\n\
         SlurmUser=root\n\
         AuthType=auth/munge\n\
         CredType=cred/munge\n\
         AuthInfo=socket={folder}/munge/socket\n\
         ProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\n\
         ReturnToService=2\n\
         SlurmctldPidFile={folder}/slurmctld.pid\n\
         SlurmdPidFile={folder}/%n.pid\n\
         SlurmctldLogFile={folder}/slurmctld.log\n\
         SlurmdLogFile={folder}/%n.log\n\
         SlurmdSpoolDir={folder}/%n\n\
         StateSaveLocation={folder}/ctld\n\
         SelectType=select/cons_tres\n\
         KillWait=2\n\
         {nodes}\
         PartitionName=p Nodes={host} Default=YES OverSubscribe=FORCE:64 State=UP\n\
         PartitionName={TWO_NODES} Nodes={first},{second} OverSubscribe=FORCE:64 State=UP\n"
    )
}

/// Installs the packages, but only on a machine without systemd, because systemd would start services.
fn install() -> Result<(), String> {
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !is_there(program)).collect();
    let advice = format!(
        "there is no {}; apt-get install --no-install-recommends {}",
        missing.join(", "),
        PACKAGES.join(" ")
    );
    if !is_there("apt-get") || Path::new("/run/systemd/system").exists() {
        return Err(advice);
    }
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-qq", "-o", "DPkg::Lock::Timeout=300"]).args(args);
        step(command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()))
    };
    apt(&["update"])
        .and_then(
            |()| apt(&[&["install", "-y", "--no-install-recommends"], &PACKAGES[..]].concat()),
        )
        .map_err(|error| format!("{advice} ({error})"))
}
