//! Debian's packages as files.

use super::tools::quiet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Unpacks Debian's packages into a folder, without installing them: an installed library would hide ours.
pub fn unpack(packages: &[&str], to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    let mut apt = Command::new("apt-get");
    let options = ["-qq", "-o", "APT::Sandbox::User=root", "download"];
    quiet(apt.args(options).args(packages).current_dir(to))
        .map_err(|_| format!("apt-get download {} fails", packages.join(" ")))?;
    for entry in fs::read_dir(to).map_err(|e| format!("{}: {e}", to.display()))?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "deb") {
            quiet(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(to))?;
        }
    }
    Ok(())
}
