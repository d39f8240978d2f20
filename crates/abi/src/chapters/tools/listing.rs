//! List of all variables of the tool interface, for `weft info --variables`.

use super::category_tree::name_of;
use super::pvars::{PvarSource, gauges};
use crate::settings::{SETTINGS, SettingAgreement, SettingKind, SettingText};
use std::ffi::{CString, c_char};
use std::sync::OnceLock;

/// Describes the values that a setting may have.
fn values(kind: SettingKind) -> String {
    match kind {
        SettingKind::Number { least, most } => format!("{least} to {most}"),
        SettingKind::Maybe { least, most } => format!("{least} to {most}, or none"),
        SettingKind::Switch => "0, 1".to_owned(),
        SettingKind::Choice(words) => words.join(", "),
        _ => "text".to_owned(),
    }
}

/// Returns a line for each variable. Its fields, separated by tabs, are: `control` or `performance`, name, category, values or
/// class, scope or object (`each process`, `all alike`, `communicator`), description.
fn lines() -> String {
    let controls = SETTINGS.iter().map(|s| {
        let SettingText(part, _, agreement) = s.about;
        let scope = match agreement {
            SettingAgreement::Each => "each process",
            SettingAgreement::All | SettingAgreement::Job(_) => "all alike",
        };
        ["control", s.name, name_of(part), &values(s.kind), scope, s.doc].join("\t")
    });
    let measures = gauges().iter().map(|g| {
        let of = match g.source {
            PvarSource::Comm(_) => "communicator",
            _ => "process",
        };
        ["performance", &g.name, name_of(g.part), g.class.word(), of, &g.doc].join("\t")
    });
    controls.chain(measures).map(|line| line + "\n").collect()
}

/// Returns the text of all lines. The function needs neither `MPI_Init` nor `MPI_T_init_thread`.
#[unsafe(no_mangle)]
pub extern "C" fn weft_variables() -> *const c_char {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| CString::new(lines()).expect("no NUL in the texts")).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_a_line_of_six_fields() {
        let lines = lines();
        assert_eq!(lines.lines().count(), SETTINGS.len() + gauges().len());
        for line in lines.lines() {
            let fields: Vec<_> = line.split('\t').collect();
            assert_eq!(fields.len(), 6, "{line}");
            assert!(fields.iter().all(|field| !field.is_empty()), "{line}");
        }
    }
}
