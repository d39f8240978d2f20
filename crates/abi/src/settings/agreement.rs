//! Settings that must be equal on all processes of a job. MPI_Init compares them before anything depends on them.
//!
//! ```text
//!   each rank            publishes a hash of its values, and the values that are not the default ── fence
//!   each rank            reads the hash of rank 0
//!   ranks that differ    read the values, and report settings, ranks and values
//! ```
//! Cost: one fence and one read for each rank, for any number of ranks. Jobs that connect compare their settings, too ([`jobs`]).

pub mod jobs;

use super::{SETTINGS, SettingAgreement, SettingKind, SettingSpec, SettingValue};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use weft_bootstrap::{Bootstrap, BootstrapError, hash};

/// Keys of the published hash, and of the published values.
const NUMBER: &str = "settings";
const VALUES: &str = "settings-values";

/// Names under which a process publishes its host and its version.
const HOST: &str = "host";
const VERSION: &str = "the version of Weft";

/// Time that a rank waits before it reports a difference, unless it is the lowest rank that has found a difference. In this way the
/// lowest rank usually reports for all ranks.
const FIRST_WORD: Duration = Duration::from_secs(1);

/// Maximum number of values that an error names for a setting, and maximum number of ranges of ranks that it names for a value.
const NAMED: usize = 4;

/// Values of one process by name. Default values are left out.
type Values = BTreeMap<String, String>;

/// Compares the settings of all processes of the job. All processes must call this function.
///
/// # Errors
/// Returns an error if settings differ (with the ranks and their values), if a value is invalid, or if the launcher fails.
pub fn compare(bootstrap: &mut dyn Bootstrap) -> Result<(), String> {
    if bootstrap.size() == 1 {
        return Ok(());
    }
    let own = own(SettingAgreement::is_of_job, |setting| setting.text())?;
    check(bootstrap, &own, &own_host()).map_err(|found| {
        if !found.is_lowest {
            std::thread::sleep(FIRST_WORD);
        }
        found.text
    })
}

/// Returns the name of this host.
fn own_host() -> String {
    nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned()
}

/// Collects the values of settings for which `must_agree` returns true, without default values. `text` returns the text of a
/// setting.
fn own(
    must_agree: impl Fn(SettingAgreement) -> bool,
    text: impl Fn(&SettingSpec) -> String,
) -> Result<Values, String> {
    let mut values = Values::from([(VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
    for setting in SETTINGS.iter().filter(|setting| must_agree(setting.about.2)) {
        let value = plain(setting, &text(setting))?;
        if value != plain(setting, setting.default)? {
            values.insert(setting.name.to_owned(), value);
        }
    }
    Ok(values)
}

/// Returns the normal form of a value, which can be written in several forms.
fn plain(setting: &SettingSpec, text: &str) -> Result<String, String> {
    Ok(match (setting.understand(text)?, setting.kind) {
        (SettingValue::Number(number), _) => number.to_string(),
        (SettingValue::Maybe(number), _) => {
            number.map_or_else(String::new, |number| number.to_string())
        }
        (SettingValue::Place(place), SettingKind::Choice(words)) => words[place].to_owned(),
        (_, SettingKind::Algorithm(_)) => text.trim().to_ascii_uppercase(),
        (SettingValue::Words(name), _) if setting.name == crate::selection::MAP => map(&name),
        _ => text.trim().to_owned(),
    })
}

/// Returns a name for a map. The name of a map file contains a hash of its contents, because hosts may have different files of the
/// same name.
fn map(name: &str) -> String {
    match std::fs::read_to_string(name) {
        Ok(text) if name.contains(['/', '.']) => {
            format!("{name} (contents {:08x})", hash(&text) as u32)
        }
        _ => name.to_ascii_lowercase(),
    }
}

/// A difference that this process has found.
struct Found {
    text: String,
    /// True if no process of a lower rank has found a difference.
    is_lowest: bool,
}

impl From<BootstrapError> for Found {
    fn from(error: BootstrapError) -> Found {
        Found { text: error.to_string(), is_lowest: true }
    }
}

fn check(bootstrap: &mut dyn Bootstrap, own: &Values, host: &str) -> Result<(), Found> {
    let text = encode(own);
    let number = hash(&text).to_be_bytes();
    bootstrap.put(NUMBER, &number)?;
    bootstrap.put(VALUES, with_host(host, &text).as_bytes())?;
    bootstrap.fence()?;
    let first = bootstrap.get(0, NUMBER)?;
    if first == number {
        return Ok(());
    }
    let rank = bootstrap.rank();
    let mut is_lowest = true;
    for lower in 1..rank {
        if bootstrap.get(lower, NUMBER)? != first {
            is_lowest = false;
            break;
        }
    }
    let ranks: Vec<usize> = if is_lowest { (0..bootstrap.size()).collect() } else { vec![0, rank] };
    let mut all = Vec::new();
    for rank in ranks {
        let values = decode(&String::from_utf8_lossy(&bootstrap.get(rank, VALUES)?));
        all.push(ValuesOfRank { rank, values });
    }
    Err(Found { text: differences_of_ranks(&all), is_lowest })
}

fn encode(values: &Values) -> String {
    let lines = values.iter().map(|(name, value)| format!("{name}={}\n", value.replace('\n', " ")));
    lines.collect()
}

/// Adds the host to encoded values.
fn with_host(host: &str, text: &str) -> String {
    format!("{HOST}={host}\n{text}")
}

fn decode(text: &str) -> Values {
    let line = |line: &str| line.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned()));
    text.lines().filter_map(line).collect()
}

/// The values that a rank has published.
struct ValuesOfRank {
    rank: usize,
    values: Values,
}

/// Value of a setting, and the holders that have this value, as indices in a list.
struct SameValue<'v> {
    value: &'v str,
    places: Vec<usize>,
}

/// Describes the differences between the values of several holders: `NAME is VALUE on RANKS, VALUE on RANKS; ...`. `in_words` gets
/// indices into `all`, and returns a text for these holders that begins with a preposition, such as `on ranks 0 to 3`.
fn differences(all: &[&Values], in_words: impl Fn(&[usize]) -> String) -> String {
    let mut names: Vec<&String> = all.iter().flat_map(|values| values.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut said = Vec::new();
    for name in names.into_iter().filter(|name| *name != HOST) {
        let default = SETTINGS.iter().find(|setting| setting.name == name);
        let default = default.map_or("unknown", |setting| setting.default);
        // Groups of holders by value, in the order of the first holder that has the value.
        let mut groups: Vec<SameValue> = Vec::new();
        for (place, values) in all.iter().enumerate() {
            let value = values.get(name).map_or(default, |value| value);
            match groups.iter_mut().find(|group| group.value == value) {
                Some(group) => group.places.push(place),
                None => groups.push(SameValue { value, places: vec![place] }),
            }
        }
        if groups.len() > 1 {
            said.push(format!("{name} is {}", groups_in_words(&groups, &in_words)));
        }
    }
    said.join("; ")
}

/// Describes how the values of the ranks of a job differ.
fn differences_of_ranks(all: &[ValuesOfRank]) -> String {
    let values: Vec<&Values> = all.iter().map(|one| &one.values).collect();
    let in_words = |places: &[usize]| {
        let ranks: Vec<usize> = places.iter().map(|&place| all[place].rank).collect();
        format!("on {} (host {})", ranks_in_words(&ranks), host(values[places[0]]))
    };
    format!(
        "all ranks of a job must have the same settings, but {}. Look at what sets them on each host, or set them for all \
         (mpiexec -genv NAME VALUE)",
        differences(&values, in_words)
    )
}

/// Returns the host in the values of a process.
fn host(values: &Values) -> &str {
    values.get(HOST).map_or("?", |host| host)
}

fn groups_in_words(groups: &[SameValue], in_words: impl Fn(&[usize]) -> String) -> String {
    let some = groups.iter().take(NAMED).map(|SameValue { value, places }| {
        let value = if value.is_empty() { "not set" } else { *value };
        format!("{value} {}", in_words(places))
    });
    let mut words = some.collect::<Vec<_>>().join(", ");
    if groups.len() > NAMED {
        let _ = write!(words, ", and other values elsewhere");
    }
    words
}

/// Lists ranks in words: `rank 3`, or `ranks 0, 2 to 5`.
fn ranks_in_words(ranks: &[usize]) -> String {
    let ranges = ranks.chunk_by(|a, b| a + 1 == *b).map(|range| match range {
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    });
    let ranges: Vec<String> = ranges.collect();
    let more = if ranges.len() > NAMED { " and more" } else { "" };
    let plural = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{plural} {}{more}", ranges[..ranges.len().min(NAMED)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_bootstrap::threads;

    /// Returns a valid value of the setting that is not its default.
    pub(super) fn another(setting: &SettingSpec) -> String {
        match setting.kind {
            SettingKind::Number { least, most } | SettingKind::Maybe { least, most } => {
                [least, most]
                    .map(|n| n.to_string())
                    .into_iter()
                    .find(|n| n != setting.default)
                    .unwrap()
            }
            SettingKind::Switch => if setting.default == "0" { "1" } else { "0" }.to_owned(),
            SettingKind::Choice(words) => {
                words.iter().find(|word| **word != setting.default).unwrap().to_string()
            }
            SettingKind::Algorithm(operation) => {
                let mut names = operation.algorithms().map(|algorithm| algorithm.name);
                names.find(|name| setting.understand(name).is_ok()).unwrap().to_owned()
            }
            SettingKind::Nodes => "1".to_owned(),
            SettingKind::Words if setting.name == crate::selection::MAP => "ndr".to_owned(),
            SettingKind::Words | SettingKind::File => "x".to_owned(),
            SettingKind::Copies => "generic".to_owned(),
            SettingKind::Faults => "seed=7".to_owned(),
        }
    }

    /// Returns the difference that each rank finds if the ranks in `odd` have `value`.
    fn found(ranks: usize, odd: &[usize], name: &str, value: &str) -> Vec<Option<(String, bool)>> {
        let one = |mut member: weft_bootstrap::ThreadBootstrap| {
            let is_odd = odd.contains(&member.rank());
            let text = |s: &SettingSpec| {
                if is_odd && s.name == name { value.to_owned() } else { s.default.to_owned() }
            };
            let own = own(SettingAgreement::is_of_job, text).unwrap();
            check(&mut member, &own, "h").err().map(|found| (found.text, found.is_lowest))
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = threads(ranks).into_iter().map(|m| scope.spawn(|| one(m))).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn each_setting_that_must_be_alike_is_named_with_ranks_and_values() {
        let mut tried = 0;
        for setting in SETTINGS {
            let value = another(setting);
            let [all, some] =
                [&[0, 1, 2, 3][..], &[1, 3]].map(|odd| found(4, odd, setting.name, &value));
            assert!(all.iter().all(Option::is_none), "{}: {all:?}", setting.name);
            if setting.about.2 == SettingAgreement::Each {
                assert!(some.iter().all(Option::is_none), "{}: {some:?}", setting.name);
                continue;
            }
            tried += 1;
            let lowest: Vec<Option<bool>> = some.iter().map(|f| f.as_ref().map(|f| f.1)).collect();
            assert_eq!(lowest, [None, Some(true), None, Some(false)], "{}", setting.name);
            let text = &some[1].as_ref().unwrap().0;
            let default = if setting.default.is_empty() { "not set" } else { setting.default };
            let value = plain(setting, &value).unwrap();
            let words = format!(
                "but {} is {default} on ranks 0, 2 (host h), {value} on ranks 1, 3 (host h). Look",
                setting.name
            );
            assert!(text.contains(&words), "{text}");
        }
        assert!(tried > 30, "{tried}");
    }

    #[test]
    fn a_value_that_is_written_otherwise_is_the_same() {
        for (name, value) in
            [("WEFT_FABRIC", " AUTO"), ("WEFT_BCAST", "Auto"), ("WEFT_CREDIT", " 1048576 ")]
        {
            assert!(found(2, &[1], name, value).iter().all(Option::is_none), "{name}");
        }
    }

    #[test]
    fn maps_are_compared_by_what_is_in_them() {
        let folder = std::env::temp_dir().join(format!("weft-alike-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a.map").display().to_string();
        std::fs::write(&file, "one").unwrap();
        let before = map(&file);
        std::fs::write(&file, "two").unwrap();
        assert_ne!(map(&file), before);
        assert_eq!(map("NDR"), "ndr");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn ranks_are_named_by_ranges() {
        assert_eq!(ranks_in_words(&[3]), "rank 3");
        assert_eq!(ranks_in_words(&[0, 2, 3, 4, 9]), "ranks 0, 2 to 4, 9");
        let odd: Vec<usize> = (0..20).step_by(2).collect();
        assert_eq!(ranks_in_words(&odd), "ranks 0, 2, 4, 6 and more");
    }
}
