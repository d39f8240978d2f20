//! A virtual machine with its own file systems and devices, and with a kernel that has quotas and can simulate power cuts.

use super::inside::DeviceTest;
use crate::test::tally::Tally;
use crate::test::tools::captured_code;
use clap::ValueEnum;
use std::path::Path;
use std::process::Command;

/// Runs a part of `vm-files`, which must print `ok` the expected number of times. If the virtual machine cannot run, records this
/// in the tally.
pub fn run(what: DeviceTest, words: &[&Path], tally: &mut Tally) -> Result<(), String> {
    let checks = what.checks();
    let name = what.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    let own = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    let mut command = Command::new(&own);
    command.args(["vm", "--memory", "2048", "--timeout", "1200", "--"]).arg(&own).arg("vm-files");
    match captured_code(command.arg(&name).args(words))? {
        (0, said) => match said.lines().filter(|line| line.starts_with("ok   ")).count() {
            passed if passed == checks => {
                tally.passed += passed;
                Ok(())
            }
            passed => Err(format!("{name}: {passed} of {checks} checks said ok")),
        },
        (code, _) if code == i32::from(weft_vm::NOT_RUN) => {
            let reason = "no virtual machine here; the line NOT RUN above says why";
            tally.not_run.push(format!("{name}: {reason}"));
            Ok(())
        }
        (code, _) => Err(format!("{name}: code {code} (above, and target/vm/last.log)")),
    }
}
