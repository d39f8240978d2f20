//! Processes of other jobs as peers. They have only the first rail.

use super::*;
use crate::agree::host;
use crate::job::{OfiProcess, Where};
use crate::sockets;
use std::net::IpAddr;
use weft_job_connections::messages::{add_part, part};
use weft_job_connections::{Connectable, Foreign, Introduced, JobConnections};

impl Ofi {
    /// Returns the number of processes of this job and of linked jobs.
    pub fn processes(&self) -> usize {
        self.core.roster.borrow().iter().count()
    }
}

impl Connectable for Ofi {
    /// Returns the address of this process's endpoint, if the provider uses TCP.
    fn ip(&self) -> Option<IpAddr> {
        self.core.ip(0, self.core.rank).map(|address| address.ip())
    }

    fn dialect(&self) -> String {
        format!("{}, {} credits", self.core.objects.facts.provider, self.core.credits)
    }

    fn alarm(&self) -> Box<dyn Fn() + Send> {
        let (alarm, sleeper) = (self.core.alarm.clone(), self.core.sleeper.clone());
        Box::new(move || {
            alarm.store(true, Ordering::Release);
            sleeper.look_next();
            weft_fabric::wait::Sleep::ring(&*sleeper);
        })
    }

    fn introduction(&self) -> Result<Vec<u8>, String> {
        let name = self.core.objects.name().map_err(|error| error.to_string())?;
        let mut said = Vec::new();
        add_part(&mut said, &name);
        add_part(&mut said, host().as_bytes());
        Ok(said)
    }

    fn reserve(&self, count: usize, most: usize) -> Option<Vec<usize>> {
        self.core.roster.borrow_mut().reserve(count, most)
    }

    fn put(&self, peer: usize, introduced: &Introduced<'_>) -> Result<(), String> {
        let core = &self.core;
        let &Introduced { whom, mut said, secret, me } = introduced;
        let mut next = || part(&mut said).ok_or("a process of another job says no address");
        let (name, host) = (next()?, String::from_utf8_lossy(next()?).into_owned());
        let number = core.objects.insert(name, Some(secret)).map_err(|e| e.to_string())?;
        let address = core.objects.show(name);
        let ip = sockets::address(&core.objects.facts.provider, &address);
        let member = OfiProcess { number, place: Where { host, address, is_apart: false }, ip };
        let mut roster = core.roster.borrow_mut();
        let node = roster.node(whom.job, whom.node);
        roster.put(peer, member, Foreign { secret, me, node });
        self.state.borrow_mut().peers.make_room(roster.len());
        Ok(())
    }

    fn miss_no_more(&self, peer: usize) {
        self.state.borrow_mut().peer(&self.core, peer).unmissed = true;
    }

    fn forget_peer(&self, peer: usize) {
        self.state.borrow_mut().forget(&self.core, peer);
    }

    fn links(&self, use_them: &mut dyn FnMut(&mut JobConnections)) {
        use_them(&mut self.state.borrow_mut().links);
    }
}
