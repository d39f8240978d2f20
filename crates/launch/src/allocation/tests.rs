//! The documented forms of each batch system's variables.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::*;
use crate::agent_command::AgentWord;

/// Finds an allocation in these variables. A command's output is `output`.
fn found(variables: &[(&str, &str)], output: &str) -> Result<Option<Allocation>, String> {
    let get = |name: &str| {
        let mut values = variables.iter().filter(|(key, _)| *key == name);
        values.next().map(|(_, value)| OsString::from(value))
    };
    let run = |words: &[&str]| {
        assert_eq!(words[0], "flux");
        Ok(output.to_owned())
    };
    find_in(&JobEnvironment { get: &get, run: &run })
}

/// Returns the hosts as `name:slots`, or `name:slots@tag`.
fn hosts(allocation: &Allocation) -> String {
    let word = |AllocatedHost { host, tag }: &AllocatedHost| {
        let tag = tag.as_ref().map(|tag| format!("@{tag}")).unwrap_or_default();
        format!("{}:{}{tag}", host.name, host.slots)
    };
    allocation.hosts.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn expect(variables: &[(&str, &str)], system: &str, names: &str) -> Allocation {
    let allocation = found(variables, "").unwrap().unwrap();
    assert_eq!((allocation.system, hosts(&allocation).as_str()), (system, names), "{variables:?}");
    allocation
}

/// A file that is removed at the end of a test.
struct NodeFile(PathBuf);

impl NodeFile {
    fn new(name: &str, text: &str) -> NodeFile {
        let path = std::env::temp_dir().join(format!("weft-{name}-{}", std::process::id()));
        fs::write(&path, text).unwrap();
        NodeFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for NodeFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn words(allocation: &Allocation) -> Vec<String> {
    let word = |word: &AgentWord| match word {
        AgentWord::Fixed(word) => word.clone(),
        AgentWord::Host(before) => format!("{before}HOST"),
        AgentWord::Tag(before) => format!("{before}TAG"),
    };
    allocation.agent.words.iter().map(word).collect()
}

#[test]
fn slurm() {
    let nodes = ("SLURM_JOB_NODELIST", "n[08-10],login");
    let tasks = ("SLURM_TASKS_PER_NODE", "2(x3),1");
    let processors = ("SLURM_JOB_CPUS_PER_NODE", "8(x3),4");
    let allocation = expect(&[nodes, tasks, processors], "Slurm", "n08:2 n09:2 n10:2 login:1");
    let srun = words(&allocation);
    assert!(srun.starts_with(&["srun".into(), "--nodes=1".into()]), "{srun:?}");
    assert!(srun.contains(&"--overlap".into()) && srun.contains(&"--nodelist=HOST".into()));
    expect(&[nodes, processors], "Slurm", "n08:8 n09:8 n10:8 login:4");
    let each = ("SLURM_CPUS_PER_TASK", "4");
    expect(&[nodes, processors, each], "Slurm", "n08:2 n09:2 n10:2 login:1");
    expect(&[nodes], "Slurm", "n08:1 n09:1 n10:1 login:1");
    expect(&[("SLURM_NODELIST", "n1"), ("SLURM_TASKS_PER_NODE", "3")], "Slurm", "n1:3");
    // In a step of one task, the number of tasks is that of the step.
    let step = ("SLURM_TASKS_PER_NODE", "1");
    expect(&[nodes, step, processors], "Slurm", "n08:8 n09:8 n10:8 login:4");
    let array = [("SLURM_ARRAY_TASK_ID", "3"), ("SLURM_ARRAY_JOB_ID", "7"), nodes, tasks];
    expect(&array, "Slurm", "n08:2 n09:2 n10:2 login:1");
}

#[test]
fn heterogeneous_slurm() {
    let variables = [
        ("SLURM_HET_SIZE", "2"),
        ("SLURM_JOB_NODELIST", "n[1-2]"),
        ("SLURM_TASKS_PER_NODE", "2(x2)"),
        ("SLURM_JOB_NODELIST_HET_GROUP_0", "n[1-2]"),
        ("SLURM_TASKS_PER_NODE_HET_GROUP_0", "2(x2)"),
        ("SLURM_JOB_NODELIST_HET_GROUP_1", "big7"),
        ("SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1", "64"),
        ("SLURM_CPUS_PER_TASK_HET_GROUP_1", "16"),
    ];
    let allocation = expect(&variables, "Slurm", "n1:2@0 n2:2@0 big7:4@1");
    // As under salloc, which sets no variable without the number of a component.
    expect(&variables[3..], "Slurm", "n1:2@0 n2:2@0 big7:4@1");
    assert!(words(&allocation).contains(&"--het-group=TAG".into()));
}

#[test]
fn pbs_and_torque() {
    let file = NodeFile::new("pbs", "n1\nn1\nn2.cluster.org\n\nn1\nn2\n[fd00::2]\nfd00::2\n");
    let variables = [("PBS_NODEFILE", file.path()), ("PBS_ARRAY_INDEX", "2")];
    let allocation = expect(&variables, "PBS", "n1:3 n2.cluster.org:2 fd00::2:2");
    assert_eq!(words(&allocation)[0], "ssh");
    assert!(allocation.find("n1.cluster.org").is_some() && allocation.find("n2").is_some());
    assert!(allocation.find("n2.other.org").is_none());
}

#[test]
fn lsf() {
    let file = NodeFile::new("lsf", "hostA\nhostA\nhostB\n");
    let counts = ("LSB_MCPU_HOSTS", "hostA 2 hostB 4 hostA 1");
    let variables = [("LSB_DJOB_HOSTFILE", file.path()), counts, ("LSB_JOBINDEX", "1")];
    let allocation = expect(&variables, "LSF", "hostA:2 hostB:1");
    assert_eq!(words(&allocation), ["blaunch", "HOST"]);
    expect(&[counts], "LSF", "hostA:3 hostB:4");
}

#[test]
fn grid_engine() {
    let text = "n1.org 4 all.q@n1.org UNDEFINED\nn2.org 2 all.q@n2.org 0,0:0,1\nn1.org 1 big.q@n1 <NULL>\n";
    let file = NodeFile::new("sge", text);
    let variables = [("PE_HOSTFILE", file.path()), ("SGE_TASK_ID", "4")];
    let allocation = expect(&variables, "Grid Engine", "n1.org:5 n2.org:2");
    assert_eq!(words(&allocation), ["qrsh", "-inherit", "-V", "HOST"]);
}

#[test]
fn flux() {
    let set = r#"{"version": 1, "execution": {"R_lite": [
        {"rank": "0-1", "children": {"core": "0-3", "gpu": "0"}},
        {"rank": "7", "children": {"core": "0,2"}}],
        "starttime": 0.0, "expiration": 0.0, "nodelist": ["f[10-11]", "g1"]}}"#;
    let job =
        [("FLUX_URI", "local:///run/flux"), ("FLUX_JOB_ID", "34"), ("SLURM_JOB_NODELIST", "x")];
    let allocation = found(&job, set).unwrap().unwrap();
    assert_eq!(
        (allocation.system, hosts(&allocation).as_str()),
        ("Flux", "f10:4@0 f11:4@1 g1:2@7")
    );
    assert_eq!(allocation.source, "FLUX_JOB_ID and flux job info 34 R");
    assert_eq!(words(&allocation), ["flux", "exec", "--rank=TAG", "--dir=/"]);
    let instance = found(&job[..1], set).unwrap().unwrap();
    assert_eq!(instance.source, "FLUX_URI and flux kvs get resource.R");
    for (set, error) in [
        ("", "EOF"),
        (r#"{"version": 2, "execution": {"R_lite": [], "nodelist": []}}"#, "version 2"),
        (r#"{"version": 1, "execution": {"R_lite": [], "nodelist": ["a"]}}"#, "more hosts"),
        (
            r#"{"version": 1, "execution": {"R_lite": [{"rank": "0-9", "children": {"core": "0"}}], "nodelist": ["a"]}}"#,
            "more brokers",
        ),
    ] {
        let said = found(&job, set).unwrap_err();
        assert!(said.contains(error) && said.contains("FLUX_JOB_ID"), "{set}: {said}");
    }
    assert!(found(&[("FLUX_JOB_ID", "-h")], set).unwrap_err().contains("not the number of a job"));
}

#[test]
fn mpi_operator() {
    let open = NodeFile::new("open", "w-0.w.ns.svc slots=2\nw-1.w.ns.svc slots=2\n");
    let hydra = NodeFile::new("hydra", "w-0.w.ns.svc:3\nw-1.w.ns.svc:1\n");
    let role = ("K_MPI_JOB_ROLE", "launcher");
    let variables = [
        role,
        ("OMPI_MCA_orte_default_hostfile", open.path()),
        ("OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"),
    ];
    let allocation = expect(&variables, "the MPI Operator", "w-0.w.ns.svc:2 w-1.w.ns.svc:2");
    let attempts = ["-o", "ConnectionAttempts=10", "HOST"];
    let ssh: Vec<&str> = crate::agent_command::SSH.into_iter().chain(attempts).collect();
    assert_eq!(words(&allocation), ssh);
    let script = [variables[1], ("OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh : rsh")];
    let allocation = expect(&script, "the MPI Operator", "w-0.w.ns.svc:2 w-1.w.ns.svc:2");
    assert_eq!(words(&allocation), ["/etc/mpi/kubexec.sh", "HOST"]);
    for (file, command, arguments) in [
        (
            "I_MPI_HYDRA_HOST_FILE",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
        ),
        ("HYDRA_HOST_FILE", "HYDRA_LAUNCHER_EXEC", "HYDRA_LAUNCH_EXTRA_ARGS"),
    ] {
        let variables = [(file, hydra.path()), (arguments, "-p 22"), (command, "/bin/rsh")];
        let allocation = expect(&variables, "the MPI Operator", "w-0.w.ns.svc:3 w-1.w.ns.svc:1");
        assert_eq!(words(&allocation), ["/bin/rsh", "-p", "22", "HOST"]);
        let allocation =
            expect(&variables[..2], "the MPI Operator", "w-0.w.ns.svc:3 w-1.w.ns.svc:1");
        assert_eq!(words(&allocation)[4..], ["-p", "22", "HOST"]);
    }
    assert_eq!(found(&[("K_MPI_JOB_ROLE", "worker")], "").unwrap(), None);
}

#[test]
fn nothing_is_found_without_a_batch_system() {
    assert_eq!(found(&[], "").unwrap(), None);
    assert_eq!(found(&[("SLURM_JOB_NODELIST", ""), ("PE_HOSTFILE", "")], "").unwrap(), None);
}

#[test]
fn wrong_values_name_variable_and_remedy() {
    let bad = NodeFile::new("bad", "n1 0 q x\n");
    let odd = NodeFile::new("odd", "ok\n-oProxyCommand=x\n");
    let empty = NodeFile::new("empty", "\n");
    let nodes = ("SLURM_JOB_NODELIST", "n[1-2]");
    let long = "n,".repeat(1000);
    for (variables, variable, why) in [
        (vec![("SLURM_JOB_NODELIST", "n[1-")], "SLURM_JOB_NODELIST", "[ without ]"),
        (
            vec![("SLURM_JOB_NODELIST", "n[0-999999]")],
            "SLURM_JOB_NODELIST",
            "more than 65536 hosts",
        ),
        (vec![("SLURM_JOB_NODELIST", "-x")], "SLURM_JOB_NODELIST", "not the name of a host"),
        (vec![("SLURM_JOB_NODELIST", &*long)], "SLURM_JOB_NODELIST", "a name is empty"),
        (
            vec![nodes, ("SLURM_TASKS_PER_NODE", "2(x")],
            "SLURM_TASKS_PER_NODE",
            "2(x3),1 for 2 hosts",
        ),
        (
            vec![nodes, ("SLURM_TASKS_PER_NODE", "2(x999999999)")],
            "SLURM_TASKS_PER_NODE",
            "for 2 hosts",
        ),
        (vec![nodes, ("SLURM_TASKS_PER_NODE", "0(x2)")], "SLURM_TASKS_PER_NODE", "for 2 hosts"),
        (vec![nodes, ("SLURM_JOB_CPUS_PER_NODE", "x,y")], "SLURM_JOB_CPUS_PER_NODE", "for 2 hosts"),
        (vec![("PBS_NODEFILE", "/no/file")], "PBS_NODEFILE", "No such file"),
        (vec![("PBS_NODEFILE", odd.path())], "PBS_NODEFILE", "line 2: \"-oProxyCommand=x\""),
        (vec![("PBS_NODEFILE", empty.path())], "PBS_NODEFILE", "no host is named"),
        (vec![("LSB_MCPU_HOSTS", "a 1 b")], "LSB_MCPU_HOSTS", "no number of slots follows \"b\""),
        (vec![("LSB_DJOB_HOSTFILE", "/")], "LSB_DJOB_HOSTFILE", "a folder"),
        (vec![("PE_HOSTFILE", bad.path())], "PE_HOSTFILE", "line 1: no number of slots"),
        (vec![("HYDRA_HOST_FILE", "/no/file")], "HYDRA_HOST_FILE", "No such file"),
    ] {
        let error = found(&variables, "").unwrap_err();
        let all = [variable, why, "--hosts or --hostfile names hosts"];
        assert!(all.iter().all(|words| error.contains(words)), "{variables:?}: {error}");
        assert!(error.lines().count() == 1 && error.len() < 300, "{error}");
    }
}
