//! Recipes of `packaging/`: linters read them, and the soak runs the steps of the containers' recipes in a bare Debian, because a
//! machine of tests has no Docker and no Apptainer.

use super::habits::{self, Helpers};
use super::tally::Tally;
use super::tools::quiet;
use crate::root;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Recipe of a container.
pub(super) struct ContainerRecipe {
    /// Name of the script of the steps.
    pub name: &'static str,
    /// File in `packaging/containers`.
    pub file: &'static str,
    steps: fn(&str) -> Result<String, String>,
}

/// All recipes of containers.
pub(super) const RECIPES: [ContainerRecipe; 2] = [
    ContainerRecipe { name: "dockerfile", file: "Dockerfile", steps: dockerfile },
    ContainerRecipe { name: "apptainer", file: "weft.def", steps: apptainer },
];

/// Image on which recipes build. The bare root of the tests has the same packages.
const IMAGE: &str = "debian:bookworm-slim";

/// Folder of the files that a recipe copies from.
const CONTEXT: &str = "/packages";

/// Tests in a finished container.
const CHECK: &str = include_str!("habits/container.sh");

impl ContainerRecipe {
    /// Returns a script that runs the steps of the recipe in a bare root, and tests the result.
    ///
    /// # Errors
    /// The recipe cannot be read, or has an instruction that the script cannot run.
    pub fn script(&self) -> Result<String, String> {
        let steps = (self.steps)(&self.text()?).map_err(|why| format!("{}: {why}", self.file))?;
        Ok(format!("set -eu\n{steps}{CHECK}"))
    }

    fn text(&self) -> Result<String, String> {
        let path = root().join("packaging/containers").join(self.file);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    }
}

/// Returns the lines of a recipe without comments. A line that ends with a backslash is one line with the next.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match lines.last_mut().filter(|_| open) {
            Some(last) => last.push_str(part),
            None => lines.push(part.to_owned()),
        }
        open = more;
    }
    lines.retain(|line| !line.trim().is_empty());
    lines
}

/// Returns the commands that copy files as a recipe says, from the folder of the packages.
fn copies(from: &[&str], to: &str) -> String {
    let from: Vec<String> = from.iter().map(|name| format!("{CONTEXT}/{name}")).collect();
    format!("cp {} {to}\n", from.join(" "))
}

/// Returns the steps of a Dockerfile.
fn dockerfile(text: &str) -> Result<String, String> {
    let mut steps = String::new();
    let mut image = None;
    for line in logical_lines(text) {
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match (word, rest.split_whitespace().collect::<Vec<_>>().as_slice()) {
            ("FROM", [name]) => image = Some((*name).to_owned()),
            ("COPY", [from @ .., to]) if !from.is_empty() => steps += &copies(from, to),
            ("ENV", [pair]) if pair.contains('=') => steps += &format!("export {pair}\n"),
            // Each step is a shell of its own, as in Docker.
            ("RUN", [_, ..]) => steps += &format!("(\n{rest}\n)\n"),
            _ => return Err(format!("no test can run the instruction '{line}'")),
        }
    }
    based_on(image.as_deref())?;
    Ok(steps)
}

/// Returns the steps of a definition file of Apptainer.
fn apptainer(text: &str) -> Result<String, String> {
    let (mut steps, mut section) = (String::new(), String::from("header"));
    let (mut image, mut environment) = (None, String::new());
    for line in logical_lines(text) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (section.as_str(), words.as_slice()) {
            (_, [name]) if name.starts_with('%') => section = name[1..].to_owned(),
            ("header", ["Bootstrap:", "docker"]) => {}
            ("header", ["From:", name]) => image = Some((*name).to_owned()),
            ("files", [from, to]) => steps += &copies(&[*from], to),
            ("post", _) => writeln!(steps, "{line}").expect("a string grows"),
            ("environment", _) => writeln!(environment, "{line}").expect("a string grows"),
            _ => return Err(format!("no test can run the line '{line}' of section {section}")),
        }
    }
    based_on(image.as_deref())?;
    Ok(steps + &environment)
}

fn based_on(image: Option<&str>) -> Result<(), String> {
    match image {
        Some(IMAGE) => Ok(()),
        other => Err(format!("it builds on {other:?}, and the tests have only {IMAGE}")),
    }
}

/// Scripts of the tests.
const FILES: [(&str, &str); 4] = [
    ("lint.sh", include_str!("habits/lint.sh")),
    ("modules.sh", include_str!("habits/modules.sh")),
    ("read_easyconfigs.py", include_str!("habits/read_easyconfigs.py")),
    ("easybuild.sh", include_str!("habits/easybuild.sh")),
];

/// Installs the tar archive in `dist` by EasyBuild.
pub(super) fn easybuild(helpers: &Helpers, dist: &Path) -> Result<(), String> {
    let work = tempfile::tempdir().map_err(|e| format!("a folder: {e}"))?;
    for (name, text) in FILES {
        let file = work.path().join(name);
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let mut install = helpers.script("easybuild.sh", work.path())?;
    install.arg(root().join("packaging")).arg(dist).arg(helpers.bin.join("python"));
    print!("{}", quiet(install.env("HOME", work.path()))?);
    Ok(())
}

/// Runs the linters on all recipes and module files.
pub(super) fn lint(helpers: &Helpers, tally: &mut Tally) -> Result<(), String> {
    let work = tempfile::tempdir().map_err(|e| format!("a folder: {e}"))?;
    let failed = |e: std::io::Error| format!("{}: {e}", work.path().display());
    for (name, text) in FILES {
        fs::write(work.path().join(name), text).map_err(failed)?;
    }
    for recipe in RECIPES {
        let script = format!("#!/bin/sh\n{}", recipe.script()?);
        fs::write(work.path().join(format!("steps-{}.sh", recipe.name)), script).map_err(failed)?;
    }
    let mut lint = helpers.script("lint.sh", work.path())?;
    lint.arg(root().join("packaging")).arg(helpers.bin.join("python")).env("HOME", work.path());
    habits::count(&quiet(&mut lint)?, tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipes_have_only_steps_that_a_test_can_run() {
        for recipe in RECIPES {
            let script = recipe.script().unwrap();
            assert!(script.contains("apt-get install -y"), "{script}");
            assert!(script.contains("cp /packages/weft-"), "{script}");
        }
    }

    #[test]
    fn steps_of_a_dockerfile_become_commands() {
        let text = "# x\nFROM debian:bookworm-slim\nCOPY a b /c/\nENV D=e\nRUN f \\\n    && g\n";
        let steps = "cp /packages/a /packages/b /c/\nexport D=e\n(\nf     && g\n)\n";
        assert_eq!(dockerfile(text).unwrap(), steps);
        let error = dockerfile("FROM debian:bookworm-slim\nVOLUME /x\n").unwrap_err();
        assert!(error.contains("VOLUME /x"), "{error}");
        assert!(dockerfile("FROM alpine\n").unwrap_err().contains("alpine"));
    }

    #[test]
    fn sections_of_a_definition_become_commands() {
        let head = "Bootstrap: docker\nFrom: debian:bookworm-slim\n";
        let text = format!(
            "{head}%files\n  a-*.gz /opt/\n%environment\n  export P=1\n%post\n  install it\n"
        );
        let steps = "cp /packages/a-*.gz /opt/\n  install it\n  export P=1\n";
        assert_eq!(apptainer(&text).unwrap(), steps);
        let error = apptainer(&format!("{head}%labels\n  a b\n")).unwrap_err();
        assert!(error.contains("section labels"), "{error}");
    }
}
