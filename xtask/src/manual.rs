//! Manual pages: a page for each MPI function and a page for each command. The pages of functions are made from the data that also
//! generates the ABI, and the pages of commands from each command's own description of its options.

mod arguments;
mod buffers;
pub(crate) mod commands;
pub mod data;
pub mod examples;
mod page;
mod siblings;
#[cfg(test)]
mod tests;

use crate::files::replace;
use data::{ManualData, ManualFunction};
use page::{NOT_BUILT, PageMaker};
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes the pages of all functions and commands into `share/man` of an installation.
pub fn install(prefix: &Path) -> Result<(), String> {
    let man = prefix.join("share/man");
    let (commands, functions) = (man.join("man1"), man.join("man3"));
    for dir in [&commands, &functions] {
        fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    }
    let bin = prefix.join("bin");
    for (name, text) in pages(&ManualData::read()?, &not_built(&bin.join("weft"))?)? {
        replace(&functions.join(name), |new| fs::write(new, &text))?;
    }
    commands::install(&bin, &commands)
}

/// Makes the page of each function, with its file name. For a form with large counts, the page is a link to the page of the form
/// without large counts.
fn pages(data: &ManualData, not_built: &HashSet<String>) -> Result<Vec<(String, String)>, String> {
    let maker = PageMaker::new(data, not_built)?;
    let page = |function: &ManualFunction| {
        let text = match data.small(&function.name) {
            Some(small) => link(3, &small.name),
            None => maker.page(function)?,
        };
        Ok((format!("{}.3", function.name), text))
    };
    data.functions.iter().map(page).collect()
}

/// Returns a page that refers to another page.
fn link(section: u8, name: &str) -> String {
    format!(".so man{section}/{name}.{section}\n")
}

/// Returns the functions that the library does not implement, according to `weft info --coverage`.
fn not_built(weft: &Path) -> Result<HashSet<String>, String> {
    let list = said(weft, &["info", "--coverage"])?;
    Ok(list.lines().filter_map(|line| line.trim().strip_prefix("- ")).map(str::to_owned).collect())
}

/// Returns the output of a command, which must succeed.
pub(crate) fn said(program: &Path, args: &[&str]) -> Result<String, String> {
    let name = program.display();
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|e| format!("cannot run {name}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{name} {}: {}", args.join(" "), output.status));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("{name} {}: {e}", args.join(" ")))
}

/// Compares the errors that pages name with the errors that were `raised`, by function, argument and class. Leaves out functions
/// that have raised no error, and arguments that are requests.
pub fn confirm(raised: &HashSet<(&str, &str, &str)>) -> Result<(), String> {
    let data = ManualData::read()?;
    let mut faults = Vec::new();
    let mut confirmed = 0;
    let built = |name: &str| {
        raised.iter().any(|(function, _, class)| *function == name && *class != NOT_BUILT)
    };
    for function in
        data.functions.iter().filter(|f| built(&f.name) && data.small(&f.name).is_none())
    {
        for argument in function.arguments.iter().filter(|a| a.meaning.kind != "REQUEST") {
            for class in argument.meaning.errors.split_whitespace() {
                let claim = (function.name.as_str(), argument.name.as_str(), class);
                if raised.contains(&claim) {
                    confirmed += 1;
                } else {
                    faults.push(format!("{}: a wrong {} raises no {class}", claim.0, claim.1));
                }
            }
        }
    }
    if confirmed < 1000 {
        faults.push(format!("no more than {confirmed} errors were raised as pages say"));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Returns groff's warnings about a page; `None` if there is no groff. groff looks for the targets of links in the folder `man`.
pub fn complaints(page: &str, man: &Path) -> Option<String> {
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tutf8", "-ww", "-z", "-"]).current_dir(man);
    groff.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = groff.spawn().ok()?;
    child.stdin.take()?.write_all(page.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}
