//! Programs under limits and under tools: killed ranks, full file systems, limits on memory, tools that watch each access, and
//! counted instructions. Also the examples of the book and of the manual pages.

use super::c_programs::{compile, folder};
use super::jobs::JobProgram;
use super::lanes::two_at_a_time;
use super::tally::Tally;
use super::{accesses, book, copies, counts, files, first_calls, instructions, jobs, man, memory};
use crate::root;

/// Number of jobs in which a rank is killed.
const KILLS: usize = 10;

/// Programs of tests/c that this stage runs itself, with other arguments or settings than the comment in each program names.
const PROGRAMS: [&str; 10] = [
    "accesses",
    "copy_model",
    "defined",
    "halo",
    "instructions",
    "many",
    "moves",
    "promised_limit",
    "switches",
    "watched",
];

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    let built = two_at_a_time(&PROGRAMS, |name| {
        let source = root().join("tests/c").join(name).with_extension("c");
        compile(&prefix, &source, &folder()?.join(name))
    });
    built.into_iter().collect::<Result<(), String>>()?;
    book::run(&prefix, tally)?;
    man::run(&prefix, tally)?;
    man::run_examples(&prefix, tally)?;
    let program = JobProgram { path: &folder()?.join("halo"), arguments: &[] };
    jobs::kills(&prefix, program, KILLS)?;
    println!("ok   {KILLS} jobs with a rank killed");
    tally.passed += 1;
    files::run(&prefix, tally)?;
    copies::run(&prefix, tally)?;
    memory::run(&prefix, tally)?;
    instructions::run(&prefix, tally)?;
    counts::run(&prefix, tally)?;
    first_calls::run(&prefix, tally)?;
    accesses::run(&prefix, tally)
}
