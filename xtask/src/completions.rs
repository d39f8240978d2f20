//! Completions of the commands for bash, zsh and fish, in the folders of an installation in which these shells search. `weft` prints
//! its own completions. Those of `mpiexec` are made from its output of `-help`, because it reads its command line without clap.

use crate::files::{make_folder_of, replace};
use crate::manual::commands::{HelpPart, parts};
use crate::manual::said;
use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::Shell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A shell's files of completions.
pub struct ShellFolder {
    shell: Shell,
    /// Folder below the prefix.
    pub folder: &'static str,
    /// File name before and after the command's name.
    around: (&'static str, &'static str),
}

/// Shells with completions.
pub const SHELLS: [ShellFolder; 3] = [
    ShellFolder {
        shell: Shell::Bash,
        folder: "share/bash-completion/completions",
        around: ("", ""),
    },
    ShellFolder { shell: Shell::Zsh, folder: "share/zsh/site-functions", around: ("_", "") },
    ShellFolder {
        shell: Shell::Fish,
        folder: "share/fish/vendor_completions.d",
        around: ("", ".fish"),
    },
];

impl ShellFolder {
    /// Returns the file of a command.
    pub fn file(&self, command: &str) -> String {
        let (before, after) = self.around;
        format!("{before}{command}{after}")
    }
}

/// Names of the launcher.
const LAUNCHERS: [&str; 2] = ["mpiexec", "mpirun"];

/// Writes the completions of the commands of an installation.
pub fn install(prefix: &Path) -> Result<(), String> {
    let bin = prefix.join("bin");
    let launcher = launcher(&said(&bin.join("mpiexec"), &["-help"])?);
    for each in &SHELLS {
        let write = |name: &str, text: &[u8]| {
            let file = prefix.join(each.folder).join(each.file(name));
            make_folder_of(&file)?;
            replace(&file, |new| fs::write(new, text))
        };
        let own = said(&bin.join("weft"), &["completions", &each.shell.to_string()])?;
        write("weft", own.as_bytes())?;
        for name in LAUNCHERS {
            let mut text = Vec::new();
            clap_complete::generate(each.shell, &mut launcher.clone(), name, &mut text);
            write(name, &text)?;
        }
    }
    Ok(())
}

/// Returns the launcher's options as a command of clap, from its help text.
fn launcher(help: &str) -> Command {
    let mut seen = BTreeSet::new();
    let mut command = Command::new("mpiexec").disable_help_flag(true).disable_version_flag(true);
    for part in parts(help) {
        let HelpPart::Option(spellings, words) = part else { continue };
        let tokens: Vec<&str> = spellings.split([' ', ',', '(', ')']).collect();
        let value = tokens.iter().find(|token| !token.is_empty() && !token.starts_with('-'));
        for name in tokens.iter().filter_map(|token| token.strip_prefix('-')) {
            if seen.insert(name.to_owned()) {
                command = command.arg(option(name, value.copied(), &words));
            }
        }
    }
    let program = Arg::new("program").value_hint(ValueHint::CommandWithArguments);
    command.arg(program.num_args(1..).trailing_var_arg(true))
}

/// Returns an option. A name of one letter is a short option.
fn option(name: &str, value: Option<&str>, words: &str) -> Arg {
    let arg = Arg::new(name.to_owned()).help(words.to_owned());
    let arg = match *name.chars().collect::<Vec<_>>() {
        [letter] => arg.short(letter),
        _ => arg.long(name.to_owned()),
    };
    let hint = match value {
        None => return arg.action(ArgAction::SetTrue),
        Some("FILE") => ValueHint::FilePath,
        Some("DIR") => ValueHint::DirPath,
        Some("COMMAND") => ValueHint::CommandString,
        Some("A" | "B:2") => ValueHint::Hostname,
        Some(_) => ValueHint::Other,
    };
    arg.action(ArgAction::Append).value_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launchers_options_come_from_its_help() {
        let help = fs::read_to_string(crate::root().join("crates/launch/src/help.txt")).unwrap();
        let command = launcher(&help);
        let long = |name: &str| command.get_arguments().find(|arg| arg.get_long() == Some(name));
        for name in ["np", "hosts", "hostfile", "map-by", "help", "version", "timeout"] {
            assert!(long(name).is_some(), "{name}");
        }
        assert_eq!(long("hostfile").unwrap().get_value_hint(), ValueHint::FilePath);
        assert_eq!(long("wdir").unwrap().get_value_hint(), ValueHint::DirPath);
        assert!(matches!(long("help").unwrap().get_action(), ArgAction::SetTrue));
        let short = |letter| command.get_arguments().any(|arg| arg.get_short() == Some(letter));
        assert!(short('n') && short('H') && short('f') && short('l'));
        command.debug_assert();
    }

    /// Makes an installation whose commands only print their help, and completes the launcher's options by bash.
    #[test]
    fn bash_completes_the_options_of_an_installed_launcher() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let prefix = dir.path().join("a prefix");
        let help = crate::root().join("crates/launch/src/help.txt");
        fs::create_dir_all(prefix.join("bin")).unwrap();
        for (name, script) in [
            ("mpiexec", format!("#!/bin/sh\ncat '{}'\n", help.display())),
            ("weft", "#!/bin/sh\necho $*\n".to_owned()),
        ] {
            let file = prefix.join("bin").join(name);
            fs::write(&file, script).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        install(&prefix).unwrap();
        for (shell, text) in SHELLS.iter().zip(["bash", "zsh", "fish"]) {
            let own = fs::read_to_string(prefix.join(shell.folder).join(shell.file("weft")));
            assert_eq!(own.unwrap(), format!("completions {text}\n"));
        }
        let script = ". \"$0\"; COMP_WORDS=(mpirun --ho) COMP_CWORD=1; _mpirun mpirun --ho mpirun; echo ${COMPREPLY[@]}";
        let mut bash = std::process::Command::new("bash");
        bash.args(["--norc", "-c", script]).arg(prefix.join(SHELLS[0].folder).join("mpirun"));
        let said = bash.output().unwrap();
        let mut words: Vec<_> =
            std::str::from_utf8(&said.stdout).unwrap().split_whitespace().collect();
        words.sort_unstable();
        assert_eq!(words, ["--host", "--hostfile", "--hosts"], "{said:?}");
    }
}
