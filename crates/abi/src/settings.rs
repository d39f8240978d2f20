//! Settings. Each setting is declared once ([`declared`]). MPI_Init reads settings from the environment, unless the tool interface
//! has written them. `weft info` shows the settings, and they are the control variables of the tool interface.

pub mod agreement;
mod declared;
mod kinds;
mod networks;
pub mod runtime_change;

pub use declared::SETTINGS;
pub use kinds::{Audience, SettingAgreement, SettingKind, SettingPart, SettingSpec, SettingText};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock};
use weft_bootstrap::privileged::is_privileged;
use weft_collective::{CollectiveKind, Selection};
use weft_fabric_fault::FaultPlan;
use weft_intranode::ModelSource;

/// Value of a setting.
pub enum SettingValue {
    Number(u64),
    Maybe(Option<u64>),
    Words(String),
    Place(usize),
    Copies(ModelSource),
    Faults(Option<FaultPlan>),
    /// A value that another layer parses.
    Elsewhere,
}

impl SettingSpec {
    /// Parses `text`. An error is a text for the user.
    pub fn understand(&self, text: &str) -> Result<SettingValue, String> {
        let text = text.trim();
        let wrong = |expected: String| format!("{}={text}: {expected}", self.name);
        let number = |least: u64, most: u64| match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(wrong(format!("not a whole number from {least} to {most}"))),
        };
        match self.kind {
            SettingKind::Number { least, most } => number(least, most).map(SettingValue::Number),
            SettingKind::Maybe { .. } if text.is_empty() => Ok(SettingValue::Maybe(None)),
            SettingKind::Maybe { least, most } => {
                number(least, most).map(|number| SettingValue::Maybe(Some(number)))
            }
            SettingKind::Words => Ok(SettingValue::Words(text.to_owned())),
            SettingKind::Copies => {
                ModelSource::parse(text).map(SettingValue::Copies).map_err(wrong)
            }
            SettingKind::Algorithm(operation) => {
                match Selection::default().ask_for(operation, text) {
                    Ok(()) => Ok(SettingValue::Words(text.to_owned())),
                    Err(why) => Err(wrong(why)),
                }
            }
            SettingKind::Switch => match text {
                "0" => Ok(SettingValue::Number(0)),
                "1" => Ok(SettingValue::Number(1)),
                _ => Err(wrong("neither 0 nor 1".to_owned())),
            },
            SettingKind::Choice(words) => {
                let place = words.iter().position(|word| word.eq_ignore_ascii_case(text));
                let expected = || wrong(format!("not one of {}", words.join(", ")));
                place.map(SettingValue::Place).ok_or_else(expected)
            }
            SettingKind::Faults if text.is_empty() => Ok(SettingValue::Faults(None)),
            SettingKind::Faults => {
                let plan = text.parse::<FaultPlan>().map_err(|e| wrong(e.to_string()))?;
                Ok(SettingValue::Faults(Some(plan)))
            }
            SettingKind::Nodes => {
                weft_bootstrap::nodes::check(text).map(|()| SettingValue::Elsewhere)
            }
            SettingKind::File => Ok(SettingValue::Elsewhere),
        }
    }

    /// Returns the text that was written or is in the environment; `None` if the default is used.
    pub fn given(&self) -> Option<String> {
        match written().get(self.name) {
            Some(text) => text.clone(),
            None => {
                self.in_environment().filter(|text| !(self.names_file(text) && is_privileged()))
            }
        }
    }

    fn in_environment(&self) -> Option<String> {
        std::env::var_os(self.name).map(|text| text.to_string_lossy().into_owned())
    }

    /// Returns true if `text` names a file. Privileged programs refuse such a text.
    fn names_file(&self, text: &str) -> bool {
        let file = match self.kind {
            SettingKind::File => true,
            SettingKind::Copies => text.contains(['/', '.']),
            _ => match self.name {
                "WEFT_OFI_LIBRARY" => true,
                "WEFT_MAP" => text.contains(['/', '.']),
                _ => false,
            },
        };
        file && !text.trim().is_empty()
    }

    /// Returns the text that is in force: written, from the environment, or the default.
    pub fn text(&self) -> String {
        self.given().unwrap_or_else(|| self.default.to_owned())
    }

    /// Replaces the text of the environment. Returns the text that was written before, for [`SettingSpec::unwrite`].
    pub fn write(&self, text: String) -> Option<Option<String>> {
        written().insert(self.name, Some(text))
    }

    /// Undoes [`SettingSpec::write`].
    pub fn unwrite(&self, before: Option<Option<String>>) {
        match before {
            Some(text) => written().insert(self.name, text),
            None => written().remove(self.name),
        };
    }
}

/// Texts that replace the texts of the environment. `None` stands for the default.
static WRITTEN: Mutex<BTreeMap<&'static str, Option<String>>> = Mutex::new(BTreeMap::new());

fn written() -> MutexGuard<'static, BTreeMap<&'static str, Option<String>>> {
    // Each change is one call, so a panic leaves no change incomplete.
    WRITTEN.lock().unwrap_or_else(|e| e.into_inner())
}

/// Copies settings that the program has changed to the environment, if other layers read these settings from the environment.
pub fn publish() {
    for (name, text) in written().iter() {
        let kind = SETTINGS.iter().find(|s| s.name == *name).map(|s| s.kind);
        if let (Some(SettingKind::Nodes | SettingKind::File), Some(text)) = (kind, text) {
            // SAFETY: `set_var` must not race with readers of the environment. std serialises it with Rust code. The program is in
            // MPI_Init, so C code that calls getenv in another thread races as with any setenv.
            unsafe { std::env::set_var(name, text) };
        }
    }
}

/// Passes to spawned processes the settings of this job that connected jobs must share, even if the environment has changed since
/// MPI_Init.
pub fn pass_on(command: &mut Command) {
    for setting in SETTINGS.iter().filter(|setting| setting.about.2 == SettingAgreement::All) {
        match setting.given() {
            Some(text) => command.env(setting.name, text),
            None => command.env_remove(setting.name),
        };
    }
}

/// Prints the names of settings in the environment that are not used because the program is privileged.
pub fn say_refused() {
    if !is_privileged() {
        return;
    }
    let refused = |setting: &&SettingSpec| {
        setting.in_environment().is_some_and(|text| setting.names_file(&text))
    };
    for setting in SETTINGS.iter().filter(refused) {
        eprintln!(
            "weft: {} is not used: this program has more rights than who started it (set-user-ID or the like), and takes no names of \
             files from the environment",
            setting.name
        );
    }
}

/// Fixes the present values after MPI_Init has read them, so that later changes of the environment have no effect.
pub fn fix() {
    for setting in SETTINGS {
        let given = setting.given();
        written().insert(setting.name, given);
    }
}

fn value(name: &str) -> Result<SettingValue, String> {
    let setting = SETTINGS.iter().find(|s| s.name == name).expect("a declared setting");
    setting.understand(&setting.text())
}

/// Returns the name of the setting for the algorithm of an operation.
pub fn algorithm(operation: CollectiveKind) -> &'static str {
    let of = |s: &&SettingSpec| matches!(s.kind, SettingKind::Algorithm(o) if o == operation);
    SETTINGS.iter().find(of).expect("every operation has one").name
}

/// Returns a number, or a switch as 0 or 1. An error is a text for the user.
pub fn number(name: &str) -> Result<u64, String> {
    match value(name)? {
        SettingValue::Number(n) => Ok(n),
        _ => unreachable!("{name} is declared as something else"),
    }
}

/// Returns true if the setting is given.
pub fn is_given(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.name == name && setting.given().is_some())
}

/// Returns the number, if the setting is given.
pub fn maybe(name: &str) -> Result<Option<u64>, String> {
    match value(name)? {
        SettingValue::Maybe(n) => Ok(n),
        _ => unreachable!("{name} is declared as something else"),
    }
}

/// Returns a text.
pub fn words(name: &str) -> Result<String, String> {
    match value(name)? {
        SettingValue::Words(text) => Ok(text),
        _ => unreachable!("{name} is declared as something else"),
    }
}

/// Returns the index of the chosen word in the setting's declaration.
pub fn choice(name: &str) -> Result<usize, String> {
    match value(name)? {
        SettingValue::Place(place) => Ok(place),
        _ => unreachable!("{name} is declared as something else"),
    }
}

/// Returns the source of the costs of copies. A privileged program does not use its user's cache directory, which the environment
/// names.
pub fn copies() -> Result<ModelSource, String> {
    if is_privileged() {
        return ModelSource::parse("generic");
    }
    match value("WEFT_COPY_MODEL")? {
        SettingValue::Copies(wanted) => Ok(wanted),
        _ => unreachable!("WEFT_COPY_MODEL is declared as something else"),
    }
}

/// Returns the protocol that `WEFT_PROTOCOL` names.
pub fn protocol() -> Result<Option<weft_p2p::protocol::MessageProtocol>, String> {
    let place = choice("WEFT_PROTOCOL")?;
    Ok(place.checked_sub(1).map(|place| weft_p2p::protocol::MessageProtocol::ALL[place]))
}

/// Returns the faults that `WEFT_FAULT` names.
pub fn faults() -> Result<Option<FaultPlan>, String> {
    match value("WEFT_FAULT")? {
        SettingValue::Faults(plan) => Ok(plan),
        _ => unreachable!("WEFT_FAULT is declared as something else"),
    }
}

/// Returns the settings for `weft info`, a line for each: name, default, doc, the given value with `=` before it (empty if not given),
/// and the error in the value (empty if there is none), separated by tabs.
#[unsafe(no_mangle)]
pub extern "C" fn weft_settings() -> *const c_char {
    static TEXT: OnceLock<CString> = OnceLock::new();
    let line = |s: &SettingSpec| {
        let given = s.given();
        let wrong = given.as_deref().and_then(|text| s.understand(text).err());
        let given = given.map_or(String::new(), |text| format!("={text}"));
        let fields = [s.name, s.default, s.doc, &given, wrong.as_deref().unwrap_or_default()];
        fields.map(|field| field.replace(['\t', '\n'], " ")).join("\t") + "\n"
    };
    let build = || {
        CString::new(SETTINGS.iter().map(line).collect::<String>()).expect("no NUL in the texts")
    };
    TEXT.get_or_init(build).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understand(name: &str, text: &str) -> Result<SettingValue, String> {
        SETTINGS.iter().find(|s| s.name == name).unwrap().understand(text)
    }

    #[test]
    fn names_of_files_are_refused_where_the_program_is_privileged() {
        let setting = |name: &str| SETTINGS.iter().find(|s| s.name == name).unwrap();
        for name in ["WEFT_OFI_LIBRARY", "WEFT_PMIX", "WEFT_MAP", "WEFT_COPY_MODEL"] {
            assert!(setting(name).names_file("/tmp/mine"), "{name}");
            assert!(!setting(name).names_file(""), "{name}: nothing is named");
        }
        assert!(!setting("WEFT_MAP").names_file("shm"));
        assert!(!setting("WEFT_COPY_MODEL").names_file("generic"));
        // A setting whose description mentions a file must be refused in privileged programs.
        for setting in
            SETTINGS.iter().filter(|s| s.doc.contains("File name") || s.doc.contains("or a file"))
        {
            assert!(setting.names_file("/tmp/mine"), "{}", setting.name);
        }
    }

    #[test]
    fn every_default_is_understood() {
        for setting in SETTINGS {
            assert!(setting.understand(setting.default).is_ok(), "{}", setting.name);
        }
    }

    #[test]
    fn protocols_have_their_names() {
        let setting = SETTINGS.iter().find(|s| s.name == "WEFT_PROTOCOL").unwrap();
        let SettingKind::Choice(names) = setting.kind else { panic!("a choice") };
        assert_eq!(names[1..], weft_p2p::protocol::MessageProtocol::ALL.map(|p| p.name()));
    }

    #[test]
    fn defaults_are_those_of_the_layers_below() {
        let (limits, sizes) =
            (weft_p2p::ProtocolLimits::USUAL, weft_p2p::stream::StreamSizes::default());
        for (name, value) in [
            ("WEFT_EAGER", limits.eager),
            ("WEFT_CREDIT", limits.credit as usize),
            ("WEFT_STAGING", limits.staging),
            ("WEFT_STREAM_SEGMENT", sizes.segment),
            ("WEFT_STREAM_WINDOW", sizes.window),
            ("WEFT_STREAM_RENDEZVOUS", sizes.rendezvous),
            ("WEFT_STREAM_BLOCK", sizes.block),
        ] {
            let setting = SETTINGS.iter().find(|s| s.name == name).unwrap();
            assert_eq!(setting.default, value.to_string(), "{name}");
        }
    }

    #[test]
    fn wrong_values_are_named_with_what_is_expected() {
        for (name, text, expected) in [
            ("WEFT_EAGER", "16k", "not a whole number from 0"),
            ("WEFT_EAGER", "-1", "not a whole number from 0"),
            ("WEFT_CREDIT", "99999999999", "to 4294967295"),
            ("WEFT_GID_INDEX", "x", "not a whole number from 0 to 255"),
            ("WEFT_FABRIC", "tcp", "not one of auto, shm, verbs, ofi, shm+verbs, shm+ofi"),
            ("WEFT_CMA", "yes", "neither 0 nor 1"),
            ("WEFT_COPY_MODEL", "kept", "neither auto, measure, generic nor the path of a file"),
            ("WEFT_BARRIER", "fast", "no algorithm \"fast\" for barrier; known: CENTRAL, "),
            ("WEFT_ALLREDUCE", "MPI-GB:4", "MPI-GB has no parameter"),
            ("WEFT_FAULT", "seed=1,delay=2", "`delay=2` in a plan"),
            ("WEFT_NODES", "0,x", "\"x\" is not a number"),
        ] {
            let error = understand(name, text).err().unwrap();
            assert!(error.starts_with(&format!("{name}={text}: ")), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn right_values_are_understood() {
        assert!(matches!(understand("WEFT_EAGER", " 100 "), Ok(SettingValue::Number(100))));
        assert!(matches!(understand("WEFT_FABRIC", "SHM"), Ok(SettingValue::Place(1))));
        assert!(matches!(understand("WEFT_BARRIER", "mpi-ds"), Ok(SettingValue::Words(_))));
        assert!(matches!(understand("WEFT_BARRIER", "auto"), Ok(SettingValue::Words(_))));
        assert!(matches!(understand("WEFT_FAULT", ""), Ok(SettingValue::Faults(None))));
        let Ok(SettingValue::Faults(Some(plan))) = understand("WEFT_FAULT", "seed=7,reorder=1")
        else {
            panic!("no plan");
        };
        assert_eq!((plan.seed, plan.reorder), (7, true));
    }
}
