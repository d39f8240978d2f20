//! Parts of `mpi.h` that are not in the ABI: conversions of Fortran's handles, and functions that MPI 3.0 removed.

use crate::common::{data, library_dir, run, scratch};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Removed functions, with arguments, and with the name of the function that the message must name.
const REMOVED: [(&str, &str, &str); 10] = [
    ("MPI_Address", "(0, 0)", "MPI_Get_address"),
    ("MPI_Errhandler_create", "(0, 0)", "MPI_Comm_create_errhandler"),
    ("MPI_Errhandler_get", "(MPI_COMM_SELF, 0)", "MPI_Comm_get_errhandler"),
    ("MPI_Errhandler_set", "(MPI_COMM_SELF, MPI_ERRORS_RETURN)", "MPI_Comm_set_errhandler"),
    ("MPI_Type_extent", "(MPI_INT, 0)", "MPI_Type_get_extent"),
    ("MPI_Type_hindexed", "(0, 0, 0, MPI_INT, 0)", "MPI_Type_create_hindexed"),
    ("MPI_Type_hvector", "(0, 0, 0, MPI_INT, 0)", "MPI_Type_create_hvector"),
    ("MPI_Type_lb", "(MPI_INT, 0)", "MPI_Type_get_extent"),
    ("MPI_Type_struct", "(0, 0, 0, 0, 0)", "MPI_Type_create_struct"),
    ("MPI_Type_ub", "(MPI_INT, 0)", "MPI_Type_get_extent"),
];

/// Compilers and languages that programs ask for.
const COMPILERS: [&[&str]; 5] = [
    &["cc", "-ansi"],
    &["cc", "-std=c99"],
    &["cc", "-std=c17", "-Wconversion"],
    &["c++", "-x", "c++", "-std=c++11", "-Wold-style-cast"],
    &["c++", "-x", "c++", "-std=c++17"],
];

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];

fn compiler(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg("-I").arg(library_dir().join("include"));
    command
}

/// Compiles an object of the program that calls all of these functions, optimized or not.
fn object(words: &[&str], more: &[&str], to: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/older.c");
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(to);
    let mut command = compiler(words);
    command.args(["-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations"]).args(more);
    run(command.arg("-c").arg(source).arg("-o").arg(&to));
    to
}

#[test]
fn it_works_in_c_and_in_cxx_and_needs_only_the_abi() {
    let dir = library_dir();
    let functions = data("functions.csv");
    let abi: BTreeSet<String> =
        functions.iter().flat_map(|f| [f[0].clone(), format!("P{}", f[0])]).collect();
    for (i, words) in COMPILERS.iter().enumerate() {
        // Warnings about the program's own casts and comma expressions do not count here.
        let words: Vec<_> = words.iter().copied().filter(|w| !w.starts_with("-W")).collect();
        for level in ["-O0", "-O2"] {
            let object = object(&words, &[level], &format!("older-{i}{level}.o"));
            let names = run(Command::new("nm").arg("-u").arg(&object));
            let names = names.lines().filter_map(|line| line.split_whitespace().last());
            let others: Vec<_> = names
                .filter(|name| name.contains("MPI") || name.to_lowercase().contains("weft"))
                .filter(|name| !abi.contains(*name))
                .collect();
            assert!(others.is_empty(), "{words:?} {level}: not in the ABI: {others:?}");
            let program = object.with_extension("exe");
            let mut link = Command::new("cc");
            link.arg(&object).arg("-o").arg(&program).arg("-L").arg(dir);
            run(link.args(["-lmpi_abi", &format!("-Wl,-rpath,{}", dir.display())]));
            run(&mut Command::new(program));
        }
    }
}

#[test]
fn the_header_is_without_warnings_and_each_removed_name_has_one() {
    let nothing = scratch("older-nothing.c", "#include <mpi.h>\nint main(void) { return 0; }\n");
    for words in COMPILERS {
        for more in [&[][..], &["-DWEFT_ABI_ONLY"]] {
            let mut command = compiler(words);
            run(command.args(STRICT).args(more).arg("-fsyntax-only").arg(&nothing));
        }
        for (name, arguments, now) in REMOVED {
            let text =
                format!("#include <mpi.h>\nint main(void) {{ return {name}{arguments}; }}\n");
            let source = scratch("older-removed.c", &text);
            // Warnings about casts in constants concern the program, not the header.
            let plain: Vec<_> = words.iter().copied().filter(|w| !w.starts_with("-W")).collect();
            let mut command = compiler(&plain);
            let said = command.arg("-fsyntax-only").arg(&source).output().expect("a compiler");
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            let words_of_it = said.contains(&format!("now it is {now}"));
            assert!(words_of_it, "{words:?} {name}: {said}");
            assert_eq!(said.matches("warning:").count(), 1, "{words:?} {name}: {said}");
        }
    }
}

#[test]
fn one_macro_turns_all_of_it_off() {
    let handles = ["Comm", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request"];
    let handles = handles.into_iter().chain(["Session", "Type", "Win", "Status"]);
    let mut names: Vec<String> = handles
        .flat_map(|kind| ["f2c", "c2f"].map(|way| format!("MPI_{kind}_{way}")))
        .chain(REMOVED.map(|(name, _, _)| name.to_owned()))
        .collect();
    names.extend(names.clone().iter().map(|name| format!("P{name}")));
    let others = ["c2f08", "f082c", "f2f08", "f082f"].map(|way| format!("MPI_Status_{way}"));
    names.extend(others);
    // A program that defines all these names conflicts with a header that has any of them.
    let mut own: String = names.iter().map(|name| format!("typedef char {name};\n")).collect();
    own.push_str("typedef char MPI_Fint;\ntypedef char MPI_Handler_function;\n");
    for name in ["MPI_UB", "MPI_LB", "MPI_COMBINER_STRUCT_INTEGER"] {
        own.push_str(&format!("#ifdef {name}\n#error {name}\n#endif\n"));
    }
    let source = scratch("older-own.c", &format!("#include <mpi.h>\n{own}"));
    for words in COMPILERS {
        run(compiler(words).args(STRICT).arg("-fsyntax-only").arg("-DWEFT_ABI_ONLY").arg(&source));
        let mut with = compiler(words);
        let with = with.arg("-fsyntax-only").arg(&source).output().expect("a compiler");
        let said = String::from_utf8_lossy(&with.stderr).into_owned();
        for name in &names {
            let conflicts = said.lines().any(|l| l.contains("error:") && l.contains(name.as_str()));
            assert!(conflicts, "{words:?}: mpi.h has no {name}: {said}");
        }
    }
}
