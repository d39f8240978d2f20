//! `mpicc`, `mpicxx` and `mpifort`: the system's compiler with the paths of this installation.
//!
//! The printed command lines are read by shells, by programs that split them like a shell, and by CMake's FindMPI, which splits
//! them by patterns. For FindMPI, a path with a blank must be in double quotes, and the letters of its option must be before the
//! quotes.

mod bindings;
mod integers;

use crate::tree::Tree;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Language of a wrapper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// `mpicc`.
    C,
    /// `mpicxx`.
    Cxx,
    /// `mpifort`.
    Fortran,
}

impl Language {
    fn tool(self) -> &'static str {
        match self {
            Language::C => "mpicc",
            Language::Cxx => "mpicxx",
            Language::Fortran => "mpifort",
        }
    }

    fn default_compiler(self) -> &'static str {
        match self {
            Language::C => "cc",
            Language::Cxx => "c++",
            Language::Fortran => bindings::default_compiler(),
        }
    }

    /// Returns the environment variables that name another compiler: Weft's own, and those of MPICH's and of Open MPI's wrappers.
    /// The first that is set counts.
    fn variables(self) -> [&'static str; 3] {
        match self {
            Language::C => ["WEFT_CC", "MPICH_CC", "OMPI_CC"],
            Language::Cxx => ["WEFT_CXX", "MPICH_CXX", "OMPI_CXX"],
            Language::Fortran => ["WEFT_FC", "MPICH_FC", "OMPI_FC"],
        }
    }

    /// Returns the compiler that the environment names.
    fn compiler_of(self, get: &dyn Fn(&str) -> Option<OsString>) -> Option<OsString> {
        let named = |name: &OsString| !name.as_bytes().trim_ascii().is_empty();
        self.variables().into_iter().filter_map(get).find(named)
    }

    /// Returns the option that names another compiler. It takes precedence over the variable.
    fn option(self) -> &'static str {
        match self {
            Language::C => "-cc=",
            Language::Cxx => "-cxx=",
            Language::Fortran => "-fc=",
        }
    }
}

/// Action of a wrapper, which depends only on the arguments.
#[derive(PartialEq, Eq, Debug)]
enum Plan {
    /// Run this command.
    Run(Vec<OsString>),
    /// Print this line.
    Print(OsString),
}

/// Runs `mpicc`, `mpicxx` or `mpifort`.
pub fn main(language: Language) -> ExitCode {
    let tool = language.tool();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let compiler = language.compiler_of(&|name| std::env::var_os(name));
    let plan = Tree::of_this_program().and_then(|tree| {
        plan(language, &tree, compiler, &args, &|compiler, need| {
            bindings::find(&tree, compiler, need)
        })
    });
    let command = match plan {
        Ok(Plan::Print(mut line)) => {
            line.push("\n");
            return match std::io::stdout().write_all(line.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Ok(Plan::Run(command)) => command,
        Err(why) => {
            eprintln!("{tool}: {why}");
            return ExitCode::FAILURE;
        }
    };
    let why = Command::new(&command[0]).args(&command[1..]).exec();
    let (name, variable, option) =
        (command[0].display(), language.variables()[0], language.option());
    let install = if language == Language::Fortran { bindings::INSTALL } else { "" };
    eprintln!(
        "{tool}: cannot run the compiler {name}: {why}; {install}name one with {option}COMPILER or {variable}"
    );
    ExitCode::from(127)
}

/// Function that finds Fortran's library and modules for a compiler.
type Find<'a> = &'a dyn Fn(&[OsString], bindings::Need) -> Result<bindings::Bindings, String>;

fn plan(
    language: Language,
    tree: &Tree,
    compiler: Option<OsString>,
    args: &[OsString],
    find: Find,
) -> Result<Plan, String> {
    let mut compiler = compiler;
    let mut show = None;
    let mut rest = Vec::new();
    for arg in args {
        if let Some(name) = arg.as_bytes().strip_prefix(language.option().as_bytes()) {
            compiler = Some(OsStr::from_bytes(name).to_owned());
        } else if let Some(what) = arg.to_str().and_then(question) {
            show = Some(what);
        } else {
            rest.push(arg.clone());
        }
    }
    let compiler = command_of(compiler.unwrap_or_else(|| language.default_compiler().into()));
    let (include, lib) = (&tree.include, &tree.lib);
    let mut compile = vec![joined("-I", include)];
    let mut link = Vec::new();
    let mut libraries = "mpi_abi";
    let mut first = Vec::new();
    if language == Language::Fortran {
        integers::check(&rest)?;
        let bindings::Bindings { folder, options } = find(&compiler, need(show, &rest))?;
        // If there is an option -std=, the user wants errors for calls that the standard forbids, so the option is left out.
        if !rest.iter().any(|arg| arg.as_bytes().starts_with(b"-std=")) {
            first = options;
        }
        compile.insert(0, joined("-I", &folder));
        link = path_to(&folder);
        link.push("-lweft_fortran".into());
        libraries = "weft_fortran mpi_abi";
    }
    // The user's own options come later on the command line, and override these options.
    let alone = compiler.clone();
    let compiler = compiler.into_iter().chain(first.clone());
    link.extend(path_to(lib));
    // The path is stored as RUNPATH, so that LD_LIBRARY_PATH can still select another library of the same ABI.
    link.extend(["-Wl,--enable-new-dtags", "-lmpi_abi"].map(OsString::from));
    Ok(match show {
        Some(Show::CompileFlags) => Plan::Print(shell(first.into_iter().chain(compile))),
        Some(Show::LinkFlags) => Plan::Print(shell(link)),
        Some(Show::CompileCommand) => Plan::Print(shell(compiler.chain(rest).chain(compile))),
        Some(Show::LinkCommand) => {
            Plan::Print(shell(compiler.chain(rest).chain(compile).chain(link)))
        }
        Some(Show::Compiler) => Plan::Print(shell(alone)),
        Some(Show::IncludeDirectories) => Plan::Print(directories("-I", &compile)),
        Some(Show::LibraryDirectories) => Plan::Print(directories("-L", &link)),
        Some(Show::Libraries) => Plan::Print(libraries.into()),
        Some(Show::Version) => {
            let version = env!("CARGO_PKG_VERSION");
            let tool = language.tool();
            Plan::Print(format!("{tool}: Weft {version}, MPI 5.0 standard ABI").into())
        }
        Some(Show::Help) => Plan::Print(help(language).into()),
        Some(Show::Command) => {
            let links = links(&rest) || rest.is_empty();
            let link = if links { link } else { vec![] };
            Plan::Print(shell(compiler.chain(rest).chain(compile).chain(link)))
        }
        None => {
            let link = if links(&rest) { link } else { vec![] };
            Plan::Run(compiler.chain(rest).chain(compile).chain(link).collect())
        }
    })
}

/// Returns how much of Fortran's library and modules these arguments need.
fn need(show: Option<Show>, args: &[OsString]) -> bindings::Need {
    match show {
        Some(Show::Version | Show::Help | Show::Libraries) => bindings::Need::Path,
        // Build systems parse all output of `-show` and similar options, so no other text may be printed.
        Some(_) => bindings::Need::Silently,
        None if args.iter().any(|a| !a.as_bytes().starts_with(b"-")) => bindings::Need::Built,
        None => bindings::Need::Path,
    }
}

/// Returns the options by which a library in folder `lib` is found, both when a program is linked and when it runs.
fn path_to(lib: &Path) -> Vec<OsString> {
    let mut link = vec![joined("-L", lib)];
    // The compiler splits the text after -Wl at commas.
    if lib.as_os_str().as_bytes().contains(&b',') {
        link.extend(["-Xlinker", "-rpath", "-Xlinker"].map(OsString::from));
        link.push(lib.into());
    } else {
        link.push(joined("-Wl,-rpath,", lib));
    }
    link
}

/// Returns the directories that the words name after the letters `option`.
fn directories(option: &str, words: &[OsString]) -> OsString {
    let behind = |word: &OsString| {
        let path = word.as_bytes().strip_prefix(option.as_bytes())?;
        Some(OsStr::from_bytes(path).to_owned())
    };
    shell(words.iter().filter_map(behind))
}

/// Returns the description of the wrapper's own options, for `-help` and for its manual page.
fn help(language: Language) -> String {
    let name = match language {
        Language::C => "C",
        Language::Cxx => "C++",
        Language::Fortran => "Fortran",
    };
    let words = [
        ("TOOL", language.tool()),
        ("LANGUAGE", name),
        ("OPTION", language.option()),
        ("VARIABLE", &language.variables().join(", ")),
        ("DEFAULT", language.default_compiler()),
    ];
    let text = include_str!("wrapper.txt").trim_end().to_owned();
    words.iter().fold(text, |text, (word, value)| text.replace(&format!("{{{word}}}"), value))
}

/// Queries of build systems, with the options of MPICH's and of Open MPI's wrappers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Show {
    /// The whole command for the arguments given.
    Command,
    Compiler,
    CompileCommand,
    LinkCommand,
    CompileFlags,
    LinkFlags,
    IncludeDirectories,
    LibraryDirectories,
    Libraries,
    Version,
    Help,
}

fn question(arg: &str) -> Option<Show> {
    // `--help` is an option of the compiler.
    if arg == "-help" {
        return Some(Show::Help);
    }
    // The option may begin with one dash or two, and may have `_` or `-` between words.
    let word = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'))?.replace('_', "-");
    Some(match word.as_str() {
        "show" | "showme" => Show::Command,
        "showme:command" => Show::Compiler,
        "compile-info" | "show-compile-info" => Show::CompileCommand,
        "link-info" | "show-link-info" => Show::LinkCommand,
        "showme:compile" => Show::CompileFlags,
        "showme:link" => Show::LinkFlags,
        "showme:incdirs" => Show::IncludeDirectories,
        "showme:libdirs" => Show::LibraryDirectories,
        "showme:libs" => Show::Libraries,
        "showme:version" => Show::Version,
        "showme:help" => Show::Help,
        _ => return None,
    })
}

/// Returns true if the compiler will link, because there is an input and no option stops the compiler before it links. In other
/// runs, library flags would cause warnings, and `-v` without an input would try to link.
fn links(args: &[OsString]) -> bool {
    let stops = ["-c", "-E", "-S", "-M", "-MM", "-fsyntax-only"];
    let stops = |a: &OsString| stops.iter().any(|stop| a == stop);
    let input = |a: &OsString| {
        let a = a.as_bytes();
        a == b"-" || a.starts_with(b"-l") || !a.starts_with(b"-")
    };
    args.iter().any(input) && !args.iter().any(stops)
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

/// Returns the words that name a compiler: a single word if the text is the path of a file, even with blanks; otherwise the words
/// between blanks, such as "ccache" and "gcc".
fn command_of(compiler: OsString) -> Vec<OsString> {
    if Path::new(&compiler).is_file() {
        return vec![compiler];
    }
    let words = compiler.as_bytes().split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    words.map(|word| OsStr::from_bytes(word).to_owned()).collect()
}

/// Returns one line that a shell reads as these words.
fn shell(words: impl IntoIterator<Item = OsString>) -> OsString {
    let words: Vec<_> = words.into_iter().map(|word| quoted(word.as_bytes())).collect();
    OsString::from_vec(words.join(&b' '))
}

/// Options whose letters must be outside of quotes.
const BARE: [&[u8]; 6] = [b"-I", b"-L", b"-Wl,", b"-Wp,", b"-l", b"-D"];

fn quoted(word: &[u8]) -> Vec<u8> {
    let plain = |c: &u8| c.is_ascii_alphanumeric() || *c >= 0x80 || b"/-_=+.,:@%".contains(c);
    if !word.is_empty() && word.iter().all(plain) {
        return word.to_vec();
    }
    let option = BARE.into_iter().find(|option| word.starts_with(option)).unwrap_or_default();
    let mut out = option.to_vec();
    out.push(b'"');
    for &c in &word[option.len()..] {
        if b"\\\"$`".contains(&c) {
            out.push(b'\\');
        }
        out.push(c);
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "-L/p/lib -Wl,-rpath,/p/lib -Wl,--enable-new-dtags -lmpi_abi";

    fn planned(language: Language, compiler: Option<&str>, args: &str) -> String {
        let tree = Tree { include: "/p/include".into(), lib: "/p/lib".into() };
        let args: Vec<_> = args.split_whitespace().map(OsString::from).collect();
        let options = vec![OsString::from("-lenient")];
        let find = |_: &[OsString], _| {
            Ok(bindings::Bindings { folder: "/f".into(), options: options.clone() })
        };
        match plan(language, &tree, compiler.map(OsString::from), &args, &find).unwrap() {
            Plan::Print(line) => format!("print {}", line.to_str().unwrap()),
            Plan::Run(words) => format!("run {}", words.join(OsStr::new(" ")).to_str().unwrap()),
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
        // With -MD, dependencies are written during a normal compilation.
        assert!(mpicc("-MD a.c").ends_with("-lmpi_abi"));
    }

    #[test]
    fn the_compiler_can_be_chosen() {
        let c = Language::C;
        assert!(planned(c, Some("gcc-13"), "a.c").starts_with("run gcc-13 a.c "));
        assert!(planned(c, Some("gcc-13"), "-cc=clang a.c").starts_with("run clang a.c "));
        assert!(planned(c, Some("ccache gcc"), "a.c").starts_with("run ccache gcc a.c "));
        assert!(planned(Language::Cxx, None, "a.cc").starts_with("run c++ a.cc "));
        assert!(planned(Language::Cxx, None, "-cxx=g++ a.cc").starts_with("run g++ a.cc "));
    }

    #[test]
    fn the_environment_names_the_compiler_as_for_other_wrappers() {
        let compiler = |language: Language, set: &[(&str, &str)]| {
            let get = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).into());
            language.compiler_of(&get).map(|name| name.into_string().unwrap())
        };
        let (c, fortran) = (Language::C, Language::Fortran);
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(compiler(c, &[("OMPI_CC", "clang")]), named("clang"));
        assert_eq!(compiler(c, &[("OMPI_CC", "clang"), ("MPICH_CC", "icx")]), named("icx"));
        assert_eq!(compiler(c, &[("MPICH_CC", "icx"), ("WEFT_CC", " ")]), named("icx"));
        assert_eq!(compiler(c, &[("MPICH_CC", "icx"), ("WEFT_CC", "gcc")]), named("gcc"));
        assert_eq!(
            compiler(fortran, &[("OMPI_CC", "clang"), ("OMPI_FC", "flang")]),
            named("flang")
        );
        assert_eq!(compiler(c, &[("WEFT_CC", " ")]), None);
    }

    #[test]
    fn fortran_has_a_folder_for_each_compiler() {
        let fortran = |args| planned(Language::Fortran, Some("gfortran"), args);
        let link = format!("-L/f -Wl,-rpath,/f -lweft_fortran {LINK}");
        assert_eq!(
            fortran("a.f90 -o a"),
            format!("run gfortran -lenient a.f90 -o a -I/f -I/p/include {link}")
        );
        assert_eq!(fortran("-c a.f90"), "run gfortran -lenient -c a.f90 -I/f -I/p/include");
        assert_eq!(
            fortran("-std=f2008 -c a.f90"),
            "run gfortran -std=f2008 -c a.f90 -I/f -I/p/include"
        );
        assert_eq!(fortran("-showme:command"), "print gfortran");
        assert_eq!(fortran("-showme:compile"), "print -lenient -I/f -I/p/include");
        assert_eq!(fortran("-showme:incdirs"), "print /f /p/include");
        assert_eq!(fortran("-showme:libdirs"), "print /f /p/lib");
        assert_eq!(fortran("-showme:libs"), "print weft_fortran mpi_abi");
        assert!(fortran("-fc=flang a.f90").starts_with("run flang -lenient a.f90 "));
        assert!(fortran("-help").contains("-fc=COMPILER"));
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
    fn help_with_one_dash_is_the_wrappers_and_with_two_the_compilers() {
        let help = mpicc("-help");
        for words in [
            "print Usage: mpicc [",
            "-cc=COMPILER",
            "WEFT_CC, MPICH_CC, OMPI_CC; else cc)",
            " C programs",
        ] {
            assert!(help.contains(words), "{words}: {help}");
        }
        assert!(!help.contains('{'), "{help}");
        assert!(planned(Language::Cxx, None, "-showme:help").contains("WEFT_CXX"));
        assert_eq!(mpicc("--help"), "run cc --help -I/p/include");
    }

    #[test]
    fn words_survive_the_shell() {
        let words =
            ["a b", "it's", "$HOME", "", "-I/x", "-I/x y", "-Wl,-rpath,/x y", "-DA=\"b\\`c\""];
        let line = shell(words.map(OsString::from));
        let expected =
            r#""a b" "it's" "\$HOME" "" -I/x -I"/x y" -Wl,"-rpath,/x y" -D"A=\"b\\\`c\"""#;
        assert_eq!(line, OsString::from(expected));
        let script = format!("for word in {expected}; do printf '%s\\n' \"$word\"; done");
        let said = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap().lines().collect::<Vec<_>>(), words);
    }

    #[test]
    fn paths_are_kept_whatever_is_in_them() {
        let odd = OsStr::from_bytes(b"/a b,\xff");
        let tree = Tree { include: Path::new(odd).join("i"), lib: Path::new(odd).join("l") };
        let args = [OsStr::from_bytes(b"\xfe.c").to_owned()];
        let none = |_: &[OsString], _| Err("none".into());
        let planned = plan(Language::C, &tree, None, &args, &none);
        let Ok(Plan::Run(words)) = planned else { panic!("a command") };
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        let rpath = [&b"-Xlinker"[..], b"-rpath", b"-Xlinker", b"/a b,\xff/l"];
        assert_eq!(words[..4], [&b"cc"[..], b"\xfe.c", b"-I/a b,\xff/i", b"-L/a b,\xff/l"]);
        assert_eq!(words[4..8], rpath);
    }

    #[test]
    fn a_compiler_whose_path_has_a_blank_is_one_word() {
        let dir = std::env::temp_dir().join(format!("weft cc {}", std::process::id()));
        std::fs::write(&dir, "").unwrap();
        assert_eq!(command_of(dir.clone().into()), std::slice::from_ref(&dir));
        std::fs::remove_file(&dir).unwrap();
        assert_eq!(command_of(" ccache  gcc".into()), ["ccache", "gcc"]);
    }
}
