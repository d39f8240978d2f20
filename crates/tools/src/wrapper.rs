//! `mpicc` and `mpicxx`: the system's compiler with the paths of this installation.

use crate::tree::Tree;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// What tells `mpicc` from `mpicxx`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    C,
    Cxx,
}

impl Language {
    fn tool(self) -> &'static str {
        match self {
            Language::C => "mpicc",
            Language::Cxx => "mpicxx",
        }
    }

    fn default_compiler(self) -> &'static str {
        match self {
            Language::C => "cc",
            Language::Cxx => "c++",
        }
    }

    /// The environment variable that names another compiler.
    fn variable(self) -> &'static str {
        match self {
            Language::C => "WEFT_CC",
            Language::Cxx => "WEFT_CXX",
        }
    }

    /// The option that names another compiler; it wins over the variable.
    fn option(self) -> &'static str {
        match self {
            Language::C => "-cc=",
            Language::Cxx => "-cxx=",
        }
    }
}

/// What to do, decided from the arguments alone.
#[derive(PartialEq, Eq, Debug)]
enum Plan {
    /// Run this command.
    Run(Vec<String>),
    /// Print this line.
    Print(String),
}

/// The body of `mpicc` and `mpicxx`.
pub fn main(language: Language) -> ExitCode {
    let tool = language.tool();
    let args: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|a| a.into_string().unwrap_or_else(|a| a.to_string_lossy().into_owned()))
        .collect();
    let compiler = std::env::var(language.variable()).ok();
    let plan = Tree::of_this_program().map(|tree| plan(language, &tree, compiler, &args));
    let command = match plan {
        Ok(Plan::Print(line)) => {
            println!("{line}");
            return ExitCode::SUCCESS;
        }
        Ok(Plan::Run(command)) => command,
        Err(why) => {
            eprintln!("{tool}: {why}");
            return ExitCode::FAILURE;
        }
    };
    let why = Command::new(&command[0]).args(&command[1..]).exec();
    let (name, variable, option) = (&command[0], language.variable(), language.option());
    eprintln!(
        "{tool}: cannot run the compiler {name}: {why}; name one with {option}COMPILER or {variable}"
    );
    ExitCode::from(127)
}

fn plan(language: Language, tree: &Tree, compiler: Option<String>, args: &[String]) -> Plan {
    let mut compiler = compiler.filter(|c| !c.trim().is_empty());
    let mut show = None;
    let mut rest = Vec::new();
    for arg in args {
        if let Some(name) = arg.strip_prefix(language.option()) {
            compiler = Some(name.to_owned());
        } else if let Some(what) = question(arg) {
            show = Some(what);
        } else {
            rest.push(arg.clone());
        }
    }
    let compiler = compiler.unwrap_or_else(|| language.default_compiler().to_owned());
    let compiler = compiler.split_whitespace().map(str::to_owned); // "ccache gcc" is two words
    let (include, lib) = (tree.include.display(), tree.lib.display());
    let compile = vec![format!("-I{include}")];
    let link = vec![
        format!("-L{lib}"),
        format!("-Wl,-rpath,{lib}"),
        // RUNPATH: LD_LIBRARY_PATH can still choose another library of the same ABI.
        "-Wl,--enable-new-dtags".to_owned(),
        "-lmpi_abi".to_owned(),
    ];
    match show {
        Some(Show::CompileFlags) => Plan::Print(shell(compile)),
        Some(Show::LinkFlags) => Plan::Print(shell(link)),
        Some(Show::CompileCommand) => Plan::Print(shell(compiler.chain(rest).chain(compile))),
        Some(Show::LinkCommand) => {
            Plan::Print(shell(compiler.chain(rest).chain(compile).chain(link)))
        }
        Some(Show::IncludeDirectories) => Plan::Print(include.to_string()),
        Some(Show::LibraryDirectories) => Plan::Print(lib.to_string()),
        Some(Show::Libraries) => Plan::Print("mpi_abi".to_owned()),
        Some(Show::Version) => {
            let version = env!("CARGO_PKG_VERSION");
            Plan::Print(format!("{}: Weft {version}, MPI 5.0 standard ABI", language.tool()))
        }
        Some(Show::Command) => {
            let links = links(&rest) || rest.is_empty();
            let link = if links { link } else { vec![] };
            Plan::Print(shell(compiler.chain(rest).chain(compile).chain(link)))
        }
        None => {
            let link = if links(&rest) { link } else { vec![] };
            Plan::Run(compiler.chain(rest).chain(compile).chain(link).collect())
        }
    }
}

/// Questions that build systems ask, in the words of MPICH's and of Open MPI's wrappers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Show {
    /// The whole command for the arguments given.
    Command,
    CompileCommand,
    LinkCommand,
    CompileFlags,
    LinkFlags,
    IncludeDirectories,
    LibraryDirectories,
    Libraries,
    Version,
}

fn question(arg: &str) -> Option<Show> {
    // One dash or two; `_` or `-` between words.
    let word = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'))?.replace('_', "-");
    Some(match word.as_str() {
        "show" | "showme" => Show::Command,
        "compile-info" | "show-compile-info" => Show::CompileCommand,
        "link-info" | "show-link-info" => Show::LinkCommand,
        "showme:compile" => Show::CompileFlags,
        "showme:link" => Show::LinkFlags,
        "showme:incdirs" => Show::IncludeDirectories,
        "showme:libdirs" => Show::LibraryDirectories,
        "showme:libs" => Show::Libraries,
        "showme:version" => Show::Version,
        _ => return None,
    })
}

/// Whether the compiler will link: there is something to compile, and nothing says to stop
/// before. Library flags in other runs draw warnings, and `-v` alone would try to link.
fn links(args: &[String]) -> bool {
    let stops = ["-c", "-E", "-S", "-M", "-MM", "-fsyntax-only"];
    let stops = |a: &String| stops.contains(&a.as_str());
    let input = |a: &String| a == "-" || a.starts_with("-l") || !a.starts_with('-');
    args.iter().any(input) && !args.iter().any(stops)
}

/// One line that a shell reads as these words.
fn shell(words: impl IntoIterator<Item = String>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/-_=+.,:@%".contains(c);
    let quote = |w: String| match w.chars().all(plain) && !w.is_empty() {
        true => w,
        false => format!("'{}'", w.replace('\'', r"'\''")),
    };
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "-L/p/lib -Wl,-rpath,/p/lib -Wl,--enable-new-dtags -lmpi_abi";

    fn planned(language: Language, compiler: Option<&str>, args: &str) -> String {
        let tree = Tree { include: "/p/include".into(), lib: "/p/lib".into() };
        let args: Vec<_> = args.split_whitespace().map(str::to_owned).collect();
        match plan(language, &tree, compiler.map(str::to_owned), &args) {
            Plan::Print(line) => format!("print {line}"),
            Plan::Run(words) => format!("run {}", words.join(" ")),
        }
    }

    fn mpicc(args: &str) -> String {
        planned(Language::C, None, args)
    }

    #[test]
    fn link_flags_only_where_something_is_linked() {
        assert_eq!(mpicc("-O2 a.c -o a"), format!("run cc -O2 a.c -o a -I/p/include {LINK}"));
        assert_eq!(mpicc("a.o b.o"), format!("run cc a.o b.o -I/p/include {LINK}"));
        for args in ["-c a.c", "-E a.c", "-S a.c", "-M a.c", "-MM a.c", "-v", "--version", ""] {
            assert_eq!(
                mpicc(args),
                format!("run cc {args} -I/p/include").replace("cc  ", "cc "),
                "{args}"
            );
        }
        // Dependencies written beside a normal compilation.
        assert!(mpicc("-MD a.c").ends_with("-lmpi_abi"));
    }

    #[test]
    fn the_compiler_can_be_chosen() {
        let c = Language::C;
        assert!(planned(c, Some("gcc-13"), "a.c").starts_with("run gcc-13 a.c "));
        assert!(planned(c, Some("gcc-13"), "-cc=clang a.c").starts_with("run clang a.c "));
        assert!(planned(c, Some("ccache gcc"), "a.c").starts_with("run ccache gcc a.c "));
        assert!(planned(c, Some(" "), "a.c").starts_with("run cc a.c "));
        assert!(planned(Language::Cxx, None, "a.cc").starts_with("run c++ a.cc "));
        assert!(planned(Language::Cxx, None, "-cxx=g++ a.cc").starts_with("run g++ a.cc "));
    }

    #[test]
    fn questions_of_build_systems_are_answered() {
        let all = format!("print cc -I/p/include {LINK}");
        for args in ["-show", "--show", "-showme", "--showme", "-link_info", "-link-info"] {
            assert_eq!(mpicc(args), all, "{args}");
        }
        assert_eq!(mpicc("-show -c a.c"), "print cc -c a.c -I/p/include");
        for args in ["-compile_info", "-compile-info", "-show-compile-info"] {
            assert_eq!(mpicc(args), "print cc -I/p/include", "{args}");
        }
        assert_eq!(mpicc("--showme:compile"), "print -I/p/include");
        assert_eq!(mpicc("-showme:link"), format!("print {LINK}"));
        assert_eq!(mpicc("-showme:incdirs"), "print /p/include");
        assert_eq!(mpicc("-showme:libdirs"), "print /p/lib");
        assert_eq!(mpicc("-showme:libs"), "print mpi_abi");
    }

    #[test]
    fn words_survive_the_shell() {
        let words = ["a b", "it's", "$HOME", "", "-I/x"].map(str::to_owned);
        assert_eq!(shell(words), r"'a b' 'it'\''s' '$HOME' '' -I/x");
    }
}
