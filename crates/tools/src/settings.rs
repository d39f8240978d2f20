//! Settings of the library and of the commands.

use std::env;
use std::fmt::Write;

/// A setting with its value in the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingState {
    /// The environment variable.
    pub name: String,
    /// Value if the setting is not given.
    pub default: String,
    /// Description of the setting, one sentence.
    pub doc: String,
    /// Value in the environment; `None` if the default is used.
    pub given: Option<String>,
    /// Error in the value, if the value is wrong.
    pub wrong: Option<String>,
}

/// Settings that the commands read: name, default, doc.
const OF_COMMANDS: &[[&str; 3]] = &[
    [
        "WEFT_TIMEOUT",
        "",
        "Seconds after which mpiexec reports where each rank waits and ends the job.",
    ],
    ["WEFT_CHECK", "0", "Checks of a program's MPI calls: 1 names errors, as mpiexec -check does."],
    [
        "WEFT_CHECK_POISON",
        "0",
        "Poison in buffers that are not received yet, with WEFT_CHECK: 1 as mpiexec -check-poison.",
    ],
    [
        "WEFT_CHECK_REPORT",
        "",
        "File to which findings of the checks are appended, as lines of JSON.",
    ],
    [
        "WEFT_CHECK_SLOW",
        "0",
        "Waits of a program, with WEFT_CHECK: 1 prints a table, as mpiexec -check-slow does.",
    ],
    [
        "WEFT_CHECK_SUPPRESS",
        "",
        "File with findings of the checks to leave out, as mpiexec -check-suppress does.",
    ],
    [
        "WEFT_DEADLOCK",
        "end",
        "Treatment of a deadlock by mpiexec: end the job, report it once, or off.",
    ],
    ["WEFT_RSH", "ssh", "Command with options by which mpiexec reaches other hosts."],
    [
        "WEFT_ALIVE_INTERVAL",
        "10",
        "Seconds between two signs of life of mpiexec and its agents on other hosts.",
    ],
    [
        "WEFT_ALIVE_TIMEOUT",
        "60",
        "Seconds without a sign of life after which a host is lost and the job ends; 0: never.",
    ],
    [
        "WEFT_SYSFS",
        "/sys",
        "Directory that describes the processors; another machine's is for tests.",
    ],
    ["WEFT_CC", "cc", "C compiler that mpicc calls."],
    ["WEFT_CXX", "c++", "C++ compiler that mpicxx calls."],
    ["WEFT_FC", "gfortran", "Fortran compiler that mpifort calls."],
];

/// Variables whose numbers are seconds.
const SECONDS: &[&str] = &["WEFT_TIMEOUT", "WEFT_ALIVE_INTERVAL", "WEFT_ALIVE_TIMEOUT"];

/// Variables that are not settings, although they have the same prefix. `mpiexec` passes facts about the job to its ranks in them.
const INTERNAL: &[&str] =
    &["WEFT_LAUNCH", "WEFT_HOSTS", "WEFT_MPIEXEC", "WEFT_UNIVERSE", "WEFT_SYSFS_PROCESSORS"];

/// Returns all settings: those of the library (the text of `weft_settings`), then those of the commands.
pub fn all(of_library: &str) -> Result<Vec<SettingState>, String> {
    let mut settings = parse(of_library)?;
    settings.extend(OF_COMMANDS.iter().map(|[name, default, doc]| {
        let given = env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let wrong = match &given {
            Some(value) if SECONDS.contains(name) => wrong_seconds(name, value),
            _ => None,
        };
        let text = |s: &str| s.to_owned();
        SettingState { name: text(name), default: text(default), doc: text(doc), given, wrong }
    }));
    Ok(settings)
}

fn wrong_seconds(name: &str, value: &str) -> Option<String> {
    let right = value.is_empty() || value.parse().is_ok_and(|s: f64| s >= 0.0);
    (!right).then(|| format!("{name}={value}: not a number of seconds"))
}

/// Reads lines with these fields: name, default, description, `=value` (empty if not given), error (empty if none).
fn parse(text: &str) -> Result<Vec<SettingState>, String> {
    let setting = |line: &str| {
        let fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
        let Ok([name, default, doc, given, wrong]) = <[String; 5]>::try_from(fields) else {
            return Err(format!("settings of the library: unknown line `{line}`"));
        };
        let given = given.strip_prefix('=').map(str::to_owned);
        Ok(SettingState { name, default, doc, given, wrong: Some(wrong).filter(|w| !w.is_empty()) })
    };
    text.lines().map(setting).collect()
}

/// Returns environment variables that have the prefix of settings but are not settings. Most of these names are misspelt.
pub fn strangers(settings: &[SettingState], names: impl Iterator<Item = String>) -> Vec<String> {
    let known = |name: &str| INTERNAL.contains(&name) || settings.iter().any(|s| s.name == name);
    let mut strangers: Vec<_> = names.filter(|n| n.starts_with("WEFT_") && !known(n)).collect();
    strangers.sort();
    strangers
}

/// Returns the table of `weft info`: name, value, source and doc. An error is shown below the line of its setting.
pub fn table(settings: &[SettingState], strangers: &[String]) -> String {
    let value = |s: &SettingState| match s.given.as_ref().unwrap_or(&s.default).as_str() {
        "" => "none".to_owned(),
        value => value.to_owned(),
    };
    let wide = |of: &dyn Fn(&SettingState) -> usize| settings.iter().map(of).max().unwrap_or(0);
    let (names, values) = (wide(&|s| s.name.len()), wide(&|s| value(s).chars().count()));
    let mut out = String::new();
    for s in settings {
        let source = if s.given.is_some() { "environment" } else { "default" };
        let (name, value, doc) = (&s.name, value(s), &s.doc);
        writeln!(out, "  {name:<names$}  {value:<values$}  {source:<11}  {doc}")
            .expect("a string grows");
        if let Some(wrong) = &s.wrong {
            writeln!(out, "    WRONG: {wrong}").expect("a string grows");
        }
    }
    for name in strangers {
        writeln!(out, "    WRONG: {name} is set, but there is no such setting")
            .expect("a string grows");
    }
    out
}

/// Returns the rows of the table in the book.
pub fn markdown(settings: &[SettingState]) -> String {
    let row = |s: &SettingState| {
        let default = if s.default.is_empty() { "none" } else { &s.default };
        format!("| `{}` | {default} | {} |\n", s.name, s.doc)
    };
    settings.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_library_become_a_table() {
        let text = "WEFT_A\t1\tone thing\t\t\nWEFT_LONG\t\tanother\t=x y\tWEFT_LONG=x y: no\n";
        let settings = parse(text).unwrap();
        assert_eq!((settings[0].given.as_deref(), settings[0].wrong.as_deref()), (None, None));
        assert_eq!(settings[1].given.as_deref(), Some("x y"));
        let table = table(&settings, &["WEFT_Z".to_owned()]);
        assert_eq!(
            table,
            "  WEFT_A     1    default      one thing\n  \
               WEFT_LONG  x y  environment  another\n    \
                 WRONG: WEFT_LONG=x y: no\n    \
                 WRONG: WEFT_Z is set, but there is no such setting\n"
        );
        assert!(parse("WEFT_A\t1\n").unwrap_err().contains("WEFT_A"));
    }

    #[test]
    fn a_misspelt_name_is_a_stranger() {
        let settings = parse("WEFT_EAGER\t1\tdoc\t\t\n").unwrap();
        let names = ["WEFT_EAGAR", "WEFT_EAGER", "PATH", "WEFT_LAUNCH"].map(str::to_owned);
        assert_eq!(strangers(&settings, names.into_iter()), ["WEFT_EAGAR"]);
    }

    #[test]
    fn a_time_out_is_a_number() {
        assert!(
            wrong_seconds("WEFT_TIMEOUT", "1.5").is_none()
                && wrong_seconds("WEFT_TIMEOUT", "").is_none()
        );
        for wrong in ["soon", "-1", "NaN"] {
            assert!(wrong_seconds("WEFT_TIMEOUT", wrong).unwrap().contains(wrong));
        }
    }
}
