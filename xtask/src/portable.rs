//! Builds for systems with an older glibc: `cargo-zigbuild` and zig, from PyPI.

use crate::files::run;
use crate::needs::Glibc;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Packages of PyPI that build for another release of glibc.
const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// A build for systems with a release of glibc or a newer one.
pub struct Portable {
    glibc: Glibc,
    /// Folder of the tools' commands.
    bin: PathBuf,
}

impl Portable {
    /// Target of such builds; also the name of the folder with the results.
    pub const TARGET: &str = "x86_64-unknown-linux-gnu";

    /// Installs the tools in `target/package-tools`, unless an earlier run has done so.
    ///
    /// # Errors
    /// There is no Python with `venv`, or no network.
    pub fn new(glibc: Glibc) -> Result<Portable, String> {
        let folder = crate::root().join("target/package-tools");
        let (bin, done) = (folder.join("bin"), folder.join("installed"));
        let tools = TOOLS.join(" ");
        if !fs::read_to_string(&done).is_ok_and(|installed| installed == tools) {
            println!("-- {tools} from PyPI, in {}", folder.display());
            run(
                Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder),
                "python3-venv",
            )?;
            let mut pip = Command::new(bin.join("python3"));
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            run(pip.args(TOOLS), "python3-venv")?;
            fs::write(&done, &tools).map_err(|e| format!("{}: {e}", done.display()))?;
        }
        Ok(Portable { glibc, bin })
    }

    /// Returns a command that builds as `cargo build` does, for the older glibc.
    pub fn build_command(&self) -> Command {
        let mut command = Command::new(self.bin.join("cargo-zigbuild"));
        command.arg("zigbuild").arg("--target").arg(format!("{}.{}", Self::TARGET, self.glibc));
        command.env("CARGO_ZIGBUILD_ZIG_PATH", self.bin.join("python-zig"));
        command
    }
}
