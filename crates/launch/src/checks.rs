//! The layers between a program and the MPI library, which are preloaded if the user asks for them: the checks of the program's MPI
//! calls, and the times of its calls in a job in virtual time.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Setting that asks for the checks.
pub const SWITCH: &str = "WEFT_CHECK";

/// Setting with the file of findings that the user does not want to see.
pub const SUPPRESS: &str = "WEFT_CHECK_SUPPRESS";

/// Setting that asks for the waits of the program.
pub const SLOW: &str = "WEFT_CHECK_SLOW";

/// Setting that asks for poison in buffers that an operation overwrites.
pub const POISON: &str = "WEFT_CHECK_POISON";

/// File of the layer in an installation's folder of libraries.
const FILE: &str = "weft/libweft_check.so";

/// Variable that names the simulation of a job in virtual time.
pub const SIMULATION: &str = "WEFT_SIMULATION";

/// File of the layer for jobs in virtual time.
const SIM_CALLS: &str = "weft/libweft_sim_calls.so";

/// Returns the paths of the layers for these settings, as a list for the loader. `folder` is the installation's folder of
/// libraries.
pub fn layers(
    folder: &Path,
    check: Option<&OsStr>,
    simulation: Option<&OsStr>,
) -> Option<OsString> {
    let simulated = simulation.map(|_| folder.join(SIM_CALLS)).filter(|path| path.is_file());
    let all = library(folder, check).into_iter().chain(simulated.map(PathBuf::into_os_string));
    let all: Vec<_> = all.collect();
    (!all.is_empty()).then(|| all.join(OsStr::new(":")))
}

/// Returns the path of the checks, if the setting asks for it. `folder` is the installation's folder of libraries.
pub fn library(folder: &Path, setting: Option<&OsStr>) -> Option<OsString> {
    let is_wanted = setting.is_some_and(|value| !value.is_empty() && value != "0");
    is_wanted.then(|| folder.join(FILE).into_os_string())
}

/// Returns the settings for `-check-suppress`. The path is a full one, since ranks may run in other folders.
pub fn suppress(option: &str, file: &OsStr) -> Result<[(OsString, OsString); 2], String> {
    let path = std::fs::canonicalize(file).map_err(|error| {
        format!("{option} {}: {error}; name a file that can be read", Path::new(file).display())
    })?;
    Ok([(SWITCH.into(), "1".into()), (SUPPRESS.into(), path.into_os_string())])
}

/// Returns the settings for `-check-slow`.
pub fn slow() -> [(OsString, OsString); 2] {
    [SWITCH, SLOW].map(|name| (name.into(), "1".into()))
}

/// Returns the settings for `-check-poison`.
pub fn poison() -> [(OsString, OsString); 2] {
    [SWITCH, POISON].map(|name| (name.into(), "1".into()))
}

/// Returns an error if the setting asks for the layer, and the installation has none.
pub fn missing(setting: Option<&OsStr>) -> Option<String> {
    let own = std::env::current_exe().ok()?;
    let folder = own.parent()?.parent()?.join("lib");
    let path = library(&folder, setting)?;
    let path = Path::new(&path);
    (!path.is_file()).then(|| {
        format!(
            "{SWITCH}: this installation has no {}; install it with cargo xtask install",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_suppressions_exists() {
        let settings = suppress("-check-suppress", OsStr::new("/dev/null")).expect("a file");
        assert_eq!(settings[1], (SUPPRESS.into(), "/dev/null".into()));
        let error = suppress("-check-suppress", OsStr::new("/no/file")).unwrap_err();
        assert!(error.starts_with("-check-suppress /no/file: "), "{error}");
    }

    #[test]
    fn only_a_setting_other_than_0_asks_for_the_layer() {
        let of = |setting: Option<&str>| library(Path::new("/w/lib"), setting.map(OsStr::new));
        assert_eq!(of(None), None);
        assert_eq!(of(Some("")), None);
        assert_eq!(of(Some("0")), None);
        assert_eq!(of(Some("1")), Some("/w/lib/weft/libweft_check.so".into()));
    }
}
