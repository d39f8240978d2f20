//! Search paths of shells and of the loader that lead to an installation, as `weft env` prints them.

use crate::tree::Tree;
use std::path::{Path, PathBuf};

/// Folder of the libraries for programs that were built with other MPI libraries, below the folder of libraries.
const LEGACY: &str = "weft/legacy";

/// Use of the loader's search path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoaderPath {
    /// The path stays as it is.
    Unchanged,
    /// The loader finds the libraries for programs that were built with other MPI libraries before all others.
    LegacyFirst,
}

/// Returns the lines that a shell evaluates to find the installation of this program.
///
/// # Errors
/// This program belongs to no installation, or the installation has no such libraries.
pub fn export_lines(loader: LoaderPath) -> Result<String, String> {
    let exe = std::env::current_exe().map_err(|e| format!("where this program lies: {e}"))?;
    let bin = exe.parent().unwrap_or(Path::new("/"));
    lines(bin, &Tree::of_this_program()?.lib, loader)
}

fn lines(bin: &Path, lib: &Path, loader: LoaderPath) -> Result<String, String> {
    let mut text = format!("export PATH={}${{PATH:+:$PATH}}\n", quoted(bin)?);
    let man = bin.with_file_name("share").join("man");
    // A Debian package has its pages in the system's folder.
    if man.is_dir() {
        // An empty part of MANPATH stands for the system's folders.
        text.push_str(&format!("export MANPATH={}:${{MANPATH-}}\n", quoted(&man)?));
    }
    if loader == LoaderPath::LegacyFirst {
        let folder = existing(lib.join(LEGACY))?;
        let rest = "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}";
        text.push_str(&format!("export LD_LIBRARY_PATH={}{rest}\n", quoted(&folder)?));
    }
    Ok(text)
}

fn existing(folder: PathBuf) -> Result<PathBuf, String> {
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(format!(
        "{} does not exist: --legacy needs an installation, as `cargo xtask install --prefix DIR` makes",
        folder.display()
    ))
}

/// Returns a path in single quotes, for a shell.
fn quoted(path: &Path) -> Result<String, String> {
    let text = path.to_str().filter(|text| !text.contains(':'));
    let text = text.ok_or_else(|| {
        format!("{}: a search path cannot name it (a colon, or no UTF-8): move it", path.display())
    })?;
    Ok(format!("'{}'", text.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// Evaluates the lines in a shell with these variables, and returns the shell's three search paths.
    fn evaluated(lines: &str, variables: &[(&str, &str)]) -> String {
        let script = format!("set -u\n{lines}echo \"$PATH|$MANPATH|${{LD_LIBRARY_PATH-none}}\"");
        let mut sh = Command::new("/bin/sh");
        sh.args(["-c", &script]).env_clear().envs(variables.iter().copied());
        String::from_utf8(sh.output().unwrap().stdout).unwrap().trim_end().to_owned()
    }

    #[test]
    fn a_shell_gets_the_paths_of_a_prefix_with_blanks_and_quotes() {
        let dir = tempfile::tempdir().unwrap();
        let prefix = dir.path().join("it's a prefix");
        for folder in ["bin", "share/man", "lib/weft/legacy"] {
            fs::create_dir_all(prefix.join(folder)).unwrap();
        }
        let (bin, lib, here) = (prefix.join("bin"), prefix.join("lib"), prefix.display());
        let plain = lines(&bin, &lib, LoaderPath::Unchanged).unwrap();
        let expected = format!("{here}/bin:/usr/bin|{here}/share/man:|none");
        assert_eq!(evaluated(&plain, &[("PATH", "/usr/bin")]), expected);
        let legacy = lines(&bin, &lib, LoaderPath::LegacyFirst).unwrap();
        let given = [("PATH", "/b"), ("MANPATH", "/m"), ("LD_LIBRARY_PATH", "/l")];
        let expected = format!("{here}/bin:/b|{here}/share/man:/m|{here}/lib/weft/legacy:/l");
        assert_eq!(evaluated(&legacy, &given), expected);
    }

    #[test]
    fn what_a_search_path_cannot_name_is_an_error() {
        let error =
            lines(Path::new("/a:b/bin"), Path::new("/a:b/lib"), LoaderPath::Unchanged).unwrap_err();
        assert!(error.starts_with("/a:b/bin: a search path"), "{error}");
        let error = lines(Path::new("/none/bin"), Path::new("/none/lib"), LoaderPath::LegacyFirst)
            .unwrap_err();
        assert!(error.starts_with("/none/lib/weft/legacy does not exist"), "{error}");
    }
}
