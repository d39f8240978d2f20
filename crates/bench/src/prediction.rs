//! `--prediction`: times that are measured, beside the times that `weft sim run` predicts for a machine file which `weft sim fit` has
//! fitted to this host, or to two hosts and their network.

use super::job::BenchJob;
use super::library::BenchLibrary;
use super::plan::{self, BenchCase};
use super::results::{Results, median};
use super::table::{align, figure, size};
use super::{BenchArgs, Session};
use std::path::Path;
use std::time::Duration;

/// Programs without names on the command line.
const PROGRAMS: [&str; 5] = ["latency", "allreduce", "alltoall", "halo_twosided", "cg"];

/// Default number of rounds.
pub const ROUNDS: u32 = 5;

/// Number of ranks.
const RANKS: usize = 2;

/// Calls in virtual time on one host: all batches take the same time there, so that two suffice. Between hosts the program makes as many calls
/// as on the machine, because a token bucket lets short batches pass faster than long batches.
const CALLS: [&str; 4] = ["--iterations", "400", "--batch", "200"];

/// Maximum difference of a good prediction, as the median over the programs.
const AIM: f64 = 0.15;

/// Time limit of the measurements for the machine file.
const FIT: Duration = Duration::from_secs(300);

/// Returns a case for each program.
pub fn cases(args: &BenchArgs) -> Result<Vec<BenchCase>, String> {
    if args.hosts.is_some_and(|hosts| usize::from(hosts) != RANKS) {
        return Err(format!("--prediction: --hosts {RANKS}, one rank on each"));
    }
    let asked = match args.benchmarks.is_empty() {
        true => PROGRAMS.map(str::to_owned).to_vec(),
        false => args.benchmarks.clone(),
    };
    let mut cases = plan::cases(&asked, args.seconds)?;
    cases.retain(|case| case.ranks == RANKS && !case.loaded && case.about.is_empty());
    Ok(cases)
}

/// Returns the column of the predictions. [`fit`] writes its machine file and sets the path.
pub fn column(weft: &BenchLibrary) -> BenchLibrary {
    let name = "predicted".to_owned();
    BenchLibrary { name, machine: Some("fitted.toml".into()), ..weft.clone() }
}

/// Writes the machine file, and enters its path.
pub fn fit(session: &mut Session) -> Result<(), String> {
    let file = session.out.join("fitted.toml");
    for library in &mut session.libraries {
        let Some(machine) = &mut library.machine else { continue };
        machine.clone_from(&file);
        let mut job = BenchJob::new(&library.tool("weft"));
        job.args(["sim", "fit"]).arg(&file);
        if let Some(hosts) = &session.hosts {
            let (names, agent) = hosts.reach();
            job.args(["--hosts", &names]).env("WEFT_RSH", agent);
        }
        eprintln!("fitting {}", file.display());
        job.run(FIT)?;
    }
    Ok(())
}

/// Returns a run of the program on the simulated machine.
pub fn launch(
    weft: &BenchLibrary,
    machine: &Path,
    program: &Path,
    case: &BenchCase,
    nodes: usize,
) -> BenchJob {
    let mut job = BenchJob::new(&weft.tool("weft"));
    job.args(["sim", "run", "--quiet", "--clocks", "--machine"]).arg(machine);
    job.args(["--ranks", &case.ranks.to_string(), "--nodes", &nodes.to_string()]);
    job.arg(program).args(case.arguments());
    if nodes == 1 {
        job.args(CALLS);
    }
    job
}

/// Formats the table: medians of both columns, their difference, its median in each program, and over the programs.
pub fn render(cases: &[BenchCase], libraries: &[BenchLibrary], results: &Results) -> String {
    let mut head = ["program", "size", "unit"].map(str::to_owned).to_vec();
    head.extend(libraries.iter().map(|library| library.name.clone()));
    head.push("difference".to_owned());
    let mut grid = vec![head];
    let mut of_case = vec![Vec::new(); cases.len()];
    for row in &results.rows {
        let mut line = vec![cases[row.case].title(), size(row.size), row.unit.clone()];
        let medians: Vec<_> = (0..libraries.len()).map(|library| row.median(library)).collect();
        line.extend(medians.iter().map(|median| median.map_or("-".to_owned(), figure)));
        if let [Some(measured), Some(predicted)] = medians[..] {
            let difference = predicted / measured - 1.0;
            of_case[row.case].push(difference.abs());
            line.push(format!("{:+.0} %", 100.0 * difference));
        }
        grid.push(line);
    }
    let mut text = "\n".to_owned();
    align(&grid, &mut text);
    let of_case: Vec<_> = of_case.iter().map(|differences| median(differences)).collect();
    for (case, difference) in cases.iter().zip(&of_case) {
        let difference = difference.map_or("-".to_owned(), |d| format!("{:.0} %", 100.0 * d));
        text += &format!("{}: median difference {difference}\n", case.title());
    }
    let known: Vec<f64> = of_case.into_iter().flatten().collect();
    if let Some(all) = median(&known) {
        let verdict = if all <= AIM { "met" } else { "MISSED" };
        let (all, aim, count) = (100.0 * all, 100.0 * AIM, known.len());
        text += &format!("median over {count} programs: {all:.0} %, aim {aim:.0} %: {verdict}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_on_the_median_over_programs() {
        let case = |program| BenchCase::new(program, RANKS, "8,512".to_owned(), 0.1);
        let cases = [case("latency"), case("allreduce"), case("cg")];
        let weft = BenchLibrary { name: "weft".to_owned(), ..BenchLibrary::default() };
        let libraries = [weft.clone(), column(&weft)];
        let mut results = Results::default();
        for (case, predicted) in [(0, 1.1), (1, 0.8), (2, 2.0)] {
            for (library, value) in [(0, 1.0), (1, predicted)] {
                let line = format!("{{\"size\":8,\"value\":{value},\"unit\":\"us\"}}");
                results.add(case, library, None, &line).unwrap();
            }
        }
        let text = render(&cases, &libraries, &results);
        assert!(text.contains("+10 %") && text.contains("-20 %"), "{text}");
        assert!(text.ends_with("median over 3 programs: 20 %, aim 15 %: MISSED\n"), "{text}");
    }
}
