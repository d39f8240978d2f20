//! Errors on a machine that is not set up say what to do, and parts that work are used.
//!
//! Each test runs this program once more, as a user without rights; if a file must be missing, the user runs in a mount namespace
//! of its own.

use std::process::Command;
use weft_bootstrap::threads;
use weft_fabric_testing::adapters;
use weft_fabric_verbs::{Survey, Verbs, VerbsOptions};

/// Name of the variable by which a test starts this program again.
const AGAIN: &str = "WEFT_TEST_VERBS_AGAIN";

/// Prints the survey and the result of connecting a job of one process.
fn lone() {
    match Survey::look(&VerbsOptions::default()) {
        Ok(survey) => println!("survey: {survey:?}"),
        Err(error) => println!("survey: {error}"),
    }
    let mut world = threads(1).pop().unwrap();
    match Verbs::connect(&mut world) {
        Ok(verbs) => println!("connected\n{}", verbs.describe().join("\n")),
        Err(error) => println!("{error}"),
    }
}

/// Runs test `name` of this program once more, as user nobody in its own mount namespace, after the commands `before`.
/// Returns the output. `None`: this is not possible here.
fn stranger(name: &str, before: &str) -> Option<String> {
    // SAFETY: `geteuid` has no preconditions.
    if std::env::var_os("WEFT_TEST_VERBS").is_none() || unsafe { libc::geteuid() } != 0 {
        eprintln!("NOT RUN: {name}: only as root, where WEFT_TEST_VERBS is set");
        return None;
    }
    adapters::nodes()?;
    let script = format!(
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin; mount -t tmpfs none /run || exit 9; {before}\n\
         exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" \"$@\""
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(AGAIN, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{name}: {text}");
    assert!(output.status.success(), "{text}");
    Some(text.into_owned())
}

/// Defines a test of the output that such a user gets: all the words must occur in it.
macro_rules! hears {
    ($name:ident, $before:expr, [$($word:expr),+]) => {
        #[test]
        fn $name() {
            if std::env::var_os(AGAIN).is_some() {
                return lone();
            }
            let Some(text) = stranger(stringify!($name), $before) else { return };
            for word in [$($word),+] {
                assert!(text.contains(word), "{word}, in {text}");
            }
        }
    };
}

hears!(
    a_small_limit_on_locked_memory_has_a_remedy,
    "ulimit -l 64",
    [
        "the limit on locked memory is 65536 bytes, but verbs need at least",
        "`ulimit -l unlimited`",
        "limits.conf",
        "memlock=-1"
    ]
);

hears!(
    rails_are_given_up_where_the_limit_has_no_room,
    "ulimit -l 5000",
    ["connected\n", "rail 0: rxe_va0:1", "rxe_va1:1 is not used: the limit on locked memory"]
);

hears!(
    a_limit_that_may_be_raised_is_raised,
    "ulimit -H -l unlimited; ulimit -S -l 64",
    ["connected\n", "rail 0: rxe_va0:1", "no limit (the limit of 64 KiB is raised at start)"]
);

/// Shell function that replaces the file of an adapter by a file that only root may open.
const DENY: &str = ": >/run/denied && chmod 600 /run/denied || exit 9
    deny() { mount --bind /run/denied /dev/infiniband/$1 || exit 9; }";

hears!(
    missing_permission_names_the_file,
    &format!("{DENY}; for d in $(ls /dev/infiniband | grep uverbs); do deny $d; done"),
    [
        "rxe_va0, rxe_va1, rxe_vb0, rxe_vb1 cannot be opened: no permission on /dev/infiniband/uverbs",
        "(mode 0600, user 0, group 0), and this is user 65534;",
        "chmod 0666 /dev/infiniband/uverbs",
        "docker: --device /dev/infiniband/uverbs"
    ]
);

hears!(
    an_adapter_without_permission_leaves_the_others,
    &format!("{DENY}; deny $(basename $(echo /sys/class/infiniband_verbs/uverbs0))"),
    [
        "connected\n",
        "an adapter is not used: rxe_va0 cannot be opened: no permission on /dev/infiniband/uverbs0",
        "rail 0: rxe_va1:1"
    ]
);

hears!(
    a_container_without_devices_is_told_to_pass_them_in,
    "mount -t tmpfs none /dev/infiniband || exit 9",
    ["there is no file /dev/infiniband/uverbs*", "modprobe ib_uverbs", "--device /dev/infiniband/"]
);

hears!(
    missing_drivers_are_told_from_a_missing_adapter,
    "mount -t tmpfs none /etc/libibverbs.d || exit 9",
    [
        "the kernel has rxe_va0, rxe_va1, rxe_vb0, rxe_vb1 in /sys/class/infiniband",
        "ibverbs-providers"
    ]
);

hears!(
    a_missing_library_is_named_with_its_package,
    "it=$(ldconfig -p | sed -n 's/.*libibverbs.so.1 .*=> //p' | head -1)
     : >/run/empty; mount --bind /run/empty $(readlink -f $it) || exit 9",
    ["libibverbs.so.1 cannot be loaded (", "libibverbs1 and ibverbs-providers", "Red Hat"]
);

/// Checks the output of `weft info` on the cables of the virtual machine.
#[test]
fn a_survey_shows_rails_and_bounds() {
    if std::env::var_os("WEFT_TEST_VERBS").is_none() || adapters::nodes().is_none() {
        eprintln!("NOT RUN: only where WEFT_TEST_VERBS is set");
        return;
    }
    let survey = Survey::look(&VerbsOptions { rails: 2, ..VerbsOptions::default() }).unwrap();
    let rails: Vec<String> = survey.rails.iter().map(|port| port.to_string()).collect();
    let start = ["rxe_va0:1 RoCE active, ", "rxe_va1:1 RoCE active, "];
    assert!(
        rails.len() == 2 && rails.iter().zip(start).all(|(r, s)| r.starts_with(s)),
        "{rails:?}"
    );
    for word in ["Gb/sec", "MTU ", "interface va0", "address 10.77.0.1 (index 1)"] {
        assert!(rails[0].contains(word), "{word}, in {}", rails[0]);
    }
    let unused: Vec<String> = survey.unused.iter().map(|(port, _)| port.name()).collect();
    assert_eq!(unused, ["rxe_vb0:1", "rxe_vb1:1"]);
    assert!(survey.unusable.is_empty(), "{survey:?}");
    let bounds = survey.bounds.join("\n");
    for word in ["2 ranks: up to 2 connections", "4096 ranks: up to ", "locked memory: "] {
        assert!(bounds.contains(word), "{word}, in {bounds}");
    }
}

/// Makes an interface that is down, with an adapter on it, and connects.
#[test]
fn a_port_that_is_down_is_named_and_the_others_are_used() {
    if std::env::var_os("WEFT_TEST_VERBS").is_none() || adapters::nodes().is_none() {
        eprintln!("NOT RUN: only where WEFT_TEST_VERBS is set are adapters made");
        return;
    }
    let shell = |script: &str| {
        let script = format!("PATH=/usr/sbin:/usr/bin:/sbin:/bin; {script}");
        Command::new("sh").args(["-c", &script]).output().unwrap()
    };
    let made = shell(
        "ip link add adown type veth peer name bdown && rdma link add adown0 type rxe netdev adown",
    );
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let connect = |devices: &[&str]| {
        let devices = devices.iter().map(|name| (*name).to_owned()).collect();
        let options = VerbsOptions { devices, ..VerbsOptions::default() };
        let mut world = threads(1).pop().unwrap();
        let result = Verbs::connect_with(&mut world, options);
        result.map(|verbs| verbs.describe().join("\n")).map_err(|error| error.to_string())
    };
    let (alone, among) = (connect(&["adown0"]), connect(&[]));
    shell("rdma link delete adown0; ip link delete adown");
    let down = "adown0:1 (RoCE) is down: bring adown up (`ip link set adown up`)";
    let alone = alone.unwrap_err();
    assert!(alone.starts_with("no port can be used: ") && alone.contains(down), "{alone}");
    let among = among.unwrap();
    println!("{among}");
    assert!(among.contains("adown0:1 is not used: ") && among.contains(down), "{among}");
    assert!(among.contains("rail 0: rxe_va0:1"), "{among}");
}
