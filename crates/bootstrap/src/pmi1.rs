//! PMI-1, the wire protocol of MPICH's Hydra, Flux, and others: lines of `key=value` with spaces
//! between them. Source: MPICH, src/pmi (the simple PMI client), and the answers of Hydra 5.0.
//!
//! ```text
//!   cmd=init pmi_version=1 pmi_subversion=1      cmd=response_to_init rc=0 pmi_version=1 ...
//!   cmd=get_maxes                                cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024
//!   cmd=get_my_kvsname                           cmd=my_kvsname kvsname=NAME
//!   cmd=put kvsname=NAME key=K value=V           cmd=put_result rc=0
//!   cmd=barrier_in                               cmd=barrier_out
//!   cmd=get kvsname=NAME key=K                   cmd=get_result rc=0 value=V
//!   cmd=finalize                                 cmd=finalize_ack
//!   cmd=abort exitcode=N message=TEXT            (none)
//! ```

use std::time::Duration;

use crate::BootstrapError;
use crate::channel::{Channel, Fields, plain};
use crate::member::{Facts, LauncherMember};
use crate::nodes;
use crate::text::{Text, Wire};

/// Maximum time that a process waits after `abort` for the launcher to end it.
const ABORT_WAIT: Duration = Duration::from_secs(5);
/// Length of a key that the launcher must allow, with the NUL.
const KEY_ROOM: i64 = 64;

/// A process of a job whose launcher speaks PMI-1.
pub(crate) struct Pmi1 {
    channel: Channel,
    space: String,
    room: usize,
}

/// Joins over the inherited socket. Rank and size are in the environment.
pub(crate) fn join(
    channel: Channel,
    rank: usize,
    size: usize,
) -> Result<LauncherMember<Text<Pmi1>>, BootstrapError> {
    let doing = "joining the job (PMI-1)";
    let mut pmi = Pmi1 { channel, space: String::new(), room: 0 };
    let fields = pmi.ask(doing, "cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?;
    if fields.get("pmi_version") != Some("1") {
        let version = fields.get("pmi_version").unwrap_or("none");
        return Err(BootstrapError(format!("{doing}: the launcher speaks version {version}")));
    }
    let fields = pmi.ask(doing, "cmd=get_maxes", "maxes")?;
    let (keys, values) = (fields.number("keylen_max"), fields.number("vallen_max"));
    if keys.is_some_and(|room| room < KEY_ROOM) {
        return Err(BootstrapError(format!(
            "{doing}: the launcher takes keys of {keys:?} bytes, and Weft needs {KEY_ROOM}"
        )));
    }
    // The launcher's limit includes the NUL.
    pmi.room = (values.unwrap_or(256).clamp(32, 1 << 16) - 1) as usize;
    // Launchers without several programs on a command line may answer this request by any text.
    let app = pmi.request(doing, "cmd=get_appnum")?;
    let app = Fields::read(&app, ' ').number("appnum").and_then(|app| usize::try_from(app).ok());
    let fields = pmi.ask(doing, "cmd=get_my_kvsname", "my_kvsname")?;
    pmi.space = fields.get("kvsname").unwrap_or_default().to_owned();
    let mapping = pmi.get(0, "PMI_process_mapping")?;
    let placed = mapping.and_then(|text| nodes::from_mapping(&text, size));
    let facts = Facts { rank, size, job: pmi.space.clone(), app };
    LauncherMember::join(Text(pmi), facts, placed)
}

/// Joins over a connection to PMI_PORT as number `id`. Rank and size come over the connection.
pub(crate) fn join_port(
    mut channel: Channel,
    id: usize,
) -> Result<LauncherMember<Text<Pmi1>>, BootstrapError> {
    let doing = "joining the job (PMI-1 over PMI_PORT)";
    channel.send(doing, format!("cmd=initack pmiid={id}\n").as_bytes())?;
    let said = channel.line(doing)?;
    Fields::read(&said, ' ').expect(doing, "initack", &said)?;
    let (mut rank, mut size) = (None, None);
    // Three more lines follow in this order: `cmd=set` with size, rank, and debug.
    for _ in 0..3 {
        let said = channel.line(doing)?;
        let fields = Fields::read(&said, ' ').expect(doing, "set", &said)?;
        let number = |key| fields.number(key).and_then(|number| usize::try_from(number).ok());
        (size, rank) = (size.or_else(|| number("size")), rank.or_else(|| number("rank")));
    }
    let (Some(rank), Some(size)) = (rank, size) else {
        return Err(BootstrapError(format!("{doing}: the launcher sent no rank or no size")));
    };
    join(channel, rank, size)
}

impl Pmi1 {
    fn request(&mut self, doing: &str, request: &str) -> Result<String, BootstrapError> {
        self.channel.send(doing, format!("{request}\n").as_bytes())?;
        self.channel.line(doing)
    }

    fn ask(&mut self, doing: &str, request: &str, answer: &str) -> Result<Fields, BootstrapError> {
        let said = self.request(doing, request)?;
        Fields::read(&said, ' ').expect(doing, answer, &said)
    }
}

impl Wire for Pmi1 {
    fn room(&self) -> usize {
        self.room
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootstrapError> {
        let request = format!("cmd=put kvsname={} key={key} value={value}", self.space);
        self.ask(&format!("put of {key:?}"), &request, "put_result").map(drop)
    }

    fn get(&mut self, _rank: usize, key: &str) -> Result<Option<String>, BootstrapError> {
        let request = format!("cmd=get kvsname={} key={key}", self.space);
        let said = self.request(&format!("get of {key:?}"), &request)?;
        let fields = Fields::read(&said, ' ');
        if fields.get("cmd") == Some("get_result") && fields.get("rc") != Some("0") {
            return Ok(None);
        }
        // The value may hold spaces (the process mapping of some launchers).
        let value = said.split_once(" value=").map(|(_, value)| value.trim_end().to_owned());
        fields.expect(&format!("get of {key:?}"), "get_result", &said).map(|_| value)
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        self.ask("fence", "cmd=barrier_in", "barrier_out").map(drop)
    }

    fn finalize(&mut self) -> Result<(), BootstrapError> {
        self.ask("finalize", "cmd=finalize", "finalize_ack").map(drop)
    }

    fn abort(&mut self, code: i32, message: &str) {
        let request = format!("cmd=abort exitcode={code} message={}\n", plain(message));
        if self.channel.send("abort", request.as_bytes()).is_ok() {
            self.channel.wait_for_the_end(ABORT_WAIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bootstrap;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::thread::{JoinHandle, spawn};

    /// Starts a launcher for a single process. The launcher answers the requests of `script`, in this order.
    fn launcher(script: &'static [(&str, &str)]) -> (Channel, JoinHandle<()>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let serve = move || {
            let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
            for (question, answer) in script {
                assert_eq!(lines.next().unwrap().unwrap(), *question);
                (&theirs).write_all(answer.as_bytes()).unwrap();
            }
        };
        (Channel::new(ours.into()), spawn(serve))
    }

    const START: [(&str, &str); 4] = [
        (
            "cmd=init pmi_version=1 pmi_subversion=1",
            "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n",
        ),
        ("cmd=get_maxes", "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n"),
        ("cmd=get_appnum", "cmd=appnum rc=0 appnum=1\n"),
        ("cmd=get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=kvs_7\n"),
    ];

    #[test]
    fn a_job_of_hydra() {
        const TALK: &[(&str, &str)] = &[
            START[0],
            START[1],
            START[2],
            START[3],
            (
                "cmd=get kvsname=kvs_7 key=PMI_process_mapping",
                "cmd=get_result rc=0 value=(vector,(0,1,2))\n",
            ),
            ("cmd=put kvsname=kvs_7 key=w1-shm value=1.aGk", "cmd=put_result rc=0\n"),
            ("cmd=barrier_in", "cmd=barrier_out tag=0\n"),
            ("cmd=get kvsname=kvs_7 key=w0-shm", "cmd=get_result rc=0 value=1.eW8\n"),
            ("cmd=get kvsname=kvs_7 key=w0-none", "cmd=get_result rc=1\n"),
            ("cmd=finalize", "cmd=finalize_ack rc=0\n"),
        ];
        let (channel, thread) = launcher(TALK);
        let mut world = join(channel, 1, 2).unwrap();
        assert_eq!((world.rank(), world.size(), world.app_number()), (1, 2, Some(1)));
        assert_eq!((world.job(), world.nodes()), ("kvs_7", vec![0, 0]));
        world.put("shm", b"hi").unwrap();
        assert!(world.put("shm", b"hi").unwrap_err().0.contains("before"));
        // The call fails before the fence, without a request to the launcher.
        assert!(world.get(1, "shm").is_err());
        world.fence().unwrap();
        assert_eq!(world.get(0, "shm").unwrap(), b"yo");
        assert!(world.get(0, "none").unwrap_err().0.contains("rank 0 of 2"));
        assert!(world.get(2, "shm").unwrap_err().0.contains("rank 2 of 2"));
        world.finalized().unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn a_job_over_a_port() {
        const TALK: &[(&str, &str)] = &[
            (
                "cmd=initack pmiid=1",
                "cmd=initack rc=0\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n",
            ),
            START[0],
            START[1],
            START[2],
            START[3],
            (
                "cmd=get kvsname=kvs_7 key=PMI_process_mapping",
                "cmd=get_result rc=0 value=(vector,(0,2,1))\n",
            ),
        ];
        let (channel, thread) = launcher(TALK);
        let world = join_port(channel, 1).unwrap();
        assert_eq!((world.rank(), world.size(), world.nodes()), (1, 2, vec![0, 1]));
        thread.join().unwrap();
    }

    #[test]
    fn another_version_is_refused() {
        const TALK: &[(&str, &str)] = &[(
            "cmd=init pmi_version=1 pmi_subversion=1",
            "cmd=response_to_init rc=0 pmi_version=3 pmi_subversion=0\n",
        )];
        let (channel, thread) = launcher(TALK);
        assert!(join(channel, 0, 1).err().unwrap().0.contains("version 3"));
        thread.join().unwrap();
    }
}
