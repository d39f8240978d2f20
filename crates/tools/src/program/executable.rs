//! The file that the system runs for the name of a program: a script leads to its interpreter.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of scripts that are each the interpreter of the script before it. The limit is the kernel's.
const MAX_SCRIPTS: usize = 5;
/// Maximum length of the first line of a script. The limit is the kernel's.
const MAX_LINE: u64 = 256;

/// Beginnings of the names of programs that load libraries when a script asks for them.
const INTERPRETERS: [&str; 14] = [
    "python", "pypy", "perl", "ruby", "julia", "Rscript", "R", "node", "lua", "tclsh", "bash",
    "dash", "sh", "zsh",
];

/// A file that the system runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Executable {
    pub path: PathBuf,
    /// Scripts that led to the file.
    pub scripts: Vec<PathBuf>,
}

impl Executable {
    /// Finds the file for a name. A name without a slash is looked up in the folders of `path`.
    pub fn find(name: &str, path: &str) -> Result<Executable, String> {
        let mut file = locate(name, path)?;
        let mut scripts = Vec::new();
        while let Some(interpreter) = interpreter(&file, path)? {
            scripts.push(file);
            if scripts.len() > MAX_SCRIPTS {
                return Err(format!(
                    "{name}: more than {MAX_SCRIPTS} scripts are interpreters of each other"
                ));
            }
            file = interpreter;
        }
        Ok(Executable { path: file, scripts })
    }

    /// Returns true if the program runs scripts, which may load MPI.
    pub fn is_interpreter(&self) -> bool {
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let is_known = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // A version may follow the name.
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            INTERPRETERS.contains(&name)
        };
        !self.scripts.is_empty() || is_known(&self.path) || is_known(&real)
    }
}

/// Finds the file of a name, as execvp(3) does.
fn locate(name: &str, path: &str) -> Result<PathBuf, String> {
    let is_program = |file: &Path| {
        fs::metadata(file)
            .is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    if !name.contains('/') {
        let folders = path.split(':').map(|folder| if folder.is_empty() { "." } else { folder });
        let mut files = folders.map(|folder| Path::new(folder).join(name));
        let none = || {
            format!(
                "there is no program {name} in the folders of PATH. Give its path, such as ./{name}."
            )
        };
        return files.find(|file| is_program(file)).ok_or_else(none);
    }
    let file = PathBuf::from(name);
    let facts = fs::metadata(&file)
        .map_err(|error| format!("{name}: {error}. Give the path of a program."))?;
    if facts.is_dir() {
        return Err(format!("{name} is a folder. Give the path of a program."));
    }
    Ok(file)
}

/// Returns the interpreter that the first line of a script names.
fn interpreter(file: &Path, path: &str) -> Result<Option<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut start = Vec::new();
    File::open(file)
        .and_then(|file| file.take(MAX_LINE).read_to_end(&mut start))
        .map_err(failed)?;
    let Some(line) = start.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else {
        return Err(format!(
            "{}: the first line of the script names no interpreter",
            file.display()
        ));
    };
    let blame = |why: String| format!("{}: interpreter of the script: {why}", file.display());
    if Path::new(first).file_name().is_some_and(|name| name == "env") {
        // env(1) finds the interpreter on PATH, after its own options and variables.
        if let Some(name) = words.find(|word| !word.starts_with('-') && !word.contains('=')) {
            return locate(name, path).map(Some).map_err(blame);
        }
    }
    locate(first, path).map(Some).map_err(blame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_lead_to_their_interpreters() {
        let folder = std::env::temp_dir().join(format!("weft-scripts-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = format!("{}:/bin:/usr/bin", folder.display());
        for (name, text) in [
            ("plain", "#! /bin/sh -e\n"),
            ("by-env", "#!/usr/bin/env -S A=b sh -e\n"),
            ("nested", &format!("#!{}/plain\n", folder.display())),
            ("endless", &format!("#!{}/endless\n", folder.display())),
            ("empty", "#!\n"),
            ("lost", "#!/no/such/interpreter\n"),
        ] {
            fs::write(folder.join(name), text).unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let found = Executable::find("plain", &path).unwrap();
        assert_eq!(found.path, Path::new("/bin/sh"));
        assert_eq!(found.scripts, [folder.join("plain")]);
        assert!(found.is_interpreter());
        assert_eq!(Executable::find("by-env", &path).unwrap().path, Path::new("/bin/sh"));
        assert_eq!(Executable::find("nested", &path).unwrap().scripts.len(), 2);
        assert!(Executable::find("sh", &path).unwrap().is_interpreter());
        assert!(!Executable::find("ls", &path).unwrap().is_interpreter());
        for (name, words) in [
            ("endless", "interpreters of each other"),
            ("empty", "names no interpreter"),
            ("lost", "/no/such/interpreter"),
            ("no-such-program", "in the folders of PATH"),
            ("/no/such", "Give the path"),
            ("/tmp/", "is a folder"),
        ] {
            let why = Executable::find(name, &path).unwrap_err();
            assert!(why.contains(words), "{name}: {why}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
