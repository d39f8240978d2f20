//! Check for options that make Fortran's integers longer than the library's. They are refused if the source includes `mpif.h`,
//! because then no compiler reports the error.
//!
//! With the modules, the compiler reports each argument that is too long, and programs can still use the options if they declare
//! `integer(4)`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Options for long integers of gfortran, flang, ifx, nvfortran, nagfor and Cray's compiler.
const OPTIONS: [&str; 7] = [
    "-fdefault-integer-8",
    "-i8",
    "-integer-size=64",
    "-integer_size=64",
    "-sinteger64",
    "-sdefault64",
    "-qintsize=8",
];
/// Options for long integers that consist of two words.
const IN_TWO: [(&str, &str); 4] =
    [("-integer-size", "64"), ("-integer_size", "64"), ("-s", "integer64"), ("-s", "default64")];

/// Returns the first option for long integers among the arguments.
fn long_integers(args: &[OsString]) -> Option<String> {
    let one = args.iter().find(|arg| OPTIONS.iter().any(|option| *arg == option));
    let same = |pair: &&[OsString]| {
        IN_TWO.iter().any(|(option, value)| pair[0] == *option && pair[1] == *value)
    };
    let two = || args.windows(2).find(same).map(|pair| pair.join(OsStr::new(" ")));
    Some(one.cloned().or_else(two)?.to_string_lossy().into_owned())
}

/// Maximum depth of files that include each other.
const DEPTH: usize = 8;

/// Returns true if a source includes `mpif.h`, directly or through another file. Missing and unreadable files are ignored, because
/// the compiler reports them.
fn includes_header(source: &Path, folders: &[PathBuf], depth: usize) -> bool {
    let text = std::fs::read(source).unwrap_or_default();
    text.split(|&byte| byte == b'\n').filter_map(included).any(|name| {
        if name == Path::new("mpif.h") {
            return true;
        }
        let own = source.parent().into_iter().map(Path::to_owned);
        let mut places = own.chain(folders.iter().cloned()).map(|folder| folder.join(name));
        let there = places.find(|place| depth > 0 && place.is_file());
        there.is_some_and(|place| includes_header(&place, folders, depth - 1))
    })
}

/// Returns the file that a line includes, by Fortran's statement or by the preprocessor's.
fn included(line: &[u8]) -> Option<&Path> {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix(b"#").unwrap_or(line).trim_ascii_start();
    let word = line.get(..7).filter(|word| word.eq_ignore_ascii_case(b"include"))?;
    let name = line[word.len()..].trim_ascii_start();
    let end = match name.first()? {
        quote @ (b'\'' | b'"') => quote,
        b'<' => &b'>',
        _ => return None,
    };
    let name = &name[1..];
    let length = name.iter().position(|byte| byte == end)?;
    Some(Path::new(OsStr::from_bytes(&name[..length])))
}

/// Returns the compiler's folders for included files: `-Ifolder` or `-I folder`.
fn folders(args: &[OsString]) -> Vec<PathBuf> {
    let next = args.iter().skip(1).map(Some).chain([None]);
    let one = |(arg, next): (&OsString, Option<&OsString>)| {
        let path = arg.as_bytes().strip_prefix(b"-I")?;
        match path {
            b"" => next.map(PathBuf::from),
            path => Some(PathBuf::from(OsStr::from_bytes(path))),
        }
    };
    args.iter().zip(next).filter_map(one).collect()
}

/// Fails if a source would be compiled with integers that are too long.
pub(super) fn check(args: &[OsString]) -> Result<(), String> {
    let Some(option) = long_integers(args) else { return Ok(()) };
    let sources = args.iter().filter(|arg| !arg.as_bytes().starts_with(b"-")).map(Path::new);
    let fortran = |path: &&Path| {
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        ending.as_bytes().first() == Some(&b'f')
    };
    let folders = folders(args);
    match sources.filter(fortran).find(|path| includes_header(path, &folders, DEPTH)) {
        None => Ok(()),
        Some(source) => Err(format!(
            "{option} makes INTEGER 8 bytes long, and the arguments of MPI's procedures have 4, which mpif.h cannot tell ({}); \
             compile without it, or say `use mpi` and integer(4) for what MPI is given",
            source.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn long_integers_are_refused_with_the_header_alone() {
        let folder = std::env::temp_dir().join(format!("weft-integers-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("parts")).unwrap();
        let texts = [
            ("old.F", "      INCLUDE 'mpif.h'\n"),
            ("cpp.f90", "#include <mpif.h>\n"),
            ("parts/far.h", "include 'mpif.h'\n"),
            ("far.f90", "include 'far.h'\n"),
            ("other.h", "      include \"old.F\"\n"),
            ("circle.f", "      include 'circle.f'\n      include 'other.h'\n"),
            ("comment.f", "c     include 'mpif.h'\n      call include(x)\n"),
            ("new.f90", "use mpi ! not mpif.h\n"),
        ];
        for (name, text) in texts {
            std::fs::write(folder.join(name), text).unwrap();
        }
        for (option, name, refused) in [
            ("-fdefault-integer-8", "old.F", true),
            ("-i8", "cpp.f90", true),
            ("-integer-size 64", "old.F", true),
            ("-fdefault-integer-8", "circle.f", true),
            ("-fdefault-integer-8", "comment.f", false),
            ("-i8", "far.f90", true),
            ("-fdefault-integer-8", "new.f90", false),
            ("-fdefault-real-8", "old.F", false),
            ("-integer-size 32", "old.F", false),
            ("-i8", "none.f90", false),
        ] {
            let (own, source) = (folder.join("parts"), folder.join(name));
            let line = format!("-O2 {option} -I {} -c {}", own.display(), source.display());
            let said = check(&args(&line));
            assert_eq!(said.is_err(), refused, "{line}: {said:?}");
            assert!(said.err().is_none_or(|said| said.starts_with(option) && said.contains(name)));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
