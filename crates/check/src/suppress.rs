//! Suppressions: findings that the user does not want to see, by class and call site.
//!
//! Each line of the file is `class: text`. It suppresses findings of the class that have a call whose site contains the text. `*` stands for all
//! sites. Empty lines and lines that begin with `#` are left out.

use crate::finding::{CheckFinding, FindingClass};
use std::path::Path;
use std::sync::OnceLock;

/// Setting with the name of the file.
const SETTING: &str = "WEFT_CHECK_SUPPRESS";

/// A line of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Suppression {
    class: FindingClass,
    /// Part of a call site; empty for all.
    site: String,
}

/// Reads the lines of a file.
fn parse(text: &str) -> Result<Vec<Suppression>, String> {
    let mut all = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parts = line.split_once(':').map(|(class, site)| (class.trim(), site.trim()));
        let (name, site) = parts.filter(|(_, site)| !site.is_empty()).ok_or(format!(
            "line {number}: '{line}': write a class, a colon, and part of a call site or *"
        ))?;
        let class = FindingClass::ALL.into_iter().find(|class| class.name() == name);
        let class = class.ok_or_else(|| {
            let names = FindingClass::ALL.map(FindingClass::name).join(", ");
            format!("line {number}: no class '{name}'; the classes are {names}")
        })?;
        all.push(Suppression { class, site: if site == "*" { "" } else { site }.to_owned() });
    }
    Ok(all)
}

/// Suppressions of this process.
static SUPPRESSIONS: OnceLock<Vec<Suppression>> = OnceLock::new();

/// Reads the file that the setting names.
pub fn read() -> Result<(), String> {
    let Some(path) = std::env::var_os(SETTING).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let name = Path::new(&path).display();
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("{SETTING}={name}: {error}; name a file that can be read"))?;
    let all = parse(&text).map_err(|why| format!("{SETTING}={name}, {why}"))?;
    SUPPRESSIONS.get_or_init(|| all);
    Ok(())
}

/// Returns true if the user does not want to see a finding.
pub fn is_suppressed(finding: &CheckFinding) -> bool {
    let all = SUPPRESSIONS.get().map_or(&[][..], Vec::as_slice);
    let mut of_class = all.iter().filter(|line| line.class == finding.class).peekable();
    if of_class.peek().is_none() {
        return false;
    }
    let sites: Vec<_> = finding.parties.iter().map(|party| party.site.to_string()).collect();
    of_class.any(|line| sites.iter().any(|site| site.contains(&line.site)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_a_class_and_a_site() {
        let text = "# known\n\nobject not freed: *\nbuffer in use: halo (halo.c:12)\n";
        let line = |class, site: &str| Suppression { class, site: site.to_owned() };
        let wanted = [
            line(FindingClass::ObjectNotFreed, ""),
            line(FindingClass::BufferInUse, "halo (halo.c:12)"),
        ];
        assert_eq!(parse(text).expect("suppressions"), wanted);
    }

    #[test]
    fn lines_that_make_no_sense_are_errors_with_their_number() {
        let error = |text: &str| parse(text).expect_err("an error");
        assert!(error("\nbuffer in us: *").starts_with("line 2: no class 'buffer in us'"));
        assert!(error("buffer in use").starts_with("line 1:"));
        assert!(error("buffer in use:").starts_with("line 1:"));
    }
}
