//! PMI-2, the wire protocol of Slurm's `srun --mpi=pmi2`: after one line of PMI-1, messages of `key=value;`, each after six
//! characters with its length. Source: Slurm, contribs/pmi2 (the client) and src/plugins/mpi/pmi2 (the server), which takes no
//! `;` in a value.
//!
//! ```text
//!   cmd=init pmi_version=2 pmi_subversion=0            cmd=response_to_init rc=0 ...   (lines)
//!   cmd=fullinit;pmijobid=J;pmirank=R;threaded=FALSE;  cmd=fullinit-response;rc=0;rank=R;size=N;appnum=A;
//!   cmd=info-getjobattr;key=PMI_process_mapping;       cmd=info-getjobattr-response;rc=0;found=TRUE;value=V;
//!   cmd=kvs-put;key=K;value=V;                         cmd=kvs-put-response;rc=0;
//!   cmd=kvs-fence;                                     cmd=kvs-fence-response;rc=0;
//!   cmd=kvs-get;jobid=J;srcid=R;key=K;                 cmd=kvs-get-response;rc=0;found=TRUE;value=V;
//!   cmd=finalize;                                      cmd=finalize-response;rc=0;
//!   cmd=abort;isworld=TRUE;msg=TEXT;                   (none)
//! ```

use crate::BootstrapError;
use crate::channel::{Channel, Fields, plain};
use crate::member::{Facts, LauncherMember};
use crate::nodes;
use crate::text::{Text, Wire};

/// Maximum length of a value (PMI2_MAX_VALLEN) without the NUL, in bytes.
const ROOM: usize = 1023;

/// A process of a job whose launcher speaks PMI-2.
pub(crate) struct Pmi2 {
    channel: Channel,
    job: String,
}

/// Joins the job `job` (PMI_JOBID) as `rank` (PMI_RANK).
pub(crate) fn join(
    mut channel: Channel,
    job: &str,
    rank: usize,
) -> Result<LauncherMember<Text<Pmi2>>, BootstrapError> {
    let doing = "joining the job (PMI-2)";
    channel.send(doing, b"cmd=init pmi_version=2 pmi_subversion=0\n")?;
    let said = channel.line(doing)?;
    let fields = Fields::read(&said, ' ').expect(doing, "response_to_init", &said)?;
    if fields.get("pmi_version") != Some("2") {
        let version = fields.get("pmi_version").unwrap_or("none");
        return Err(BootstrapError(format!("{doing}: the launcher speaks version {version}")));
    }
    let mut pmi = Pmi2 { channel, job: job.to_owned() };
    let fields =
        pmi.ask(doing, "fullinit", &format!("pmijobid={job};pmirank={rank};threaded=FALSE;"))?;
    let number = |key: &str| fields.number(key).and_then(|number| usize::try_from(number).ok());
    let (Some(rank), Some(size)) = (number("rank"), number("size")) else {
        return Err(BootstrapError(format!("{doing}: the launcher sent no rank or no size")));
    };
    let app = number("appnum");
    let mapping = pmi.ask(doing, "info-getjobattr", "key=PMI_process_mapping;")?;
    let placed = found(&mapping).and_then(|text| nodes::from_mapping(text, size));
    // The name consists of Slurm's job and step. Another cluster may have the same job and step.
    let facts = Facts { rank, size, job: format!("slurm-{job}"), app };
    LauncherMember::join(Text(pmi), facts, placed)
}

/// Returns the value of an answer, if the answer has a value.
fn found(fields: &Fields) -> Option<&str> {
    fields.get("value").filter(|_| fields.get("found") != Some("FALSE"))
}

impl Pmi2 {
    fn send(&mut self, doing: &str, name: &str, rest: &str) -> Result<(), BootstrapError> {
        let body = format!("cmd={name};{rest}");
        self.channel.send(doing, format!("{:6}{body}", body.len()).as_bytes())
    }

    fn ask(&mut self, doing: &str, name: &str, rest: &str) -> Result<Fields, BootstrapError> {
        self.send(doing, name, rest)?;
        let length = self.channel.exactly(doing, 6)?;
        let length = length.trim().parse().map_err(|_| {
            BootstrapError(format!("{doing}: the launcher sent {length:?} for a length"))
        })?;
        let said = self.channel.exactly(doing, length)?;
        Fields::read(&said, ';').expect(doing, &format!("{name}-response"), &said)
    }
}

impl Wire for Pmi2 {
    fn room(&self) -> usize {
        ROOM
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootstrapError> {
        let rest = format!("key={key};value={value};");
        self.ask(&format!("put of {key:?}"), "kvs-put", &rest).map(drop)
    }

    fn get(&mut self, rank: usize, key: &str) -> Result<Option<String>, BootstrapError> {
        let rest = format!("jobid={};srcid={rank};key={key};", self.job);
        let fields = self.ask(&format!("get of {key:?}"), "kvs-get", &rest)?;
        Ok(found(&fields).map(str::to_owned))
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        self.ask("fence", "kvs-fence", "").map(drop)
    }

    fn finalize(&mut self) -> Result<(), BootstrapError> {
        self.ask("finalize", "finalize", "").map(drop)
    }

    fn abort(&mut self, _code: i32, message: &str) {
        // This request of Slurm has no exit code. Slurm uses the exit code of this process.
        let _ = self.send("abort", "abort", &format!("isworld=TRUE;msg={};", plain(message)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bootstrap;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread::spawn;

    #[test]
    fn a_job_of_slurm() {
        const TALK: &[(&str, &str)] = &[
            (
                "cmd=fullinit;pmijobid=3.0;pmirank=1;threaded=FALSE;",
                "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=1;size=2;\
                 appnum=-1;debugged=FALSE;pmiverbose=FALSE;",
            ),
            (
                "cmd=info-getjobattr;key=PMI_process_mapping;",
                "cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,1,2));",
            ),
            ("cmd=kvs-put;key=w1-shm;value=1.aGk;", "cmd=kvs-put-response;rc=0;"),
            ("cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;"),
            (
                "cmd=kvs-get;jobid=3.0;srcid=0;key=w0-shm;",
                "cmd=kvs-get-response;rc=0;found=TRUE;value=1.eW8;",
            ),
            (
                "cmd=kvs-get;jobid=3.0;srcid=0;key=w0-none;",
                "cmd=kvs-get-response;rc=0;found=FALSE;",
            ),
            ("cmd=kvs-fence;", "cmd=kvs-fence-response;rc=1;errmsg=failed;"),
        ];
        let (ours, theirs) = UnixStream::pair().unwrap();
        let thread = spawn(move || {
            let mut input = BufReader::new(theirs.try_clone().unwrap());
            let mut line = String::new();
            input.read_line(&mut line).unwrap();
            assert_eq!(line, "cmd=init pmi_version=2 pmi_subversion=0\n");
            let welcome = b"cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n";
            (&theirs).write_all(welcome).unwrap();
            for (question, answer) in TALK {
                let mut length = [0; 6];
                input.read_exact(&mut length).unwrap();
                let length = String::from_utf8_lossy(&length).trim().parse().unwrap();
                let mut body = vec![0; length];
                input.read_exact(&mut body).unwrap();
                assert_eq!(String::from_utf8_lossy(&body), *question);
                // Slurm aligns the length to the left, other launchers to the right.
                (&theirs).write_all(format!("{:<6}{answer}", answer.len()).as_bytes()).unwrap();
            }
        });
        let mut world = join(Channel::new(ours.into()), "3.0", 1).unwrap();
        assert_eq!((world.rank(), world.size(), world.app_number()), (1, 2, None));
        assert_eq!((world.job(), world.nodes()), ("slurm-3.0", vec![0, 0]));
        world.put("shm", b"hi").unwrap();
        world.fence().unwrap();
        assert_eq!(world.get(0, "shm").unwrap(), b"yo");
        assert!(world.get(0, "none").is_err());
        assert!(world.fence().unwrap_err().0.contains("failed"));
        thread.join().unwrap();
    }
}
