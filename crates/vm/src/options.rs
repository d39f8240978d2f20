//! The options of `cargo xtask vm`, and their effect inside the virtual machine.

use super::host;
use std::path::{Path, PathBuf};

/// Environment variable with the path of the agent's program, inside the virtual machine.
pub const AGENT: &str = "WEFT_VM_AGENT";

/// The command to run, and the kind of virtual machine.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: COMMAND's own; 77 this machine cannot run it (a line NOT RUN says why); \
124 COMMAND took too long; 125 the virtual machine failed. With --two: that of machine 0, or if that is 0, \
of machine 1.\nEverything is logged in target/vm: last.log, console-N.log, qemu-N.log."
)]
pub struct VmArgs {
    /// Two virtual machines, vm0 and vm1, connected by two rails; COMMAND runs in both.
    #[arg(long)]
    pub two: bool,
    /// With --two: COMMAND runs in this machine only.
    #[arg(long, value_name = "NUMBER", requires = "two", value_parser = clap::value_parser!(u8).range(0..2))]
    pub only: Option<u8>,
    /// Maximum time for COMMAND in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub timeout: u64,
    /// Share of outgoing packets that every device of a rail loses, such as 2%.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub loss: Option<f64>,
    /// Further arguments of netem (tc-netem(8)), such as 'delay 1ms reorder 25%'.
    #[arg(long, value_name = "TEXT")]
    pub netem: Option<String>,
    /// MTU of the rails' devices; two numbers for the two ends.
    #[arg(long, value_name = "BYTES", default_value = "4200", value_parser = mtu)]
    pub mtu: Mtu,
    /// KiB of memory that COMMAND may lock (RLIMIT_MEMLOCK); it then has no CAP_IPC_LOCK either.
    #[arg(long, value_name = "KIB")]
    pub memlock: Option<u64>,
    /// Run COMMAND as this user.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Mode of /dev/infiniband/uverbs*, such as 600 (default: the kernel's, 666).
    #[arg(long, value_name = "OCTAL", value_parser = octal)]
    pub device_mode: Option<String>,
    /// A folder under /tmp that is visible to COMMAND; everything outside /tmp is visible anyway.
    #[arg(long, value_name = "DIR")]
    pub show: Vec<PathBuf>,
    /// Number of processors of a virtual machine.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub cpus: usize,
    /// Memory of a virtual machine in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub memory: usize,
    /// Build the virtual machine again, with the newest kernel.
    #[arg(long)]
    pub rebuild: bool,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    number.ok().filter(|n| (0.0..=100.0).contains(n)).ok_or("a number from 0% to 100%".to_owned())
}

/// MTUs of the two ends of every rail, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Mtu(pub u32, pub u32);

fn mtu(text: &str) -> Result<Mtu, String> {
    let number = |t: &str| t.parse().ok().filter(|n| (576..=9000).contains(n));
    let (one, other) = text.split_once(',').unwrap_or((text, text));
    let both = number(one).zip(number(other));
    both.map(|(a, b)| Mtu(a, b)).ok_or("a number from 576 to 9000, or two with a comma".to_owned())
}

fn octal(text: &str) -> Result<String, String> {
    let good = u32::from_str_radix(text, 8).is_ok_and(|mode| mode <= 0o777);
    good.then(|| text.to_owned()).ok_or("an octal number from 0 to 777".to_owned())
}

impl VmArgs {
    /// Returns the number of virtual machines.
    pub fn machines(&self) -> usize {
        if self.two { 2 } else { 1 }
    }

    /// Returns the words before the words of COMMAND, and of the commands of weft-vm-run.
    pub fn prefix(&self) -> Result<Vec<String>, String> {
        let mut all: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| all.extend(words.iter().map(|w| (*w).to_owned()));
        if let Some(kib) = self.memlock {
            let bytes = kib.saturating_mul(1024);
            add(&["prlimit", &format!("--memlock={bytes}:{bytes}")]);
            // A process with this capability is exempt from the limit.
            add(&["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]);
        }
        if let Some(name) = &self.user {
            let (user, group) = host::user(name)?;
            let (user, group) = (format!("--reuid={user}"), format!("--regid={group}"));
            add(&["setpriv", &user, &group, "--clear-groups"]);
        }
        Ok(all)
    }

    /// Returns the words of rails.sh's command line for machine `number`.
    pub fn rails(&self, number: usize) -> Vec<String> {
        let Mtu(one, other) = self.mtu;
        let mode = self.device_mode.clone().unwrap_or("-".to_owned());
        let mut all = [number, self.machines()].map(|n| n.to_string()).to_vec();
        all.extend([one.to_string(), other.to_string(), mode]);
        if let Some(percent) = self.loss {
            all.extend(["loss".to_owned(), format!("{percent}%")]);
        }
        all.extend(self.netem.iter().flat_map(|t| t.split_whitespace()).map(str::to_owned));
        all
    }
}

/// Returns the environment of COMMAND in machine `number`: the environment of this process, with the changes that are needed
/// inside.
pub fn environment(number: usize, agent: &Path, out: &Path) -> Vec<(String, String)> {
    let ours = std::env::vars_os();
    let text = |(k, v): (std::ffi::OsString, std::ffi::OsString)| {
        Some((k.into_string().ok()?, v.into_string().ok()?))
    };
    let mut all: Vec<(String, String)> = ours.filter_map(text).collect();
    all.retain(|(k, _)| !k.starts_with("WEFT_VM") && !["PATH", "TMPDIR"].contains(&k.as_str()));
    all.extend(inside(number, agent, out));
    all
}

/// Returns the environment of commands that weft-vm-run starts. The environment is small, as with ssh, so that the tests notice
/// code that relies on variables which no launcher has passed on.
pub fn remote(number: usize, agent: &Path, out: &Path) -> Vec<(String, String)> {
    let mut all = inside(number, agent, out);
    all.extend([("HOME", "/tmp"), ("SHELL", "/bin/sh")].map(|(k, v)| (k.to_owned(), v.to_owned())));
    all
}

fn inside(number: usize, agent: &Path, out: &Path) -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap_or_default();
    let tools = crate::root().join("crates/vm/guest/bin");
    let pairs = [
        ("PATH", format!("{}:{path}:/usr/sbin:/usr/bin:/sbin:/bin", tools.display())),
        ("WEFT_VM", number.to_string()),
        ("WEFT_VM_HOSTS", "/tmp/weft-vm/hosts".to_owned()),
        ("WEFT_VM_OUT", out.display().to_string()),
        (AGENT, agent.display().to_string()),
    ];
    pairs.map(|(k, v)| (k.to_owned(), v)).to_vec()
}

/// Returns the folders of `wanted` under /tmp, without repetition and without folders inside another folder. They are the part of
/// the host's /tmp that stays visible.
pub fn kept(wanted: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<&PathBuf> =
        wanted.iter().filter(|p| p.starts_with("/tmp") && p.components().count() > 2).collect();
    all.sort();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in all {
        if !kept.iter().any(|k| path.starts_with(k)) {
            kept.push(path.clone());
        }
    }
    kept
}

/// Returns paths as a word of the kernel's command line.
pub fn word(key: &str, paths: &[PathBuf]) -> Result<String, String> {
    let mut texts = Vec::new();
    for path in paths {
        let text = path.to_str().filter(|t| !t.contains([' ', '\t', '\n', ':', '"']));
        texts.push(text.ok_or_else(|| {
            format!("{path:?}: the virtual machine cannot be told a path with a space, ':' or '\"'")
        })?);
    }
    Ok(format!("weft.{key}={}", texts.join(":")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: VmArgs,
    }

    fn args(text: &str) -> VmArgs {
        try_args(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn try_args(text: &str) -> Result<VmArgs, String> {
        let line = Line::try_parse_from(std::iter::once("vm").chain(text.split(' ')));
        line.map(|l| l.args).map_err(|e| e.to_string())
    }

    #[test]
    fn options_reach_the_rails_script() {
        let rails = |text: &str, number| args(text).rails(number).join(" ");
        assert_eq!(rails("-- true", 0), "0 1 4200 4200 -");
        assert_eq!(rails("--loss 2% -- true", 0), "0 1 4200 4200 - loss 2%");
        let many = "--two --mtu 1500,4200 --loss 0.5 --netem delay --device-mode 600 -- true";
        assert_eq!(rails(many, 1), "1 2 1500 4200 600 loss 0.5% delay");
    }

    #[test]
    fn the_command_keeps_its_options() {
        assert_eq!(args("--timeout 9 -- ls -l --two").command, ["ls", "-l", "--two"]);
        assert!(!args("-- ls --two").two);
    }

    #[test]
    fn wrong_values_are_refused() {
        for text in [
            "--loss 101 -- x",
            "--mtu 100 -- x",
            "--mtu 1500,1500,1500 -- x",
            "--device-mode 8 -- x",
            "--only 0 -- x",
            "--two",
        ] {
            assert!(try_args(text).is_err(), "{text}");
        }
        assert!(args("--user no-such-user -- x").prefix().is_err());
    }

    #[test]
    fn limits_become_a_prefix() {
        assert!(args("-- x").prefix().unwrap().is_empty());
        let prefix = args("--memlock 64 --user root -- x").prefix().unwrap().join(" ");
        assert!(prefix.starts_with("prlimit --memlock=65536:65536 setpriv"), "{prefix}");
        assert!(prefix.ends_with("setpriv --reuid=0 --regid=0 --clear-groups"), "{prefix}");
    }

    #[test]
    fn kept_folders_are_under_tmp_and_none_twice() {
        let paths = ["/tmp/a/b", "/home/x", "/tmp", "/tmp/a", "/tmp/ab", "/tmp/a"];
        let kept = kept(&paths.map(PathBuf::from));
        assert_eq!(kept, ["/tmp/a", "/tmp/ab"].map(PathBuf::from));
    }

    #[test]
    fn paths_that_cannot_be_passed_are_named() {
        assert_eq!(word("keep", &["/a".into(), "/b".into()]), Ok("weft.keep=/a:/b".to_owned()));
        assert!(word("keep", &["/a b".into()]).unwrap_err().contains("/a b"));
    }
}
