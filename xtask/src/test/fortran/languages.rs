//! Programs that have sources both in Fortran and in C.

use super::{SAID, Tools};
use crate::root;
use crate::test::tally::Tally;
use crate::test::tools::quiet;
use std::process::Command;

/// A program in two languages.
struct Program<'a> {
    /// Sources in Fortran. The program has the name of the last source.
    fortran: &'a [&'a str],
    c: &'a str,
    options: &'a [&'a str],
    ranks: &'a str,
}

const PROGRAMS: [Program; 4] = [
    // Tests that both languages use the same statuses, handles, and addresses for ignored statuses.
    Program { fortran: &["mixed.f90"], c: "sentinels.c", options: &["-O2"], ranks: "2" },
    Program { fortran: &["attributes.F90"], c: "attributes.c", options: &["-O2"], ranks: "1" },
    Program {
        fortran: &["attributes.F90"],
        c: "attributes.c",
        options: &["-O2", "-DNEW"],
        ranks: "1",
    },
    // Tests that tools in C and in both kinds of Fortran see each call once.
    Program { fortran: &["tool.f90", "tools.f90"], c: "tool.c", options: &["-O2"], ranks: "1" },
];

pub fn run(tools: &Tools, tally: &mut Tally) -> Result<(), String> {
    let sources = root().join("tests/fortran");
    for Program { fortran, c, options, ranks } in PROGRAMS {
        let name = fortran[fortran.len() - 1];
        let object = tools.work.join(c).with_extension("o");
        let mut mpicc = Command::new(tools.prefix.join("bin/mpicc"));
        mpicc.args(["-O2", "-Wall", "-Werror", "-c"]).arg(sources.join(c)).arg("-o").arg(&object);
        quiet(&mut mpicc)?;
        let program = tools.work.join(name).with_extension("");
        let mut mpifort = tools.mpifort();
        mpifort.args(options).args(fortran.iter().map(|file| sources.join(file)));
        mpifort.arg(object).arg("-o").arg(&program);
        quiet(&mut mpifort)?;
        let said = quiet(&mut tools.on(ranks, &program))?;
        if !said.contains(SAID) {
            return Err(format!("{name} with {c} {options:?} does not say '{SAID}':\n{said}"));
        }
        println!("ok   {name} with {c} {options:?}");
        tally.passed += 1;
    }
    Ok(())
}
