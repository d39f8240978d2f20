//! Paths of the library and of the header, in the installation or the build tree to which the running program belongs.

use std::path::{Path, PathBuf};

/// Name by which programs look for the library at run time (its SONAME).
pub const SONAME: &str = "libmpi_abi.so.1";

/// Directories of an installation or a build tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Tree {
    /// Directory that contains `mpi.h`.
    pub include: PathBuf,
    /// Directory that contains `libmpi_abi.so.1` and the link `libmpi_abi.so`.
    pub lib: PathBuf,
}

impl Tree {
    /// Finds the tree of the running program.
    pub fn of_this_program() -> Result<Tree, String> {
        let exe = std::env::current_exe().map_err(|e| format!("where this program lies: {e}"))?;
        Tree::around(&exe)
    }

    fn around(exe: &Path) -> Result<Tree, String> {
        let bin = exe.parent().unwrap_or(Path::new("/"));
        let prefix = bin.parent().unwrap_or(Path::new("/"));
        let installed = Tree { include: prefix.join("include"), lib: prefix.join("lib") };
        let built = Tree { include: bin.join("include"), lib: bin.to_owned() };
        let (a, b) = (installed.include.join("mpi.h"), built.include.join("mpi.h"));
        if bin.file_name().is_some_and(|name| name == "bin") && a.is_file() {
            Ok(installed)
        } else if b.is_file() {
            Ok(built)
        } else {
            Err(format!(
                "no mpi.h belongs to {}: neither {} nor {} exists; run `cargo xtask install \
                 --prefix DIR` and use DIR/bin, or build the package weft-abi",
                exe.display(),
                a.display(),
                b.display()
            ))
        }
    }

    /// Returns the path of the library that programs load.
    pub fn library(&self) -> PathBuf {
        self.lib.join(SONAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn finds_the_installation_and_the_build_tree() {
        let dir = std::env::temp_dir().join(format!("weft-tree-{}", std::process::id()));
        for sub in ["prefix/bin", "prefix/include", "target/release/include"] {
            fs::create_dir_all(dir.join(sub)).unwrap();
        }
        fs::write(dir.join("prefix/include/mpi.h"), "").unwrap();
        fs::write(dir.join("target/release/include/mpi.h"), "").unwrap();

        let installed = Tree::around(&dir.join("prefix/bin/mpicc")).unwrap();
        assert_eq!(installed.include, dir.join("prefix/include"));
        assert_eq!(installed.library(), dir.join("prefix/lib/libmpi_abi.so.1"));
        let built = Tree::around(&dir.join("target/release/mpicc")).unwrap();
        assert_eq!(built.include, dir.join("target/release/include"));
        assert_eq!(built.lib, dir.join("target/release"));
        let error = Tree::around(&dir.join("elsewhere/mpicc")).unwrap_err();
        assert!(error.contains("elsewhere/include/mpi.h"), "{error}");
        fs::remove_dir_all(dir).unwrap();
    }
}
