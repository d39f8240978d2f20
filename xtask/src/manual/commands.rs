//! Pages of the commands. `weft` writes its own pages; the other pages are made from the output of `-help`.

use super::page::begin;
use super::{link, said};
use crate::files::replace;
use roff::{Roff, bold, roman};
use std::fs;
use std::path::Path;

/// Commands that have a page, and other names for the same page.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("mpiexec", &["mpirun"]),
    ("mpicc", &[]),
    ("mpicxx", &["mpic++", "mpiCC"]),
    ("mpifort", &["mpif90", "mpif77"]),
];

/// Writes the pages of the commands in `bin` to `to`.
pub fn install(bin: &Path, to: &Path) -> Result<(), String> {
    said(&bin.join("weft"), &["manual", &to.to_string_lossy()])?;
    for (name, others) in COMMANDS {
        let help = said(&bin.join(name), &["-help"])?;
        let file = |name: &str| to.join(format!("{name}.1"));
        replace(&file(name), |new| fs::write(new, page(name, others, &help)))?;
        for other in others {
            replace(&file(other), |new| fs::write(new, link(1, name)))?;
        }
    }
    Ok(())
}

/// A part of a help text.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum HelpPart {
    Usage(String),
    Heading(String),
    /// An option, and its description.
    Option(String, String),
    Paragraph(String),
}

/// Splits a help text into its parts. A line that begins with two blanks and a dash describes an option. Lines with more blanks
/// continue the description.
pub(crate) fn parts(help: &str) -> Vec<HelpPart> {
    let mut parts = Vec::new();
    let mut open = false;
    for line in help.lines() {
        let text = line.trim();
        if text.is_empty() {
            open = false;
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            parts.push(HelpPart::Usage(usage.to_owned()));
        } else if let Some(option) = line.strip_prefix("  ").filter(|rest| rest.starts_with('-')) {
            let (option, words) = option.split_once("  ").unwrap_or((option, ""));
            parts.push(HelpPart::Option(option.to_owned(), words.trim().to_owned()));
            open = true;
        } else if let (true, Some(HelpPart::Option(_, so_far) | HelpPart::Paragraph(so_far))) =
            (open, parts.last_mut())
        {
            so_far.push(' ');
            so_far.push_str(text);
        } else if let Some(heading) = line.strip_suffix(':') {
            parts.push(HelpPart::Heading(heading.to_owned()));
        } else {
            parts.push(HelpPart::Paragraph(text.to_owned()));
            open = true;
        }
    }
    parts
}

/// Makes the page of a command from its output of `-help`.
fn page(name: &str, others: &[&str], help: &str) -> String {
    let parts = parts(help);
    let first = parts.iter().find_map(|part| match part {
        HelpPart::Paragraph(text) => Some(text.split(['.', ':']).next().unwrap_or(text)),
        _ => None,
    });
    let purpose = first.unwrap_or("a command of Weft");
    let purpose = format!("{}{}", purpose[..1].to_lowercase(), &purpose[1..]);
    let mut page = begin(name, "1", "Weft");
    page.control("SH", ["NAME"]);
    let names: Vec<&str> = std::iter::once(name).chain(others.iter().copied()).collect();
    page.text([roman(format!("{} - {purpose}", names.join(", ")))]);
    let mut described = false;
    for part in &parts {
        if !described && !matches!(part, HelpPart::Usage(_)) {
            page.control("SH", ["DESCRIPTION"]);
            described = true;
        }
        add(&mut page, part);
    }
    page.control("SH", ["SEE ALSO"]);
    let also = ["mpicc", "mpiexec", "weft"].iter().filter(|other| **other != name);
    let also = also.flat_map(|other| [bold(*other), roman("(1), ")]).collect::<Vec<_>>();
    page.text([also, vec![bold("MPI_Init"), roman("(3)")]].concat());
    page.render()
}

fn add(page: &mut Roff, part: &HelpPart) {
    match part {
        HelpPart::Usage(text) => {
            page.control("SH", ["SYNOPSIS"]);
            page.text([bold(text)]);
        }
        HelpPart::Heading(text) => {
            page.control("SS", [text.as_str()]);
        }
        HelpPart::Option(option, words) => {
            page.control("TP", []);
            page.text([bold(option)]);
            page.text([roman(words)]);
        }
        HelpPart::Paragraph(text) => {
            page.control("PP", []);
            page.text([roman(text)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_help_text_becomes_a_page() {
        let help = "Usage: go [options]\n\nGoes there. At\nonce.\n\nFor all:\n  -n N, -np N   number\n        \
                    of steps\n  -fast\n\nThe end.\n";
        let option = |option: &str, words: &str| HelpPart::Option(option.into(), words.into());
        let expected = [
            HelpPart::Usage("go [options]".into()),
            HelpPart::Paragraph("Goes there. At once.".into()),
            HelpPart::Heading("For all".into()),
            option("-n N, -np N", "number of steps"),
            option("-fast", ""),
            HelpPart::Paragraph("The end.".into()),
        ];
        assert_eq!(parts(help), expected);
        let page = page("go", &["walk"], help);
        for text in
            ["go, walk \\- goes there\n", ".SH SYNOPSIS\n\\fBgo [options]\\fR", ".SS \"For all\""]
        {
            assert!(page.contains(text), "{text}: {page}");
        }
    }

    #[test]
    fn the_launcher_describes_itself_so_that_a_page_can_be_made() {
        let path = crate::root().join("crates/launch/src/help.txt");
        let parts = parts(&fs::read_to_string(path).unwrap());
        let options = parts.iter().filter(|part| matches!(part, HelpPart::Option(..))).count();
        assert!(options > 15, "{options}");
        let empty = |part: &&HelpPart| matches!(part, HelpPart::Option(name, words) if words.is_empty() && name != "-help, -version");
        assert_eq!(parts.iter().find(empty), None);
    }
}
