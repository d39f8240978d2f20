//! Programs that need a symbol of MPI that Weft does not have. With lazy binding a program runs to the first use, else it does not
//! start. In both cases the symbol is named, and `weft info --program` names it before.

use super::HeaderPeer;
use crate::test::tools::quiet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A function that no MPI library has.
const SYMBOL: &str = "MPIX_Absent_from_all";

const PROGRAM: &str = "#include <mpi.h>\n#include <unistd.h>\nint MPIX_Absent_from_all(void);\n\
    int main(int argc, char **argv)\n{\n    MPI_Init(&argc, &argv);\n    write(1, \"begun\\n\", 6);\n    \
    int code = argc > 1 ? MPIX_Absent_from_all() : 0;\n    MPI_Finalize();\n    return code;\n}\n";

/// A way to bind symbols, as an option of the linker.
struct Binding {
    option: &'static str,
    /// True if the program runs to the first use of the symbol.
    begins: bool,
    /// Words of `weft info --program`.
    words: &'static str,
}

const BINDINGS: [Binding; 2] = [
    Binding { option: "lazy", begins: true, words: "fails at its first use" },
    Binding { option: "now", begins: false, words: "does not start" },
];

/// Builds and runs the programs with the compiler wrapper of a library. Returns their number.
pub fn check(prefix: &Path, peer: &HeaderPeer, out: &Path) -> Result<usize, String> {
    let soname = match peer.name {
        "mpich" => "libmpi.so.12",
        _ => "libmpi.so.40",
    };
    let source = out.join("missing_symbol.c");
    super::write(&source, PROGRAM)?;
    let stub = stub(soname, out)?;
    for binding in &BINDINGS {
        let program = out.join(format!("missing_symbol_{}", binding.option));
        let mut command = Command::new(&peer.mpicc);
        command.args(["-w", "-O0"]).arg(&source).arg(&stub).arg("-o").arg(&program);
        quiet(command.arg(format!("-Wl,-z,{}", binding.option)))?;
        binding.check(prefix, &program).map_err(|e| format!("{}: {e}", program.display()))?;
    }
    Ok(BINDINGS.len())
}

/// Makes a library that has the symbol, with the name of the MPI library, which takes its place at run time.
fn stub(soname: &str, out: &Path) -> Result<PathBuf, String> {
    let folder = out.join("stub");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (source, library) = (folder.join("stub.c"), folder.join(soname));
    // The linker takes one library of a name, so the stub has all functions of the program.
    let functions = [SYMBOL, "MPI_Init", "MPI_Finalize"];
    let functions = functions.map(|name| format!("int {name}() {{ return 0; }}\n"));
    super::write(&source, &functions.concat())?;
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC"]).arg(format!("-Wl,-soname,{soname}"));
    quiet(command.arg(&source).arg("-o").arg(&library))?;
    Ok(library)
}

impl Binding {
    fn check(&self, prefix: &Path, program: &Path) -> Result<(), String> {
        let run = |command: &mut Command| command.output().map_err(|e| format!("cannot run: {e}"));
        let info =
            run(Command::new(prefix.join("bin/weft")).args(["info", "--program"]).arg(program))?;
        let said = text(&info);
        if info.status.success() || !said.contains(SYMBOL) || !said.contains(self.words) {
            return Err(format!("weft info --program: {}\n{said}", info.status));
        }
        let mut job = Command::new(prefix.join("bin/mpiexec"));
        job.args(["--timeout", "60", "-n", "1"]).arg(program);
        if self.begins {
            let output = run(&mut job)?;
            if !output.status.success() {
                return Err(format!("without a use of the symbol: {}", text(&output)));
            }
        }
        let output = run(job.arg("use"))?;
        let said = text(&output);
        let is_named = said.contains(SYMBOL) && said.contains("weft info --program");
        if output.status.code() != Some(127) || !is_named || said.contains("begun") != self.begins {
            return Err(format!("{}\n{said}", output.status));
        }
        Ok(())
    }
}

/// Returns all output of a command.
fn text(output: &Output) -> String {
    let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{said}{errors}")
}
