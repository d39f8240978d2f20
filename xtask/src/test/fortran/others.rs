//! Programs of other projects, from Debian's sources, built with `mpifort` and `mpicc`: FFTW's parallel transforms through its
//! Fortran interface, and MUMPS.

use super::Tools;
use crate::root;
use crate::test::debian;
use crate::test::tally::Tally;
use crate::test::tools::quiet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const RANKS: [&str; 3] = ["1", "2", "4"];

/// Replacement for ScaLAPACK, whose source Debian's mirrors do not have. For small matrices none of its functions is called.
const NO_SCALAPACK: &str = "#include <stdlib.h>\n\
    #define S(n) void n##_(void) { abort(); }\n\
    #define T(t) S(p##t##getrf) S(p##t##getrs) S(p##t##potrf) S(p##t##potrs)\n\
    S(blacs_gridexit) S(blacs_gridinfo) S(blacs_gridinit) S(descinit) S(numroc)\n\
    T(s) T(d) T(c) T(z)\n";

/// Makefile.inc, in which MUMPS expects the configuration of its build.
const MUMPS: &str = "LPORDDIR = $(topdir)/PORD/lib/\nIPORD = -I$(topdir)/PORD/include/\n\
    LPORD = -L$(LPORDDIR) -lpord$(PLAT)\nORDERINGSF = -Dpord\nORDERINGSC = $(ORDERINGSF)\n\
    LORDERINGS = $(LPORD)\nIORDERINGSC = $(IPORD)\nLIBEXT = .a\nLIBEXT_SHARED = .so\nSONAME = -soname\n\
    FPIC_OPT = -fPIC\nOUTC = -o\nOUTF = -o\nRM = /bin/rm -f\nCC = mpicc\nFC = mpifort\nFL = mpifort\n\
    AR = ar vr $(empty)\nRANLIB = ranlib\nLIBPAR = $(topdir)/no_scalapack.o -llapack\nLIBBLAS = -lblas\n\
    LIBOTHERS = -lpthread\nCDEFS = -DAdd_\nOPTF = -O0 -fallow-argument-mismatch -w\nOPTC = -O0 -w\n\
    OPTL = -O0\nLIBS = $(LIBPAR)\n";

/// Builds and runs the programs. A program that cannot be obtained is noted in the tally and is not an error.
pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let work = root().join("target/soak-fortran");
    let failed = |e: std::io::Error| format!("{}: {e}", work.display());
    fs::create_dir_all(&work).map_err(failed)?;
    let compiler = "gfortran";
    if Command::new(compiler).arg("--version").output().is_err() {
        tally.not_run.push("Fortran by others: there is no gfortran".to_owned());
        return Ok(());
    }
    let tools = Tools { prefix: prefix.to_owned(), work, compiler, planted: 0 };
    for (package, test) in [("mumps", mumps as Test), ("fftw3", fftw as Test)] {
        match source(&tools, package) {
            Ok(source) => test(&tools, &source, tally)?,
            Err(why) => tally.not_run.push(format!("{package}: {why}")),
        }
    }
    Ok(())
}

type Test = fn(&Tools, &Path, &mut Tally) -> Result<(), String>;

/// Downloads and unpacks a package's source. Returns its folder.
fn source(tools: &Tools, package: &str) -> Result<PathBuf, String> {
    let folder = tools.work.join(package);
    debian::unpack(&debian::archive(&tools.work, package)?, &folder)?;
    Ok(folder)
}

/// Returns a command that finds our wrappers.
fn with_wrappers(tools: &Tools, program: &str, folder: &Path) -> Command {
    let mut command = debian::with_wrappers(&tools.prefix, program, folder);
    command.env("WEFT_FC", tools.compiler);
    command
}

/// Runs MUMPS's examples with real numbers in double precision, and with complex numbers in single precision. The solution of each
/// example is the numbers 1 to 5.
fn mumps(tools: &Tools, source: &Path, tally: &mut Tally) -> Result<(), String> {
    let put = |name: &str, text: &str| {
        fs::write(source.join(name), text).map_err(|e| format!("{}: {e}", source.display()))
    };
    put("Makefile.inc", MUMPS)?;
    put("no_scalapack.c", NO_SCALAPACK)?;
    quiet(with_wrappers(tools, "mpicc", source).args(["-O0", "-w", "-c", "no_scalapack.c"]))?;
    for (arithmetic, input) in [("d", "real"), ("c", "cmplx")] {
        quiet(with_wrappers(tools, "make", source).args(["-j2", arithmetic]))?;
        let examples = source.join("examples");
        for ranks in RANKS {
            let mut command = tools.on(ranks, &examples.join(format!("{arithmetic}simpletest")));
            let input = examples.join(format!("input_simpletest_{input}"));
            let file = fs::File::open(&input).map_err(|e| format!("{}: {e}", input.display()))?;
            let output = command.stdin(file).output().map_err(|e| format!("mpiexec: {e}"))?;
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            let solution = solution(&said);
            let right = (1..=5).map(f64::from).zip(&solution).all(|(a, b)| (a - b).abs() < 1e-5);
            if solution.len() != 5 || !right {
                return Err(format!(
                    "MUMPS ({arithmetic}) on {ranks} ranks: {solution:?}:\n{said}"
                ));
            }
            println!("ok   MUMPS, {arithmetic}simpletest on {ranks} ranks");
            tally.passed += 1;
        }
    }
    Ok(())
}

/// Reads the numbers after `Solution is`. For complex numbers, reads only the real parts.
fn solution(said: &str) -> Vec<f64> {
    let rest = said.split("Solution is").nth(1).unwrap_or_default();
    let words = rest.split_whitespace().map(|word| {
        let word = word.trim_start_matches('(');
        word.split(',').next().unwrap_or_default().parse().ok()
    });
    words.map_while(|number| number).collect()
}

/// Runs FFTW's parallel transforms through their Fortran interface (tests/fortran/fft.f90).
fn fftw(tools: &Tools, source: &Path, tally: &mut Tally) -> Result<(), String> {
    let made = tools.work.join("fftw-made");
    let mut configure = with_wrappers(tools, "./configure", source);
    configure.args(["-q", "--enable-mpi", "--disable-threads", "--disable-doc", "CFLAGS=-O1"]);
    configure.env("MPICC", "mpicc").env("F77", tools.compiler);
    quiet(configure.arg(format!("--prefix={}", made.display())))?;
    quiet(with_wrappers(tools, "make", source).args(["-s", "-j2"]))?;
    quiet(with_wrappers(tools, "make", source).args(["-s", "install"]))?;
    let program = tools.work.join("fft");
    let mut mpifort = tools.mpifort();
    mpifort
        .arg("-O1")
        .arg("-I")
        .arg(made.join("include"))
        .arg(root().join("tests/fortran/fft.f90"));
    mpifort.arg("-L").arg(made.join("lib")).args(["-lfftw3_mpi", "-lfftw3", "-lm", "-o"]);
    quiet(mpifort.arg(&program))?;
    for ranks in RANKS {
        let said = quiet(&mut tools.on(ranks, &program))?;
        if !said.contains("right") {
            return Err(format!("FFTW on {ranks} ranks:\n{said}"));
        }
        println!("ok   FFTW by Fortran on {ranks} ranks");
        tally.passed += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn solutions_are_read() {
        let said = " Solution is    1.0000006  2.0 3.0  Entering";
        assert_eq!(super::solution(said), [1.0000006, 2.0, 3.0]);
        let said = "\n Solution is (1.5,0.0) (2.0,0.0)\n Entering DMUMPS";
        assert_eq!(super::solution(said), [1.5, 2.0]);
        assert_eq!(super::solution("stub"), [0.0; 0]);
    }
}
