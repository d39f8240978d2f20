//! Costs of moving bytes between ranks of this machine, for `weft info`.

use crate::settings;
use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::OnceLock;
use std::time::SystemTime;
use weft_fabric::{CopyModel, Unit};
use weft_intranode::{LoadedModel, ModelLoader, ModelOrigin};

/// Returns the lines of `weft info`: name, number with unit, and meaning, separated by tabs. The first line has `source`, an empty
/// field, and the origin of the numbers. If no costs are stored, they are measured now, as in a job of several ranks.
#[unsafe(no_mangle)]
pub extern "C" fn weft_copies() -> *const c_char {
    static TEXT: OnceLock<CString> = OnceLock::new();
    let build = || {
        let start = |wanted| ModelLoader::start(&wanted, 2);
        let text = match settings::copies().and_then(start) {
            Ok(finding) => lines(&finding.wait(), SystemTime::now()),
            Err(why) => format!("source\t\tnone: {}\n", why.replace(['\t', '\n'], " ")),
        };
        CString::new(text.replace('\0', " ")).expect("no NUL in the text")
    };
    TEXT.get_or_init(build).as_ptr()
}

fn lines(found: &LoadedModel, now: SystemTime) -> String {
    let mut text = format!("source\t\t{}\n", source(&found.origin, now).replace(['\t', '\n'], " "));
    // If all costs are generic, the output line `source` already says that the costs belong to no machine. Then no single cost is
    // marked.
    let marks = !matches!(found.origin, ModelOrigin::Generic(_));
    for field in CopyModel::FIELDS {
        let value = number(field.shown(&found.model), field.unit);
        let mark = marks && found.generic.contains(field.name);
        let mark = if mark { " (assumed, not measured)" } else { "" };
        text +=
            &format!("{}\t{value} {}\t{}{mark}\n", field.name, field.unit.name(), field.meaning);
    }
    text
}

fn source(origin: &ModelOrigin, now: SystemTime) -> String {
    let kept = |path: &Path| format!("kept in {}", path.display());
    match origin {
        ModelOrigin::Generic(why) => format!("of no machine in particular ({why})"),
        ModelOrigin::Measured(Some(path)) => format!("measured now, {}", kept(path)),
        ModelOrigin::Measured(None) => {
            "measured now, and in each job: the cache directory cannot be written".to_owned()
        }
        ModelOrigin::Kept(path, when) => {
            format!("measured {} on this machine, {}", ago(*when, now), kept(path))
        }
        ModelOrigin::Given(path, None) => format!("{}, named by WEFT_COPY_MODEL", path.display()),
        ModelOrigin::Given(path, Some(when)) => {
            format!("{}, named by WEFT_COPY_MODEL, measured {}", path.display(), ago(*when, now))
        }
    }
}

/// Formats a number with about three significant digits.
fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Time if value < 0.1 => format!("{value:.4}"),
        Unit::Time => format!("{value:.2}"),
        Unit::Rate | Unit::Size => format!("{value:.0}"),
    }
}

/// Describes how long ago `when` was.
fn ago(when: SystemTime, now: SystemTime) -> String {
    let Ok(age) = now.duration_since(when) else { return "in the future".to_owned() };
    let (count, unit) = match age.as_secs() {
        0..120 => (age.as_secs(), "second"),
        seconds @ 120..7200 => (seconds / 60, "minute"),
        seconds @ 7200..172_800 => (seconds / 3600, "hour"),
        seconds => (seconds / 86400, "day"),
    };
    format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    #[test]
    fn each_number_has_its_unit_and_meaning_and_whether_it_was_measured() {
        let now = SystemTime::now();
        let origin =
            ModelOrigin::Kept("/c/x.toml".into(), now - Duration::from_secs(3 * 86400 + 5));
        let generic = BTreeSet::from(["line.apart".to_owned()]);
        let text = lines(&LoadedModel { model: CopyModel::GENERIC, origin, generic }, now);
        let first = "source\t\tmeasured 3 days ago on this machine, kept in /c/x.toml";
        assert_eq!(text.lines().next(), Some(first));
        assert_eq!(text.lines().count(), 1 + CopyModel::FIELDS.len());
        assert!(text.contains("line.shared\t0.0600 us\ta rank sees a flag"), "{text}");
        assert!(text.contains("cached\t33333 MB/s\t") && text.contains("private\t1048576 bytes\t"));
        let assumed: Vec<_> = text.lines().filter(|line| line.contains("assumed")).collect();
        assert!(assumed.len() == 1 && assumed[0].starts_with("line.apart\t"), "{text}");
    }

    #[test]
    fn ages_are_in_words() {
        let now = SystemTime::now();
        for (seconds, words) in [
            (1, "1 second ago"),
            (119, "119 seconds ago"),
            (120, "2 minutes ago"),
            (7200, "2 hours ago"),
            (864_000, "10 days ago"),
        ] {
            assert_eq!(ago(now - Duration::from_secs(seconds), now), words);
        }
        assert_eq!(ago(now + Duration::from_secs(9), now), "in the future");
    }
}
