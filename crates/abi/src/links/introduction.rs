//! What each process says of itself when two jobs meet.

use super::Way;
use crate::constants::MPI_ERR_PORT;
use crate::error::Error;
use crate::node::{Engine, nodes_are_faked};
use weft_bootstrap::ports::machine;
use weft_fabric::{Fabric, FabricExt};
use weft_process::Identity;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    pub identity: Identity,
    /// Its node, by the numbers of its job.
    pub node: u32,
    /// Its rank among the processes of its job that memory connects it with.
    pub near: usize,
    /// The same for all processes that can share memory, whatever their job.
    pub machine: String,
    /// What its job speaks.
    pub dialect: String,
}

impl Introduction {
    /// Of this process.
    pub fn own(engine: &Engine, way: Way<'_>) -> Introduction {
        let fabric = engine.endpoint().fabric();
        let identity = engine.identity(engine.rank() as u32);
        let node = fabric.node(engine.rank()) as u32;
        let machine = match nodes_are_faked() {
            true => format!("{} {:016x} {node}", machine(), identity.job),
            false => machine(),
        };
        let near = fabric.shm().map_or(0, |shm| shm.rank());
        Introduction { identity, node, near, machine, dialect: way.dialect() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let Introduction { identity: Identity { job, rank }, node, near, machine, dialect } = self;
        format!("{job},{rank},{node},{near},{machine},{dialect}").into_bytes()
    }

    pub fn decode(said: &[u8]) -> Option<Introduction> {
        let text = String::from_utf8_lossy(said);
        let mut parts = text.splitn(6, ',');
        let mut next = || parts.next();
        let identity = Identity { job: next()?.parse().ok()?, rank: next()?.parse().ok()? };
        Some(Introduction {
            identity,
            node: next()?.parse().ok()?,
            near: next()?.parse().ok()?,
            machine: next()?.to_owned(),
            dialect: next()?.to_owned(),
        })
    }

    /// What all have said; an error if somebody speaks otherwise than this process.
    pub fn all(&self, said: &[Vec<u8>]) -> Result<Vec<Introduction>, Error> {
        let one = |said: &Vec<u8>| {
            let version = "a process of the other job is of another version".to_owned();
            let found = Introduction::decode(said).ok_or(version)?;
            match found.dialect == self.dialect {
                true => Ok(found),
                false => Err(format!(
                    "{} connects the other job, {} this one: both must be alike",
                    found.dialect, self.dialect
                )),
            }
        };
        said.iter()
            .map(one)
            .collect::<Result<_, _>>()
            .map_err(|text| Error::new(MPI_ERR_PORT, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_comes_back_and_others_are_refused() {
        let own = Introduction {
            identity: Identity { job: u64::MAX, rank: 7 },
            node: 3,
            near: 1,
            machine: "here and there".to_owned(),
            dialect: "TCP, 64 credits".to_owned(),
        };
        let said = own.encode();
        assert_eq!(own.all(&[said.clone(), said]).unwrap(), [own.clone(), own.clone()]);
        assert!(own.all(&[b"1,2,3".to_vec()]).is_err());
        let other = Introduction { dialect: "UDP".to_owned(), ..own.clone() };
        assert!(own.all(&[other.encode()]).err().unwrap().text().contains("UDP connects"));
    }
}
