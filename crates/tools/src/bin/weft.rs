//! `weft`: shows the installation and the machine, and simulates other machines.

use clap::{CommandFactory, Parser, Subcommand};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use weft_io::storage::disk::FileSystemKind;
use weft_tools::algorithms;
use weft_tools::allocation;
use weft_tools::coverage::Coverage;
use weft_tools::explain;
use weft_tools::hosts;
use weft_tools::library::{self, LibraryFacts};
use weft_tools::machine::MachineInfo;
use weft_tools::program;
use weft_tools::search_paths::{self, LoaderPath};
use weft_tools::settings;
use weft_tools::sim;
use weft_tools::topology_table;
use weft_tools::tree::Tree;
use weft_tools::tune;
use weft_tools::variables;
use weft_topology::Sysfs;

/// Weft, an MPI library: what is installed, and what it makes of this machine.
#[derive(Parser)]
#[command(name = "weft", version, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the library, the header, the machine, the hosts that a batch system has given to this job, what copies cost on the
    /// machine, its rails (adapters) and the settings.
    Info {
        /// List every function of MPI 5.0: `+` works, `-` raises MPI_ERR_UNSUPPORTED_OPERATION.
        #[arg(long)]
        coverage: bool,
        /// List the variables of the tool interface (MPI_T).
        #[arg(long, conflicts_with = "coverage")]
        variables: bool,
        /// List the algorithms of collective operations, with what they need and cost.
        #[arg(long, conflicts_with_all = ["coverage", "variables"])]
        algorithms: bool,
        /// Check that a job could run on these hosts: how fast they answer, their clock, version, path and addresses.
        /// All are asked at once, as mpiexec reaches them (ssh, or WEFT_RSH).
        #[arg(long, value_name = "A,B", conflicts_with_all = ["coverage", "variables", "algorithms"])]
        hosts: Option<String>,
        /// Say which MPI library a program wants, which file it gets under mpiexec, and what is missing.
        /// Exit code 1 if a library or a symbol is missing, or if the program wants two MPI libraries.
        #[arg(long, value_name = "NAME", conflicts_with_all = ["coverage", "variables", "algorithms", "hosts"])]
        program: Option<String>,
    },
    /// Print this host's facts, for `weft info --hosts` on another host.
    #[command(hide = true)]
    HostFacts,
    /// Run a communication pattern on a simulated cluster, in virtual time.
    Sim(Box<sim::SimArgs>),
    /// Find the best collective algorithms by running all of them, here or on a simulated machine.
    Tune(Box<tune::TuneArgs>),
    #[command(hide = true)]
    TuneRank(tune::real::TuneRank),
    #[command(hide = true)]
    PingRank(tune::real::ping::PingRank),
    #[command(hide = true)]
    FitRank(sim::fit::rank::FitRank),
    /// Say which algorithm a collective operation would use, at what cost, and why.
    Explain(Box<explain::ExplainArgs>),
    /// Print the commands by which a shell finds this installation's commands and manual pages: eval "$(weft env)".
    Env {
        /// Also put the libraries for programs that were built with MPICH, Intel MPI or Open MPI first, for jobs that start
        /// without mpiexec (srun, flux run).
        #[arg(long)]
        legacy: bool,
    },
    /// Print a shell's completions of this command. An installation has them in share.
    Completions {
        /// Shell that reads the completions.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of this command and of its parts.
    #[command(hide = true)]
    Manual {
        /// Directory of the pages.
        to: std::path::PathBuf,
    },
}

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    let text = match Args::parse().command {
        Command::Manual { to } => manual(&to).map_err(|why| (why, 1)),
        Command::Completions { shell } => Ok(completions(shell)),
        Command::Env { legacy } => {
            let loader = if legacy { LoaderPath::LegacyFirst } else { LoaderPath::Unchanged };
            search_paths::export_lines(loader).map_err(|why| (why, 1))
        }
        Command::HostFacts => hosts::say_facts().map_err(|why| (why, 1)),
        Command::Info { hosts: Some(list), .. } => hosts::info(&list).map_err(|why| (why, 1)),
        Command::Info { program: Some(name), .. } => program::info(&name)
            .map(|report| {
                code = if report.is_complete { code } else { ExitCode::FAILURE };
                report.text
            })
            .map_err(|why| (why, 1)),
        Command::Info { algorithms: true, .. } => Ok(algorithms::list()),
        Command::Info { coverage: true, .. } => list_functions().map_err(|why| (why, 1)),
        Command::Info { variables: true, .. } => list_variables().map_err(|why| (why, 1)),
        Command::Info { .. } => info().map_err(|why| (why, 1)),
        Command::Tune(args) => tune::run(&args).map_err(|why| (why.to_string(), why.code())),
        Command::TuneRank(args) => {
            tune::real::rank(&args).map(|()| String::new()).map_err(|why| (why, 1))
        }
        Command::PingRank(args) => {
            tune::real::ping::rank(&args).map(|()| String::new()).map_err(|why| (why, 1))
        }
        Command::FitRank(args) => {
            sim::fit::rank::run(&args).map(|()| String::new()).map_err(|why| (why, 1))
        }
        Command::Explain(args) => explain::run(&args).map_err(|why| (why.to_string(), why.code())),
        Command::Sim(args) => match &args.action {
            None => sim::run(&args),
            Some(sim::SimAction::Fit(fit)) => sim::fit::run(fit),
            Some(sim::SimAction::Run(run)) => sim::run::run(run).map(|report| {
                // Standard output belongs to the program.
                eprint!("{}", report.text);
                code = ExitCode::from(report.code);
                String::new()
            }),
        }
        .map_err(|why| (why.to_string(), why.code())),
    };
    let text = match text {
        Ok(text) => text,
        Err((why, code)) => {
            eprintln!("weft: {why}");
            return ExitCode::from(code);
        }
    };
    match io::stdout().write_all(text.as_bytes()) {
        // A closed pipe, as in `weft info | head`, is not a failure.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("weft: standard output: {e}");
            ExitCode::FAILURE
        }
        _ => code,
    }
}

/// Writes pages in the form of man(1), a page for each command.
fn manual(to: &std::path::Path) -> Result<String, String> {
    let pages = clap_mangen::generate_to(Args::command(), to);
    pages.map(|()| String::new()).map_err(|e| format!("{}: {e}", to.display()))
}

/// Returns the completions of this command, without its hidden parts, which only other commands call.
fn completions(shell: clap_complete::Shell) -> String {
    let args = Args::command();
    let shown = args.get_subcommands().filter(|part| !part.is_hide_set()).cloned();
    let mut command = clap::Command::new("weft").version(env!("CARGO_PKG_VERSION"));
    command = command.subcommands(shown.collect::<Vec<_>>());
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "weft", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn list_functions() -> Result<String, String> {
    let about = library::ask(&Tree::of_this_program()?.library())?;
    let coverage = Coverage::parse(&about.coverage)?;
    Ok(format!("# {}: {}\n{}", about.version, coverage.summary(), coverage.list()))
}

fn list_variables() -> Result<String, String> {
    let about = library::ask(&Tree::of_this_program()?.library())?;
    Ok(variables::table(&variables::parse(&about.variables)?))
}

fn info() -> Result<String, String> {
    let tree = Tree::of_this_program()?;
    let about = library::ask(&tree.library())?;
    let coverage = Coverage::parse(&about.coverage)?;
    let mut out = String::new();
    describe_library(&mut out, &tree, &about, &coverage);
    describe_machine(&mut out, &MachineInfo::look());
    describe_allocation(&mut out);
    describe_copies(&mut out, &library::copies(&tree.library())?);
    describe_rails(&mut out, &library::rails(&tree.library())?);
    describe_files(&mut out);
    out.push_str("\ncollective algorithms\n");
    line(&mut out, "map", explain::setting());
    line(&mut out, "more", "weft info --algorithms, weft explain, weft tune");
    describe_settings(&mut out, &about)?;
    Ok(out)
}

fn line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    writeln!(out, "  {name:<10} {value}").expect("a string grows");
}

fn describe_library(out: &mut String, tree: &Tree, about: &LibraryFacts, coverage: &Coverage) {
    let (major, minor) = about.abi;
    writeln!(out, "{}\n\nlibrary", about.version).expect("a string grows");
    line(out, "path", tree.library().display());
    line(out, "header", tree.include.join("mpi.h").display());
    line(out, "ABI", format_args!("{major}.{minor}"));
    line(out, "works", format_args!("{}; names: weft info --coverage", coverage.summary()));
}

fn describe_machine(out: &mut String, machine: &MachineInfo) {
    out.push_str("\nmachine\n");
    if let Some(processor) = &machine.processor {
        line(out, "processor", processor);
    }
    line(out, "cores", format_args!("{} online", machine.online));
    line(out, "topology", topology_table::summary(&machine.topology));
    out.push_str(&topology_table::table(&machine.topology, &Sysfs::here()));
    if let Some(list) = &machine.affinity {
        line(out, "affinity", format_args!("{} allowed: {list}", machine.allowed));
    }
    match machine.cgroup_limit {
        Some(limit) => line(out, "cgroup", format_args!("at most {limit:.2} cores of time")),
        None => line(out, "cgroup", "no limit on processor time"),
    }
    let ranks = machine.cores_for_ranks();
    let word = if ranks == 1 { "rank has a core" } else { "ranks have a core each" };
    line(out, "ranks", format_args!("up to {ranks} {word}; more take turns"));
    if let Some(bytes) = machine.memory {
        line(out, "memory", format_args!("{:.1} GiB", bytes as f64 / f64::powi(2.0, 30)));
    }
    if let Some(kernel) = &machine.kernel {
        line(out, "kernel", format_args!("Linux {kernel}"));
    }
}

/// Describes the hosts on which `mpiexec` would start processes, and the command that would reach them.
fn describe_allocation(out: &mut String) {
    out.push_str("\nbatch system: mpiexec without options\n");
    for each in allocation::lines() {
        writeln!(out, "  {each}").expect("a string grows");
    }
}

/// Describes the costs of moving bytes between ranks of this machine.
fn describe_copies(out: &mut String, lines: &str) {
    out.push_str("\ncopies between ranks of this machine: what is chosen by\n");
    for each in lines.lines() {
        let mut fields = each.splitn(3, '\t');
        let mut next = || fields.next().unwrap_or_default();
        match (next(), next(), next()) {
            (name, "", text) => line(out, name, text),
            (name, number, meaning) => {
                writeln!(out, "  {name:<23} {number:>15}  {meaning}").expect("a string grows");
            }
        }
    }
}

/// Describes the rails that connect nodes. Ranks of one node always use shared memory.
fn describe_rails(out: &mut String, lines: &str) {
    out.push_str("\nrails between nodes (within one, shared memory); where not all have adapters, libfabric (ofi)\n");
    for each in lines.lines() {
        let (word, text) = each.split_once('\t').unwrap_or(("", each));
        line(out, word, text);
    }
}

/// Describes the access to files.
fn describe_files(out: &mut String) {
    let kind = FileSystemKind::of(Path::new("."));
    out.push_str("\nparallel files\n");
    line(out, "by", "pread and pwrite");
    let beside = match weft_io::uring::available() {
        _ if std::env::var("WEFT_IO_URING").is_ok_and(|value| value == "0") => {
            "up to 4 threads (io_uring is not wanted: WEFT_IO_URING=0)".to_owned()
        }
        Ok(()) => "io_uring; what needs locks or packing, up to 4 threads".to_owned(),
        Err(error) => format!("up to 4 threads (the system allows no io_uring: {error})"),
    };
    line(out, "beside", format_args!("the program: {beside}"));
    line(out, "here", format_args!("{}: {}", kind.name(), kind.advice()));
    line(out, "more", "weft explain file_write_all -n 8 --bytes 1048576 --piece 8");
}

fn describe_settings(out: &mut String, about: &LibraryFacts) -> Result<(), String> {
    let all = settings::all(&about.settings)?;
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let strangers = settings::strangers(&all, names);
    out.push_str("\nsettings\n");
    out.push_str(&settings::table(&all, &strangers));
    Ok(())
}
