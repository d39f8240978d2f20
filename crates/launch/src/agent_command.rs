//! Commands that start an agent on a host: ssh, the command of a batch system, or a command that the user gives.

use std::ffi::OsString;
use std::path::Path;

/// Command that reaches a host by default. With BatchMode, ssh fails if it needs a password, because no user could type the
/// password.
pub const SSH: [&str; 4] = ["ssh", "-x", "-o", "BatchMode=yes"];

/// Word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentWord {
    /// Fixed word.
    Fixed(String),
    /// This text, then the name of the host.
    Host(&'static str),
    /// This text, then the tag of the host. The word is left out for a host without a tag.
    Tag(&'static str),
}

/// Reader of the command line that comes behind the words of an [`AgentCommand`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineReader {
    /// A shell on the other host, as with ssh. Words must be quoted.
    Shell,
    /// The system call exec. Words are passed on as they are.
    Exec,
}

/// Command that starts a program on a host. Its standard input and output must be those of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// Program and arguments.
    pub words: Vec<AgentWord>,
    /// Reader of the program's command line.
    pub reader: LineReader,
    /// Variables that would change the meaning of the command, and are removed from its environment.
    pub hidden: &'static [&'static str],
}

/// Command line that starts the agent of a host.
#[derive(Debug, PartialEq, Eq)]
pub struct AgentLine {
    /// Program and arguments.
    pub words: Vec<OsString>,
    /// Variables that are removed from the command's environment.
    pub hidden: &'static [&'static str],
}

impl AgentCommand {
    /// Returns a command like ssh: fixed words, the host, and a line for the shell of the host.
    pub fn remote_shell<W: Into<String>>(words: impl IntoIterator<Item = W>) -> AgentCommand {
        let fixed = words.into_iter().map(|word| AgentWord::Fixed(word.into()));
        let words = fixed.chain([AgentWord::Host("")]).collect();
        AgentCommand { words, reader: LineReader::Shell, hidden: &[] }
    }

    /// Returns a command that takes a program's words as they are. `{host}` and `{tag}` at the end of a word stand for the host and
    /// the host's tag.
    pub fn exec(words: &[&'static str], hidden: &'static [&'static str]) -> AgentCommand {
        let word =
            |word: &&'static str| match (word.strip_suffix("{host}"), word.strip_suffix("{tag}")) {
                (Some(before), _) => AgentWord::Host(before),
                (_, Some(before)) => AgentWord::Tag(before),
                _ => AgentWord::Fixed((*word).to_owned()),
            };
        AgentCommand { words: words.iter().map(word).collect(), reader: LineReader::Exec, hidden }
    }

    /// Returns the command line that starts the agent of the program `mpiexec` on a host.
    pub fn line(&self, host: &str, tag: Option<&str>, mpiexec: &Path) -> AgentLine {
        let word = |word: &AgentWord| match word {
            AgentWord::Fixed(word) => Some(OsString::from(word)),
            AgentWord::Host(before) => Some(format!("{before}{host}").into()),
            AgentWord::Tag(before) => tag.map(|tag| format!("{before}{tag}").into()),
        };
        let program = match self.reader {
            LineReader::Shell => quote(&mpiexec.to_string_lossy()).into(),
            LineReader::Exec => mpiexec.into(),
        };
        let words = self.words.iter().filter_map(word).chain([program, "--agent".into()]);
        AgentLine { words: words.collect(), hidden: self.hidden }
    }
}

/// Quotes a word for the shell on the other host, because ssh passes the arguments to the shell as one command line.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quote("/opt/weft-1.0/bin/mpiexec"), "/opt/weft-1.0/bin/mpiexec");
        assert_eq!(quote("/my dir/it's"), "'/my dir/it'\\''s'");
    }
}
