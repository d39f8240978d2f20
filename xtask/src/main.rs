//! Project chores, run as `cargo xtask <command>`.

mod clean;
mod completions;
mod demo;
mod documents;
mod files;
mod guards;
mod house;
mod install;
mod layers;
mod manual;
mod needs;
mod net;
mod package;
mod portable;
mod test;

use clap::{Parser, Subcommand};
use package::PackageFormat;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, io, process};

/// Weft's project chores.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fail if a crate depends on a crate above it (ARCHITECTURE.md has the order), names a processor or a measured time that
    /// belongs in a model, or has a static under abi. Also fail if a document names a path that does not exist, a file or a
    /// function is too long, or two files contain the same code.
    Layers,
    /// Check the rules of the house for product code, list violations, or lower their counts.
    House(house::HouseArgs),
    /// Build Weft and make an MPI installation: bin, lib, include, share/doc/weft, share/man.
    Install {
        /// The directory to install into.
        #[arg(long, value_name = "DIR")]
        prefix: std::path::PathBuf,
    },
    /// Make a tar archive of an installation, which works in every folder, in target/dist.
    Tarball(package::PackageArgs),
    /// Make a wheel `weft-mpi` of an installation for pip, in target/dist.
    Wheel(package::PackageArgs),
    /// Make a package of an installation for Debian and Ubuntu, with Debian's alternatives, in target/dist.
    Deb(package::PackageArgs),
    /// Measure Weft against other MPI libraries, with the programs in bench/.
    Bench(Box<weft_bench::BenchArgs>),
    /// Run the tests: the quick set, the rest, or some stages.
    Test(test::TestArgs),
    /// Run the tests that depend on chance for longer: 100 killed jobs, and more.
    Soak(test::SoakArgs),
    /// Replace each MPI function in turn by a function without effect: at least one C program must notice.
    Mutation(test::mutation::MutationArgs),
    /// Build Weft, build mpi4py with it, and run ringtest and the examples on 4 ranks.
    Demo(demo::DemoArgs),
    /// Run a command in a small virtual machine with soft-RoCE: real verbs without RDMA hardware.
    Vm(weft_vm::VmArgs),
    /// Run a command on two to eight hosts made of network namespaces, to test Ethernet without real hosts.
    Net(net::NetArgs),
    /// Inside the namespaces: make the hosts, and run the command.
    #[command(hide = true)]
    NetInside(net::NetArgs),
    /// On a host made of namespaces: run a command on another host.
    #[command(hide = true)]
    NetBeyond {
        /// The arguments of `net-run`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Between hosts made of namespaces: run the tests of programs over Ethernet.
    #[command(hide = true)]
    NetTests(test::network::inside::NetTestsArgs),
    /// Inside the virtual machine: run the commands that the host and weft-vm-run send.
    #[command(hide = true)]
    VmAgent,
    /// Inside the virtual machine: run the tests of programs over verbs.
    #[command(hide = true)]
    VmCluster(test::cluster::inside::VmClusterArgs),
    /// Inside the virtual machine: run the tests of collectives over verbs.
    #[command(hide = true)]
    VmKini(test::verbs::kini::VmKiniArgs),
    /// Inside the virtual machine: run tests of files on the machine's own devices.
    #[command(hide = true)]
    VmFiles(test::file_soak::inside::VmFilesArgs),
    /// Inside the virtual machine: run a command in the other virtual machine, with ssh's arguments.
    #[command(hide = true)]
    VmRun {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

fn main() -> ExitCode {
    if let Err(message) = without_cargos_libraries() {
        eprintln!("xtask: starting again without cargo's LD_LIBRARY_PATH: {message}");
        return ExitCode::FAILURE;
    }
    let result = match Args::parse().command {
        Command::Layers => {
            let rules =
                [layers::check, clean::check, documents::check, guards::check, house::check];
            rules.into_iter().try_for_each(|check| check())
        }
        Command::House(args) => house::run(&args),
        Command::Install { prefix } => install::install(&prefix),
        Command::Tarball(args) => package::run(PackageFormat::Tarball, &args),
        Command::Wheel(args) => package::run(PackageFormat::Wheel, &args),
        Command::Deb(args) => package::run(PackageFormat::Deb, &args),
        Command::Bench(args) => {
            weft_bench::run(*args, |built| if built { Ok(demo::prefix()) } else { demo::install() })
        }
        Command::Test(args) => test::run(&args),
        Command::Soak(args) => test::soak(&args),
        Command::Mutation(args) => test::mutation::run(&args),
        Command::Demo(args) => demo::run(args),
        Command::Vm(args) => return weft_vm::main(&args),
        Command::Net(args) => return net::main(&args),
        Command::NetInside(args) => return net::inside(&args),
        Command::NetBeyond { words } => return net::beyond(&words),
        Command::NetTests(args) => test::network::within(&args),
        Command::VmCluster(args) => test::cluster::within(&args),
        Command::VmKini(args) => test::verbs::kini::inside(&args),
        Command::VmFiles(args) => test::file_soak::inside::run(&args),
        Command::VmAgent => weft_vm::agent::serve(),
        Command::VmRun { args } => return ExitCode::from(weft_vm::client::run(&args)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Starts this program again without the folders that cargo has added to `LD_LIBRARY_PATH`. These folders contain a
/// `libmpi_abi.so.1` that is not installed. Programs started from here must load the installed library instead.
fn without_cargos_libraries() -> io::Result<()> {
    const VARIABLE: &str = "LD_LIBRARY_PATH";
    let own = env::current_exe()?;
    let built = own.parent().unwrap_or(Path::new("/"));
    let all = env::var_os(VARIABLE).unwrap_or_default();
    let (cargos, others): (Vec<PathBuf>, Vec<_>) =
        env::split_paths(&all).partition(|p| p.starts_with(built));
    if cargos.is_empty() {
        return Ok(());
    }
    let mut again = process::Command::new(&own);
    again.args(env::args_os().skip(1)).env_remove(VARIABLE);
    if !others.is_empty() {
        again.env(VARIABLE, env::join_paths(others).map_err(io::Error::other)?);
    }
    Err(again.exec())
}

/// Returns the root of the workspace.
fn root() -> std::path::PathBuf {
    let xtask = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask lies in the workspace").to_owned()
}
