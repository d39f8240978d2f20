//! Set-user-ID programs, which must not load files that the user's environment names. The test needs root, as all tests here do.

use super::hosts::{failed, said};
use super::inside::NetTestsArgs;
use crate::test::cluster::parts::TestParts;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// ID of a user without privileges.
const NOBODY: &str = "65534";

/// Settings that name a file.
const NAMES: [&str; 4] = ["WEFT_OFI_LIBRARY", "WEFT_PMIX", "WEFT_MAP", "WEFT_COPY_MODEL"];

/// Value of these settings: a file that does not exist.
const FILE: &str = "/nowhere/of-the-user.so";

pub fn run(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    parts.part("privileged programs", |parts| {
        parts.test("files that the environment names are not used, which is said", || {
            let program = inside.programs.join("privileged");
            let made = fs::copy(inside.programs.join("hello"), &program)
                .and_then(|_| fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)));
            made.map_err(|e| format!("{}: {e}", program.display()))?;
            let run = || {
                let mut command = Command::new("setpriv");
                command.args([&format!("--reuid={NOBODY}"), "--clear-groups"]).arg(&program);
                command.env("WEFT_FABRIC", "ofi").env("HOME", "/");
                command
            };
            for name in NAMES {
                said(run().env(name, FILE), &format!("{name} is not used: this program"))?;
            }
            // For comparison, a program without these privileges tries to open the file.
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
                .map_err(|e| format!("{}: {e}", program.display()))?;
            let text = failed(run().env(NAMES[0], FILE))?;
            if text.contains(FILE) { Ok(String::new()) } else { Err(text) }
        });
        Ok(())
    })
}
