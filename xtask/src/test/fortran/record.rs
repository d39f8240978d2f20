//! Test of every Fortran entry. A library that replaces the real library records the arguments that reach C, and the test compares
//! these arguments with the standard.

use super::Tools;
use crate::test::tally::Tally;
use crate::test::tools::quiet;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use weft_fortran::record::{
    Mutation, RecordVariant, RecordedCall, library, mutated, program, recorded,
};
use weft_fortran::{BindingForm, sources};

const FORMS: [BindingForm; 3] = [BindingForm::Include, BindingForm::Mpi, BindingForm::MpiF08];

/// Generated sources with the C functions that Fortran calls. Only these sources are mutated.
const ENTRIES: [&str; 3] = ["mpi.c", "mpi_f08.c", "mpi_f08_large.c"];

/// Maximum percentage of wrong entries that may remain undetected.
const MISSED: usize = 1;

/// A program with all calls that it makes.
struct Recorded {
    form: BindingForm,
    calls: Vec<RecordedCall>,
    program: PathBuf,
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Builds the recording library, in a folder of its own.
fn recorder(tools: &Tools) -> Result<PathBuf, String> {
    let folder = tools.work.join("record");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (source, made) = (folder.join("record.c"), folder.join("libmpi_abi.so.1"));
    write(&source, &library())?;
    let mut cc = Command::new("cc");
    cc.args(["-w", "-O1", "-shared", "-fPIC", "-Wl,-soname,libmpi_abi.so.1", "-I"]);
    quiet(cc.arg(tools.prefix.join("include")).arg(&source).arg("-o").arg(&made))?;
    Ok(made)
}

fn built(tools: &Tools, form: BindingForm, recorder: &Path) -> Result<Recorded, String> {
    let calls = recorded(form);
    let folder = tools.work.join("record");
    let source = folder.join(format!("record_{form:?}.f90").to_lowercase());
    write(&source, &program(form, &calls))?;
    let to = source.with_extension("");
    let mut mpifort = tools.mpifort();
    mpifort.args(["-w", "-O0", "-o"]).arg(&to).arg(&source).arg(recorder).current_dir(&folder);
    quiet(&mut mpifort)?;
    Ok(Recorded { form, calls, program: to })
}

/// Returns the output of each call. If the program ends early, starts it again after the call in which it ended.
fn said(
    of: &Recorded,
    variant: RecordVariant,
    preload: Option<&Path>,
) -> Result<BTreeMap<usize, Vec<String>>, String> {
    let (mut all, mut first) = (BTreeMap::<usize, Vec<String>>::new(), 0);
    let folder = of.program.parent().unwrap_or(Path::new("."));
    while first < of.calls.len() {
        let mut command = Command::new("timeout");
        command.args(["20", "env"]).env("LD_LIBRARY_PATH", folder);
        command.env("WEFT_VARIANT", (variant as usize).to_string());
        command.env("WEFT_FIRST", first.to_string());
        if let Some(preload) = preload {
            // Sets the variable only for the program, not for `timeout`.
            command.arg(format!("LD_PRELOAD={}", preload.display()));
        }
        command.arg(&of.program);
        let output = command.output().map_err(|e| format!("timeout: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut last = None;
        for line in text.lines() {
            match line.strip_prefix("# ").map(|rest| rest.split(' ').next().unwrap_or_default()) {
                Some("-1") => return Ok(all),
                Some(number) => {
                    let number = number.parse().map_err(|e| format!("{line}: {e}"))?;
                    all.insert(number, Vec::new());
                    last = Some(number);
                }
                None => {
                    if let Some(call) = last.and_then(|number| all.get_mut(&number)) {
                        call.push(line.to_owned());
                    }
                }
            }
        }
        let last = last.ok_or_else(|| {
            let error = String::from_utf8_lossy(&output.stderr);
            format!("{} from call {first} on: {}: {error}", of.program.display(), output.status)
        })?;
        all.entry(last).or_default().push(format!("ended: {}", output.status));
        first = last + 1;
    }
    Ok(all)
}

/// Returns the calls whose record is wrong, each with a text that shows the expected and the actual record.
fn wrong<'a>(
    of: &'a Recorded,
    preload: Option<&Path>,
) -> Result<Vec<(&'a RecordedCall, String)>, String> {
    let mut wrong = Vec::new();
    for variant in RecordVariant::ALL {
        let said = said(of, variant, preload)?;
        for (number, call) in of.calls.iter().enumerate() {
            let expected = call.expected(of.form, variant);
            let mut got = said.get(&number).cloned().unwrap_or_default();
            // Fortran's runtime library buffers output, so lines of Fortran functions may come before or after the line of C.
            got.sort_by_key(|line| !line.starts_with("c "));
            if got != expected {
                let (expected, got) = (expected.join("\n    "), got.join("\n    "));
                let text = format!(
                    "{} in {:?}, {variant:?}:\n  expected\n    {expected}\n  but\n    {got}",
                    call.title(),
                    of.form
                );
                wrong.push((call, text));
            }
        }
    }
    Ok(wrong)
}

/// Tests every entry of every interface. Then tests that the records show errors that are planted in the entries.
pub fn run(tools: &Tools, tally: &mut Tally) -> Result<(), String> {
    let recorder = recorder(tools)?;
    let mut all = Vec::new();
    for form in FORMS {
        let one = built(tools, form, &recorder)?;
        let wrong = wrong(&one, None)?;
        if let Some((_, first)) = wrong.first() {
            return Err(format!(
                "{} calls are not as the standard says; the first: {first}",
                wrong.len()
            ));
        }
        println!(
            "ok   {form:?}: {} procedures, each called in {} ways",
            one.calls.len(),
            RecordVariant::ALL.len()
        );
        tally.passed += 1;
        all.push(one);
    }
    // The source of the entries is the same for each compiler, so these errors are tested with only one compiler.
    if tools.compiler == "gfortran" { mutations(tools, &all, tally) } else { Ok(()) }
}

/// Plants errors in the entries, and tests that the records of these entries change.
fn mutations(tools: &Tools, all: &[Recorded], tally: &mut Tally) -> Result<(), String> {
    let given = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = given.unwrap_or_else(|| now.map_or(0, |now| now.as_secs()));
    let called: BTreeSet<_> =
        all.iter().flat_map(|one| &one.calls).map(RecordedCall::entry).collect();
    // For comparison, builds a library in the same way, but without errors.
    let (library, _) = mutants(tools, None, seed)?;
    for one in all {
        if let Some((_, text)) = wrong(one, Some(&library))?.first() {
            return Err(format!("entries without a mistake: {text}"));
        }
    }
    let kinds = Mutation::ALL.into_iter().cycle().skip(seed as usize % Mutation::ALL.len());
    for mutation in kinds.take(tools.planted.min(Mutation::ALL.len())) {
        let (library, mut names) = mutants(tools, Some(mutation), seed)?;
        names.retain(|name| called.contains(name));
        let mut noticed = BTreeSet::new();
        for one in all {
            noticed.extend(wrong(one, Some(&library))?.iter().map(|(call, _)| call.entry()));
        }
        let missed: Vec<_> = names.iter().filter(|name| !noticed.contains(*name)).collect();
        println!(
            "{} {mutation:?}: {} of {} wrong entries noticed (WEFT_SEED={seed}){}{}",
            if missed.len() * 100 > names.len() * MISSED { "BAD " } else { "ok  " },
            names.len() - missed.len(),
            names.len(),
            if missed.is_empty() { "" } else { "; not these: " },
            missed.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "),
        );
        if names.len() < 100 || missed.len() * 100 > names.len() * MISSED {
            return Err(format!(
                "{} of {} wrong entries stay unnoticed",
                missed.len(),
                names.len()
            ));
        }
        tally.passed += 1;
    }
    Ok(())
}

/// Builds a library whose entries replace the real entries. Returns its path, and the names of the entries with a planted error.
fn mutants(
    tools: &Tools,
    mutation: Option<Mutation>,
    seed: u64,
) -> Result<(PathBuf, Vec<String>), String> {
    let folder = tools.work.join("record/mutants");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names = Vec::new();
    for (name, text) in sources() {
        let mutation = mutation.filter(|_| ENTRIES.contains(&name));
        let (text, changed) = match mutation {
            Some(mutation) => mutated(&text, mutation, seed),
            None => (text, Vec::new()),
        };
        write(&folder.join(name), &text)?;
        names.extend(changed);
    }
    let library = folder.join("libmutants.so");
    let mut cc = Command::new(tools.compiler);
    cc.args(["-w", "-O0", "-shared", "-fPIC", "-I"]).arg(tools.prefix.join("include"));
    let all = sources().into_iter().map(|(name, _)| name);
    // Leaves out the profiling interface, because no program calls it, and its entries have the same source.
    let taken = |name: &&str| name.ends_with(".c") && !name.starts_with("pmpi");
    cc.args(all.filter(|name| taken(name) || *name == "logicals.f90"));
    quiet(cc.arg("-o").arg(&library).current_dir(&folder))?;
    Ok((library, names))
}
