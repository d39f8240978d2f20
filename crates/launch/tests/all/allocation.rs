//! Jobs without options in the jobs of batch systems. Scripts take the place of the commands that start agents. They write down their
//! arguments, and pass input and output on as the real commands do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::common::{mark, mpiexec, stderr, stdout};

/// Beginning of each script: it writes its name and arguments down. A name that is no option is a host, after which the command line
/// comes.
const RECORD: &str = "#!/bin/sh\nname=$(basename $0)\necho \"$name $*\" >> \"$STAND_IN_LOG\"\n";
/// The command line for a shell comes behind the options and the host.
const SHELL: &str = "while case $1 in -o) shift;; -*);; *) false;; esac; do shift; done\nshift\n\
    exec env -i PATH=\"$PATH\" HOME=\"$HOME\" STAND_IN_HOST=x sh -c \"exec $*\"\n";
/// srun needs no shell. It passes on complete lines only, and variables that would change that must not arrive.
const SRUN: &str = "test -z \"$SLURM_LABELIO$SLURM_UNBUFFEREDIO\" || exit 9\n\
    while case $1 in -*);; *) false;; esac; do shift; done\n\"$@\" | LC_ALL=C sed -u p -n\n";
/// flux exec passes on complete lines up to the first zero byte. The other use of flux prints the resource set.
const FLUX: &str = "test $1 = exec || exec cat \"$STAND_IN_SET\"\nshift\n\
    while case $1 in -*);; *) false;; esac; do shift; done\n\"$@\" | LC_ALL=C sed -u 's/\\x00.*//'\n";

const STAND_INS: &[(&str, &str)] = &[
    ("ssh", SHELL),
    ("blaunch", SHELL),
    ("qrsh", SHELL),
    ("kubexec.sh", SHELL),
    ("srun", SRUN),
    ("flux", FLUX),
];

/// Folder with the scripts and the files of a test.
struct StandIns(PathBuf);

impl Drop for StandIns {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl StandIns {
    fn new(test: &str) -> StandIns {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(mark(test));
        fs::create_dir_all(&folder).unwrap();
        for (name, script) in STAND_INS {
            let path = folder.join(name);
            fs::write(&path, format!("{RECORD}{script}")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        StandIns(folder)
    }

    /// Writes a file. Returns its path.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn command(&self, line: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = mpiexec(line);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.0.display()));
        command.env("STAND_IN_LOG", self.0.join("log")).envs(variables.iter().copied());
        command
    }

    /// Runs `mpiexec`. Returns its output, and the sorted lines of the scripts, where MPIEXEC stands for the path of the program.
    fn run(&self, line: &[&str], variables: &[(&str, &str)]) -> (Output, Vec<String>) {
        let _ = fs::remove_file(self.0.join("log"));
        let output = self.command(line, variables).output().expect("mpiexec runs");
        let log = fs::read_to_string(self.0.join("log")).unwrap_or_default();
        let log = log.replace(env!("CARGO_BIN_EXE_mpiexec"), "MPIEXEC");
        let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
        lines.sort();
        (output, lines)
    }
}

const EXCHANGE: &[&str] = &["RANK", "init", "who", "exchange", "finalize"];
const SRUN_LINE: &str = "srun --nodes=1 --ntasks=1 --nodelist=HOST --overlap --mpi=none \
    --cpu-bind=none --chdir=/ MPIEXEC --agent";

/// Asserts that a job without options runs on all slots, and that these commands have started its agents.
fn expect(stand_ins: &StandIns, variables: &[(&str, &str)], size: usize, agents: &[&str]) {
    let (output, log) = stand_ins.run(EXCHANGE, variables);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{variables:?}");
    let mut ranks: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    ranks.sort();
    let expected: Vec<String> = (0..size).map(|rank| format!("{rank} of {size}")).collect();
    assert_eq!((ranks, log), (expected, agents.iter().map(|&line| line.into()).collect()));
}

#[test]
fn slurm_starts_agents_with_srun() {
    let stand_ins = StandIns::new("slurm");
    let variables = [
        ("SLURM_JOB_NODELIST", "far[1-2]"),
        ("SLURM_TASKS_PER_NODE", "3,2"),
        ("SLURM_LABELIO", "1"),
        ("SLURM_UNBUFFEREDIO", "1"),
    ];
    let [one, two] = ["far1", "far2"].map(|host| SRUN_LINE.replace("HOST", host));
    expect(&stand_ins, &variables, 5, &[&one, &two]);
    // Options count before the allocation.
    let (output, log) = stand_ins.run(&[&["-n", "3"], EXCHANGE].concat(), &variables);
    assert_eq!((stdout(&output).lines().count(), log), (3, vec![one.clone()]));
    let hosts = ["-hosts", "far2,other", "-n", "2"];
    let (output, log) = stand_ins.run(&[&hosts, EXCHANGE].concat(), &variables);
    let ssh = "ssh -x -o BatchMode=yes other MPIEXEC --agent".to_owned();
    assert_eq!((stdout(&output).lines().count(), log), (2, vec![two, ssh]), "{}", stderr(&output));
    let agent = stand_ins.0.join("kubexec.sh").display().to_string();
    let (_, log) = stand_ins.run(&[&["--launch-agent", &agent], EXCHANGE].concat(), &variables);
    assert_eq!(log, ["kubexec.sh far1 MPIEXEC --agent", "kubexec.sh far2 MPIEXEC --agent"]);
}

#[test]
fn components_of_a_slurm_job_are_reached_by_their_number() {
    let variables = [
        ("SLURM_JOB_NODELIST_HET_GROUP_0", "far1"),
        ("SLURM_TASKS_PER_NODE_HET_GROUP_0", "2"),
        ("SLURM_JOB_NODELIST_HET_GROUP_1", "far2"),
        ("SLURM_TASKS_PER_NODE_HET_GROUP_1", "1"),
    ];
    let line = |host: &str, group: &str| {
        let options = format!("--nodelist={host} --het-group={group}");
        SRUN_LINE.replace("--nodelist=HOST", &options)
    };
    let lines = [line("far1", "0"), line("far2", "1")];
    expect(&StandIns::new("het"), &variables, 3, &[&lines[0], &lines[1]]);
}

#[test]
fn a_job_of_this_host_starts_no_agent() {
    let own = nix::unistd::gethostname().unwrap().to_string_lossy().into_owned();
    let long = format!("{}.example.org", own.split('.').next().unwrap());
    let stand_ins = StandIns::new("here");
    let names = if own.contains('.') { vec![own.clone()] } else { vec![own.clone(), long] };
    for name in names {
        let variables = [("SLURM_JOB_NODELIST", name.as_str()), ("SLURM_TASKS_PER_NODE", "3")];
        expect(&stand_ins, &variables, 3, &[]);
    }
    // Of two hosts, this host needs no command.
    let list = format!("{own},far1");
    let variables = [("SLURM_JOB_NODELIST", list.as_str()), ("SLURM_TASKS_PER_NODE", "1(x2)")];
    expect(&stand_ins, &variables, 2, &[&SRUN_LINE.replace("HOST", "far1")]);
}

#[test]
fn pbs_lsf_and_grid_engine_name_hosts_in_files() {
    let stand_ins = StandIns::new("files");
    let pbs = stand_ins.file("pbs", "far1\nfar1\n2001:db8::2\n");
    let lines = [
        "ssh -x -o BatchMode=yes 2001:db8::2 MPIEXEC --agent",
        "ssh -x -o BatchMode=yes far1 MPIEXEC --agent",
    ];
    expect(&stand_ins, &[("PBS_NODEFILE", &pbs)], 3, &lines);
    let lsf = stand_ins.file("lsf", "far1\nfar2\nfar2\n");
    let lines = ["blaunch far1 MPIEXEC --agent", "blaunch far2 MPIEXEC --agent"];
    expect(&stand_ins, &[("LSB_DJOB_HOSTFILE", &lsf)], 3, &lines);
    expect(&stand_ins, &[("LSB_MCPU_HOSTS", "far1 1 far2 1")], 2, &lines);
    let sge = stand_ins.file("sge", "far1.org 2 all.q@far1.org UNDEFINED\nfar2.org 1 q <NULL>\n");
    let lines =
        ["qrsh -inherit -V far1.org MPIEXEC --agent", "qrsh -inherit -V far2.org MPIEXEC --agent"];
    expect(&stand_ins, &[("PE_HOSTFILE", &sge)], 3, &lines);
}

#[test]
fn flux_tells_hosts_and_starts_agents() {
    let stand_ins = StandIns::new("flux");
    let set = r#"{"version":1,"execution":{"R_lite":[{"rank":"3-4","children":{"core":"0-1"}}],
        "starttime":0,"expiration":0,"nodelist":["far[1-2]"]}}"#;
    let set = stand_ins.file("set", set);
    let variables = [("FLUX_URI", "local:///x"), ("STAND_IN_SET", set.as_str())];
    let lines = [
        "flux exec --rank=3 --dir=/ MPIEXEC --agent",
        "flux exec --rank=4 --dir=/ MPIEXEC --agent",
        "flux kvs get resource.R",
    ];
    expect(&stand_ins, &variables, 4, &lines);
}

#[test]
fn the_mpi_operators_variables_are_known() {
    let stand_ins = StandIns::new("operator");
    let open = stand_ins.file("open", "far1 slots=2\nfar2 slots=1\n");
    let script = stand_ins.0.join("kubexec.sh").display().to_string();
    let variables =
        [("OMPI_MCA_orte_default_hostfile", &*open), ("OMPI_MCA_plm_rsh_agent", &*script)];
    let lines = ["kubexec.sh far1 MPIEXEC --agent", "kubexec.sh far2 MPIEXEC --agent"];
    expect(&stand_ins, &variables, 3, &lines);
    let hydra = stand_ins.file("hydra", "far1:1\n");
    let arguments = "-o ConnectionAttempts=10";
    let line = format!("ssh -x -o BatchMode=yes {arguments} far1 MPIEXEC --agent");
    for (file, extra) in [
        ("I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"),
        ("HYDRA_HOST_FILE", "HYDRA_LAUNCH_EXTRA_ARGS"),
    ] {
        expect(&stand_ins, &[(file, &hydra), (extra, arguments)], 1, &[&line]);
    }
}

#[test]
fn bytes_and_failures_come_through_a_batch_system() {
    let stand_ins = StandIns::new("bytes");
    let bytes: Vec<u8> = (0..200_000u32).map(|at| (at.wrapping_mul(at) / 7) as u8).collect();
    let path = stand_ins.0.join("bytes");
    fs::write(&path, &bytes).unwrap();
    let set = r#"{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-1"}}],
        "nodelist":["far1"]}}"#;
    let set = stand_ins.file("set", set);
    for variables in [
        vec![("SLURM_JOB_NODELIST", "far1"), ("SLURM_TASKS_PER_NODE", "2")],
        vec![("FLUX_JOB_ID", "7"), ("STAND_IN_SET", set.as_str())],
    ] {
        let (output, _) = stand_ins.run(&["-n", "1", "cat", path.to_str().unwrap()], &variables);
        assert!(output.stdout == bytes, "{} bytes: {}", output.stdout.len(), stderr(&output));
        let line = ["RANK", "init", "exchange", "only", "1", "abort", "5", "over"];
        let (output, _) = stand_ins.run(&line, &variables);
        let words = "mpiexec: rank 1 (rank) on far1 aborted with code 5: over\n";
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(5), words));
    }
}

#[test]
fn malformed_variables_are_named_with_a_remedy() {
    let stand_ins = StandIns::new("wrong");
    let (output, log) = stand_ins.run(&["true"], &[("SLURM_JOB_NODELIST", "n[0-9999999]")]);
    let words = "mpiexec: the hosts of Slurm: SLURM_JOB_NODELIST=\"n[0-9999999]\": it stands for more than 65536 \
                 hosts; --hosts or --hostfile names hosts instead\n";
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), words));
    assert_eq!(log, Vec::<String>::new());
}
