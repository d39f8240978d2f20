//! Processes of other jobs as peers. The session that connects the jobs provides the addresses of these processes. A connection is
//! made when it is first needed, as within a job. Every such process has all rails of this job.
//!
//! ```text
//!   connect request   of the job: its number, ranks at both ends
//!                     of a link: a hash of the link's secret, the sender's number at the receiver, the receiver's rank in its job
//! ```

use crate::connect::compare;
use crate::job::VerbsProcess;
use crate::verbs::Verbs;
use crate::wire::VerbsAddress;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use weft_fabric::wait::Sleep;
use weft_job_connections::{Connectable, Foreign, Introduced, JobConnections};

impl Verbs {
    /// Returns the networks of the rails, with names that are the same at all processes of the job.
    pub fn networks(&self) -> &[String] {
        &self.core.networks
    }

    /// Returns the number of processes of this job and of connected jobs.
    pub fn processes(&self) -> usize {
        self.core.roster.borrow().iter().count()
    }
}

impl Connectable for Verbs {
    fn ip(&self) -> Option<IpAddr> {
        self.core.ip
    }

    fn dialect(&self) -> String {
        let networks = self.core.networks.join(" and ");
        match self.core.options.rail {
            Some(rail) => format!("verbs, on rail {rail} of {networks}"),
            None => format!("verbs over {networks}"),
        }
    }

    fn alarm(&self) -> Box<dyn Fn() + Send> {
        let (alarm, sleeper) = (self.core.alarm.clone(), self.sleeper.clone());
        Box::new(move || {
            alarm.store(true, Ordering::Release);
            sleeper.ring();
        })
    }

    fn introduction(&self) -> Result<Vec<u8>, String> {
        let core = &self.core;
        let mut said = (core.rank as u32).to_le_bytes().to_vec();
        said.extend(core.roster.borrow().member(core.rank).address.encode());
        Ok(said)
    }

    fn reserve(&self, count: usize, most: usize) -> Option<Vec<usize>> {
        self.core.roster.borrow_mut().reserve(count, most)
    }

    fn put(&self, peer: usize, introduced: &Introduced<'_>) -> Result<(), String> {
        let core = &self.core;
        let &Introduced { whom, said, secret, me } = introduced;
        let address = said.split_first_chunk().and_then(|(rank, address)| {
            Some((u32::from_le_bytes(*rank) as usize, VerbsAddress::decode(address)?))
        });
        let (home, there) = address.ok_or("a process of another job says no address of verbs")?;
        if there.rails.len() < core.rails {
            let (rails, host) = (core.rails, &there.host);
            return Err(format!(
                "a process of another job, on {host}, has not these {rails} rails"
            ));
        }
        let mut roster = core.roster.borrow_mut();
        let own = &roster.member(core.rank).address;
        compare(own, home, &there, core.rails).map_err(|error| error.to_string())?;
        let node = roster.node(whom.job, whom.node);
        roster.put(peer, VerbsProcess::new(there, home), Foreign { secret, me, node });
        self.state.borrow_mut().connections.make_room(roster.len());
        Ok(())
    }

    fn miss_no_more(&self, peer: usize) {
        if let Some(member) = self.core.roster.borrow().get(peer) {
            member.unmissed.set(true);
        }
    }

    fn forget_peer(&self, peer: usize) {
        self.state.borrow_mut().forget(&self.core, peer);
    }

    fn links(&self, use_them: &mut dyn FnMut(&mut JobConnections)) {
        use_them(&mut self.state.borrow_mut().links);
    }
}
