//! Introduction of each process to the others when two jobs meet.

use crate::engine::Engine;
use crate::network;
use crate::settings::agreement::jobs::JobSettings;
use weft_bootstrap::ports::machine;
use weft_bootstrap::{Fingerprint, nodes};
use weft_fabric::{Fabric, FabricExt};
use weft_job_fabric::JobTransport;
use weft_process::{ForeignPeer, Identity};

/// Introduction of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    pub identity: Identity,
    /// Number of the process's node within the job.
    pub node: u32,
    /// Rank of the process among the processes of its job with which it shares memory.
    pub near: usize,
    /// Name of the machine. All processes that can share memory have the same name here, even if they belong to different jobs.
    pub machine: String,
    /// Hash of the settings that connected jobs must share.
    pub settings: u64,
    /// Hash of the job's arithmetic (`Engine::arithmetic`).
    pub arithmetic: u64,
    /// Hash of the process's model of copies (`Engine::copies`).
    pub copies: u64,
    /// Fingerprint of the process's data formats.
    pub print: Fingerprint,
    /// Transport of the process's job ([`JobTransport::dialect`]).
    pub dialect: String,
}

impl Introduction {
    /// Returns the introduction of this process.
    pub fn own(engine: &Engine, way: JobTransport<'_>, settings: &JobSettings) -> Introduction {
        let fabric = engine.endpoint().fabric();
        let identity = engine.identity(engine.rank() as u32);
        let node = fabric.node(engine.rank()) as u32;
        let machine = match nodes::are_faked() {
            true => format!("{} {:016x} {node}", machine(), identity.job),
            false => machine(),
        };
        let near = fabric.shm().map_or(0, |shm| shm.rank());
        Introduction {
            identity,
            node,
            near,
            machine,
            settings: settings.hash(),
            arithmetic: engine.arithmetic(),
            copies: engine.copies(),
            print: network::fingerprint(),
            dialect: way.dialect(),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let Introduction { node, near, settings, arithmetic, copies, .. } = self;
        let Identity { job, rank } = self.identity;
        let numbers = format!("{job},{rank},{node},{near},{settings},{arithmetic},{copies}");
        [numbers, self.machine.clone(), self.print.encode(), self.dialect.clone()]
            .join("\n")
            .into_bytes()
    }

    pub fn decode(said: &[u8]) -> Option<Introduction> {
        let text = String::from_utf8_lossy(said);
        let mut lines = text.splitn(4, '\n');
        let mut numbers = lines.next()?.split(',').map(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let identity = Identity { job: next()?, rank: next()?.try_into().ok()? };
        Some(Introduction {
            identity,
            node: next()?.try_into().ok()?,
            near: next()?.try_into().ok()?,
            settings: next()?,
            arithmetic: next()?,
            copies: next()?,
            machine: lines.next()?.to_owned(),
            print: Fingerprint::decode(lines.next()?),
            dialect: lines.next()?.to_owned(),
        })
    }

    /// Returns the introduced process as a peer of this process. `number` is the number of the introduced process at this process.
    pub fn as_peer(&self, number: u32) -> ForeignPeer {
        let Introduction { identity, arithmetic, copies, .. } = *self;
        ForeignPeer { number, identity, arithmetic, copies }
    }

    /// Decodes the introductions of all processes.
    pub fn all(said: &[Vec<u8>]) -> Result<Vec<Introduction>, String> {
        let version = "a process of the other job is of another version";
        let one = |said: &Vec<u8>| Introduction::decode(said).ok_or_else(|| version.to_owned());
        said.iter().map(one).collect()
    }

    /// Checks that this process and `other` can exchange data. The error names the difference, with both values.
    pub fn check(&self, other: &Introduction) -> Result<(), String> {
        let formats = self.print.compare(&other.print);
        if !formats.formats.is_empty() {
            return Err(format!(
                "the processes of the other job cannot exchange data with those of this one, since they differ in {formats}; run \
                 both jobs on machines of one kind, with one version of Weft"
            ));
        }
        match other.dialect == self.dialect {
            true => Ok(()),
            false => Err(format!(
                "{} connects the other job, {} this one: both must be alike",
                other.dialect, self.dialect
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduction() -> Introduction {
        Introduction {
            identity: Identity { job: u64::MAX, rank: 7 },
            node: 3,
            near: 1,
            machine: "here and there".to_owned(),
            settings: 5,
            arithmetic: 1 << 63,
            copies: u64::MAX - 1,
            print: network::fingerprint(),
            dialect: "TCP, 64 credits".to_owned(),
        }
    }

    #[test]
    fn what_is_said_comes_back() {
        let own = introduction();
        let said = own.encode();
        let all = Introduction::all(&[said.clone(), said]).unwrap();
        assert_eq!(all, [own.clone(), own.clone()]);
        assert_eq!(own.check(&all[1]), Ok(()));
        for damaged in
            [&b"1,2,3"[..], b"1,2,3,4,5,6,7", b"1,2,3,4,5,6\na\nb\nc", b"-1,2,3,4,5,6,7\na\nb\nc"]
        {
            assert!(Introduction::all(&[damaged.to_vec()]).is_err());
        }
    }

    #[test]
    fn other_networks_and_formats_are_refused_with_both_values() {
        let own = introduction();
        let other = Introduction { dialect: "UDP".to_owned(), ..own.clone() };
        let expected = "UDP connects the other job, TCP, 64 credits this one";
        assert!(own.check(&other).unwrap_err().starts_with(expected));
        let print = own.print.encode().replace("long=64 bits", "long=32 bits");
        let other = Introduction { print: Fingerprint::decode(&print), ..own.clone() };
        let error = own.check(&other).unwrap_err();
        assert!(error.contains("long (32 bits there, 64 bits here)"), "{error}");
    }

    #[test]
    fn another_arithmetic_is_no_reason_to_refuse() {
        // Jobs with different arithmetic may connect. They do not use algorithms in which several ranks compute the same result
        // (`Engine::computes_alike`).
        let own = introduction();
        let line = own.print.encode();
        let (_, formats) = line.split_once('|').unwrap();
        let print = Fingerprint::decode(&format!("0|{formats}"));
        assert_eq!(own.check(&Introduction { print, arithmetic: 0, ..own.clone() }), Ok(()));
    }
}
