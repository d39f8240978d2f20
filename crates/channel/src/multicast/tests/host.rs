//! A host without matching, and operations made of multicasts and of messages that are only a head.

use super::Planted;
use crate::multicast::{
    MulticastLimits, MulticastMember, Multicasts, ProgressHost, ReleaseMode, Repair,
};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use weft_fabric::{Counter, Fabric, FabricExt, Fault, GroupId, Head, Sge, Staging, StagingPool};

/// Host that hands over arrived messages. Messages of kind 1 advance `told`.
pub struct Bare<F> {
    pub fabric: F,
    pub multicasts: Multicasts,
    pub told: Counter,
    pub pool: StagingPool,
}

/// Limits whose waits are, in most schedules, longer than mere delays.
pub const LIMITS: MulticastLimits = MulticastLimits {
    least: Duration::from_micros(150),
    most: Duration::from_millis(2),
    window: 4,
    kept: 20_000,
    store: 8 << 10,
    repair: Repair::Unicast,
};

impl<F: Fabric> Bare<F> {
    pub fn new(fabric: F, limits: MulticastLimits) -> Rc<Bare<F>> {
        let told = fabric.counters().allocate();
        let (multicasts, pool) = (Multicasts::new(limits), StagingPool::default());
        Rc::new(Bare { fabric, multicasts, told, pool })
    }

    pub fn progress(&self) -> bool {
        let mut moved = self.fabric.progress();
        while let Some(message) = self.fabric.receive(None) {
            match self.multicasts.handle(&self.fabric, &message) {
                Some(outcome) => outcome.expect("what peers say can be"),
                None => self.fabric.counters().add(self.told, 1),
            }
            self.fabric.release(message);
            moved = true;
        }
        self.multicasts.progress(&self.fabric) | moved
    }

    pub fn buffer(&self, bytes: &[u8]) -> Staging {
        let buffer = self.pool.take(bytes.len());
        buffer.sge().fill(bytes);
        buffer
    }
}

impl<F: Fabric> ProgressHost for Bare<F> {
    type Fabric = F;

    fn fabric(&self) -> &F {
        &self.fabric
    }

    fn multicasts(&self) -> &Multicasts {
        &self.multicasts
    }

    async fn until(&self, counter: Counter, target: u64) -> Result<(), Fault> {
        std::future::poll_fn(|cx| {
            self.progress();
            match self.fabric.poll_any(&[(counter, target)], None, cx) {
                Poll::Ready(outcome) => Poll::Ready(outcome.map(|_| ())),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

/// A member of the group of all ranks, and the number of messages of kind 1 for which it has waited.
pub struct Member<F: Fabric> {
    pub host: Rc<Bare<F>>,
    pub multicast: MulticastMember<Bare<F>>,
    told: std::cell::Cell<u64>,
    planted: Planted,
}

pub const GROUP: GroupId = GroupId(3);

impl<F: Fabric> Member<F> {
    pub fn new(fabric: F, limits: MulticastLimits, planted: Planted) -> Member<F> {
        Member::of(&Bare::new(fabric, limits), 77, planted)
    }

    pub fn of(host: &Rc<Bare<F>>, context: u64, planted: Planted) -> Member<F> {
        let (me, n) = (host.fabric.rank(), host.fabric.size());
        let members = (0..n as u32).collect();
        let multicast =
            MulticastMember::open(host, GROUP, context, members, me).expect("multicast");
        multicast.plant(planted);
        let told = std::cell::Cell::new(host.fabric.counters().value(host.told));
        Member { host: host.clone(), multicast, told, planted }
    }

    pub fn me(&self) -> usize {
        self.multicast.place()
    }

    pub fn size(&self) -> usize {
        self.multicast.size()
    }

    fn check(&self, what: &str, got: Sge, expected: &[u8]) -> Result<(), String> {
        let mut bytes = vec![0; got.len()];
        got.read(&mut bytes);
        match bytes == expected {
            true => Ok(()),
            false => Err(format!("{what}: other bytes than were sent")),
        }
    }

    /// Broadcasts `len` bytes without waiting for acknowledgements.
    pub async fn broadcast(&self, round: u64, root: usize, len: usize) -> Result<(), String> {
        let data = payload(round, root, len);
        let number = self.multicast.numbers(1);
        let fault = |fault: Fault| format!("broadcast {round} from {root}: {fault}");
        if self.me() == root {
            let data = self.host.buffer(&data);
            let sent = self.multicast.send(number, data.sge(), ReleaseMode::Acknowledged).await;
            if self.planted == Planted::DeafRoot {
                self.multicast.heard(number);
            }
            return sent.map_err(fault);
        }
        let into = self.host.pool.take(len);
        let received =
            self.multicast.receive(root, number, into.sge(), ReleaseMode::Acknowledged).await;
        received.map_err(fault)?;
        self.check("broadcast", into.sge(), &data)
    }

    /// Broadcasts `len` bytes. The root goes on when all members have acknowledged the broadcast.
    pub async fn acknowledged(&self, round: u64, root: usize, len: usize) -> Result<(), String> {
        let data = payload(round, root, len);
        let number = self.multicast.numbers(1);
        let fault = |fault: Fault| format!("acknowledged broadcast {round} from {root}: {fault}");
        if self.me() == root {
            let data = self.host.buffer(&data);
            let sent = self.multicast.send(number, data.sge(), ReleaseMode::EachAcknowledged).await;
            return match self.multicast.kept() {
                0 => sent.map_err(fault),
                kept => Err(format!("{kept} multicasts are kept after all acknowledged")),
            };
        }
        let into = self.host.pool.take(len);
        let received =
            self.multicast.receive(root, number, into.sge(), ReleaseMode::EachAcknowledged);
        received.await.map_err(fault)?;
        self.check("acknowledged broadcast", into.sge(), &data)
    }

    /// Gathers a message from each member at the root, which then multicasts `len` bytes.
    pub async fn gather_multicast(
        &self,
        round: u64,
        root: usize,
        len: usize,
    ) -> Result<(), String> {
        let data = payload(round, root, len);
        let number = self.multicast.numbers(1);
        let fault = |fault: Fault| format!("gather {round} to {root}: {fault}");
        if self.me() == root {
            let told = self.told.get() + self.size() as u64 - 1;
            self.told.set(told);
            self.host.until(self.host.told, told).await.map_err(fault)?;
            self.multicast.heard(number);
            let data = self.host.buffer(&data);
            return self
                .multicast
                .send(number, data.sge(), ReleaseMode::Heard)
                .await
                .map_err(fault);
        }
        self.host.fabric.send(root, Head([1, 0, 0]), Sge::EMPTY, None);
        let into = self.host.pool.take(len);
        let received = self.multicast.receive(root, number, into.sge(), ReleaseMode::Heard).await;
        received.map_err(fault)?;
        // The root has heard from all members.
        self.multicast.heard(number);
        self.check("gather and multicast", into.sge(), &data)
    }

    /// Runs an allgather: each member multicasts `len` bytes.
    pub async fn everyone(&self, round: u64, len: usize, at_once: usize) -> Result<(), String> {
        let block = |place| match place == self.me() {
            true => self.host.buffer(&payload(round, place, len)),
            false => self.host.pool.take(len),
        };
        let blocks: Vec<_> = (0..self.size()).map(block).collect();
        let sges: Vec<_> = blocks.iter().map(|block| block.sge()).collect();
        let fault = |fault: Fault| format!("everyone {round}: {fault}");
        self.multicast.everyone(&sges, at_once).await.map_err(fault)?;
        let mut all = blocks.iter().enumerate();
        all.try_for_each(|(r, b)| self.check("everyone", b.sge(), &payload(round, r, len)))
    }

    /// Runs all three kinds of operation in every order, with payloads of no, one and several datagrams.
    pub async fn mixed(&self, rounds: u64) -> Result<(), String> {
        let n = self.size();
        for round in 0..rounds {
            let len = [0, 8, 1, 700, 3000, 64][round as usize % 6];
            let root = round as usize / 3 % n;
            match [0, 2, 1, 2, 2, 0, 1][round as usize % 7] {
                0 => self.broadcast(round, root, len).await?,
                1 => self.gather_multicast(round, root, len).await?,
                _ => self.everyone(round, len, [0, 1, 2][round as usize / 3 % 3]).await?,
            }
        }
        Ok(())
    }

    pub async fn close(self) -> Result<(), String> {
        self.multicast.close().await.map_err(|fault| format!("the end: {fault}"))
    }
}

/// Returns the payload that `root` sends in a round.
pub fn payload(round: u64, root: usize, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(round << 16 | root as u64);
    std::iter::repeat_with(|| rng.u8(..)).take(len).collect()
}
