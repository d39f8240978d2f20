//! Runs an epoch of a window on this rank: its synchronization, and the comparisons after it.

mod access;

use super::handles::Handles;
use super::windows::{Open, look};
use super::{Outcome, RankSession, compare};
use crate::buffer::{GUARD, Image, Piece};
use crate::ledger::{JointResults, Ledger};
use crate::mpi::{self, Array, Mpi};
use crate::onesided::{Epoch, Fetched, Flavor, LockSync, PostSync, Sync, WindowModel};
use access::{CallSide, LiveCall};
use fastrand::Rng;

/// An epoch under way.
pub struct EpochRun<'s, 'a> {
    pub session: &'s mut RankSession<'a>,
    pub epoch: &'s Epoch,
    pub window: &'s WindowModel,
    pub open: &'s mut Open,
    pub rng: Rng,
    pub types: Handles,
    /// This rank's calls, in order.
    pub live: Vec<LiveCall>,
    pub groups: Vec<JointResults>,
    /// Requests, and the index of the call of each.
    pub pending: Vec<(usize, usize)>,
}

impl RankSession<'_> {
    pub(super) fn epoch(
        &mut self,
        epoch: &Epoch,
        window: &WindowModel,
        open: &mut Open,
        base: u64,
    ) -> Outcome {
        let rng = Rng::with_seed(crate::generate::key(&[base, self.me as u64]));
        let seat = open.seat;
        let mut stores = Vec::new();
        for (i, store) in epoch.stores.iter().enumerate().filter(|(_, s)| s.seat == seat) {
            stores.push((store.piece.clone(), Ledger::stored(store, i, base)));
        }
        let (calls, groups) = open.ledger.walk(epoch, base, seat);
        let live = calls.into_iter().map(|call| LiveCall::new(call, epoch)).collect();
        let types = Handles::default();
        let pending = Vec::new();
        let mut access =
            EpochRun { session: self, epoch, window, open, rng, types, live, groups, pending };
        access.before(stores)?;
        access.synchronized()?;
        access.types.free(access.session.mpi)?;
        access.settle()?;
        access.check()?;
        if epoch.peek { access.peek() } else { Ok(()) }
    }
}

impl EpochRun<'_, '_> {
    pub fn mpi(&self) -> &Mpi {
        self.session.mpi
    }

    fn win(&self, name: &str, args: &[i64]) -> Outcome {
        let mut all: Vec<usize> = args.iter().map(|a| *a as usize).collect();
        all.push(self.open.handle);
        self.mpi().call(name, &all)
    }

    fn barrier(&self) -> Outcome {
        self.mpi().call("MPI_Barrier", &[self.open.comm])
    }

    /// Stores data into this rank's own part, and attaches its memory.
    fn before(&mut self, stores: Vec<(Piece, Vec<u8>)>) -> Outcome {
        let lib = self.session.mpi;
        let epoch = self.epoch;
        let me = self.open.seat;
        if epoch.reattach.contains(&me) {
            self.open.detach(lib, self.window)?;
        }
        let locks = epoch.sync.passive() && !stores.is_empty();
        if locks {
            self.win("MPI_Win_lock", &[mpi::LOCK_EXCLUSIVE, me as i64, 0])?;
        }
        for (piece, data) in stores {
            self.open.store(&piece, &data);
        }
        if locks {
            self.win("MPI_Win_unlock", &[me as i64])?;
        }
        if epoch.reattach.contains(&me) {
            self.open.attach(lib, self.window)?;
        }
        if epoch.sync.passive() || !epoch.reattach.is_empty() {
            self.barrier()?;
        }
        Ok(())
    }

    fn synchronized(&mut self) -> Outcome {
        let epoch = self.epoch;
        let me = self.open.seat;
        match &epoch.sync {
            Sync::Fence(asserts) => {
                for (round, asserts) in asserts[..epoch.rounds].iter().enumerate() {
                    self.win("MPI_Win_fence", &[asserts[me]])?;
                    self.calls(|a| a.round == round)?;
                }
                self.free_early()?;
                self.win("MPI_Win_fence", &[asserts[epoch.rounds][me]])
            }
            Sync::Post(post) => self.post(post),
            Sync::Lock(lock) => {
                self.lock(lock)?;
                self.barrier()
            }
            Sync::LockAll { unchecked } => {
                let assert = if *unchecked { mpi::MODE_NOCHECK } else { 0 };
                self.win("MPI_Win_lock_all", &[assert])?;
                for round in 0..epoch.rounds {
                    self.calls(|a| a.round == round)?;
                    self.complete()?;
                    if round + 1 < epoch.rounds {
                        self.win("MPI_Win_flush_all", &[])?;
                        self.barrier()?;
                        self.win("MPI_Win_sync", &[])?;
                    }
                }
                self.free_early()?;
                self.win("MPI_Win_unlock_all", &[])?;
                self.barrier()
            }
        }
    }

    fn free_early(&mut self) -> Outcome {
        match self.epoch.free_early {
            true => self.types.free(self.session.mpi),
            false => Ok(()),
        }
    }

    fn group(&self, ranks: &[usize]) -> Outcome<usize> {
        let list = Array::ints(ranks.iter().map(|r| *r as i64));
        let args = [self.open.group, ranks.len(), list.address()];
        self.mpi().make("MPI_Group_incl", &args)
    }

    fn post(&mut self, sync: &PostSync) -> Outcome {
        let me = self.open.seat;
        let &PostSync { ref pairs, ref asserts, unchecked, empty } = sync;
        let n = pairs.len();
        let mut origins: Vec<usize> = (0..n).filter(|o| pairs[*o][me]).collect();
        let mut targets: Vec<usize> = (0..n).filter(|t| pairs[me][*t]).collect();
        self.rng.shuffle(&mut origins);
        self.rng.shuffle(&mut targets);
        let posts = empty || !origins.is_empty();
        let starts = empty || !targets.is_empty();
        let mut groups = [self.group(&origins)?, self.group(&targets)?];
        if posts {
            self.win("MPI_Win_post", &[groups[0] as i64, asserts[me]])?;
        }
        if unchecked {
            self.barrier()?;
        }
        if starts {
            let assert = if unchecked { mpi::MODE_NOCHECK } else { 0 };
            self.win("MPI_Win_start", &[groups[1] as i64, assert])?;
            self.calls(|_| true)?;
            self.free_early()?;
            self.win("MPI_Win_complete", &[])?;
        }
        let tests = self.rng.bool();
        let mut flag = 0i32;
        while posts && tests && flag == 0 {
            let at = std::ptr::from_mut(&mut flag) as usize;
            self.mpi().call("MPI_Win_test", &[self.open.handle, at])?;
            flag = std::hint::black_box(flag);
            std::thread::yield_now();
        }
        if posts && !tests {
            self.win("MPI_Win_wait", &[])?;
        }
        groups.iter_mut().try_for_each(|g| self.mpi().free("MPI_Group_free", *g))
    }

    fn lock(&mut self, sync: &LockSync) -> Outcome {
        let targets = &sync.targets[self.open.seat];
        let assert = if sync.unchecked { mpi::MODE_NOCHECK } else { 0 };
        let take = |access: &Self, (target, exclusive): (usize, bool)| {
            let kind = if exclusive { mpi::LOCK_EXCLUSIVE } else { mpi::LOCK_SHARED };
            access.win("MPI_Win_lock", &[kind, target as i64, assert])
        };
        if sync.together {
            targets.iter().try_for_each(|t| take(self, *t))?;
            if !targets.is_empty() {
                self.calls(|_| true)?;
            }
            self.complete()?;
            self.free_early()?;
            let mut order: Vec<usize> = targets.iter().map(|t| t.0).collect();
            self.rng.shuffle(&mut order);
            return order.iter().try_for_each(|t| self.win("MPI_Win_unlock", &[*t as i64]));
        }
        for (i, (target, exclusive)) in targets.iter().enumerate() {
            take(self, (*target, *exclusive))?;
            self.calls(|a| a.target == Some(*target) || a.target.is_none() && i == 0)?;
            self.complete()?;
            self.free_early()?;
            self.win("MPI_Win_unlock", &[*target as i64])?;
        }
        Ok(())
    }

    /// Exchanges between all ranks the places of tickets and races that they found.
    fn settle(&mut self) -> Outcome {
        let sizes: Vec<usize> = self.groups.iter().map(JointResults::len).collect();
        let total: usize = sizes.iter().sum();
        if total == 0 {
            return Ok(());
        }
        let begin = |group: usize| sizes[..group].iter().sum::<usize>();
        let mut tally = vec![0i32; total];
        let mut lost = Vec::new();
        for i in 0..self.live.len() {
            let action = &self.epoch.actions[self.live[i].action];
            let (Fetched::Ticket(group) | Fetched::Race(group)) = action.fetched else { continue };
            let found = self.live[i].fetched(action);
            let place = self.groups[group].place(action.origin, &found);
            let place = self.named(i, place.map_err(|e| format!("fetched {found:02x?}: {e}")))?;
            match place {
                Some(place) => tally[begin(group) + place] += 1,
                None => lost.push((i, group, found)),
            }
        }
        let mut sum = vec![0i32; total];
        let (from, to) = (tally.as_ptr() as usize, sum.as_mut_ptr() as usize);
        let int = crate::basic::ElementType::named("INT").handle();
        let op = crate::reduce::StandardOp::Sum.handle();
        self.mpi().call("MPI_Allreduce", &[from, to, total, int, op, self.open.comm])?;
        let sum = std::hint::black_box(sum);
        for (id, group) in self.groups.iter().enumerate() {
            let part = &sum[begin(id)..begin(id) + group.len()];
            let who = |e: &str| Err(format!("{e}: {part:?}{}", self.of_group(id)));
            match group {
                JointResults::Ticket { .. } if part.iter().any(|n| *n != 1) => {
                    return who("the results of increments are not each number once");
                }
                JointResults::Race { .. } if part.iter().sum::<i32>() != 1 => {
                    return who("not one compare and swap was first");
                }
                JointResults::Race { new, .. } => {
                    let winner = part.iter().position(|n| *n == 1).unwrap_or(0);
                    for (i, _, found) in lost.iter().filter(|l| l.1 == id) {
                        if *found != new[winner] {
                            let text = format!(
                                "fetched {found:02x?}, but the first had set {:02x?}",
                                new[winner]
                            );
                            return self.named(*i, Err(text));
                        }
                    }
                    self.open.ledger.settle(group, winner);
                }
                JointResults::Ticket { .. } => {}
            }
        }
        Ok(())
    }

    /// Describes the calls of a group.
    fn of_group(&self, id: usize) -> String {
        let of = |f: Fetched| [Fetched::Ticket(id), Fetched::Race(id)].contains(&f);
        let all = self.epoch.actions.iter().filter(|a| of(a.fetched));
        all.map(|a| format!("\n  {a}")).collect()
    }

    pub fn named<T>(&self, live: usize, result: Outcome<T>) -> Outcome<T> {
        let i = self.live[live].action;
        result.map_err(|e| format!("action {i}: {e}\n  {}", self.epoch.actions[i]))
    }

    /// Compares this rank's part and all its buffers, byte for byte.
    fn check(&mut self) -> Outcome {
        for i in 0..self.live.len() {
            let session = &mut *self.session;
            let action = &self.epoch.actions[self.live[i].action];
            if session.plant == Some(super::Plant::Fetched)
                && let Some(at) = self.live[i].spoil(action, &mut self.rng)
            {
                session.plant = None;
                eprintln!("planted: action {}, byte {at} of what it fetched", self.live[i].action);
            }
            for side in [CallSide::From, CallSide::To] {
                let result = self.live[i].compare(action, side);
                self.named(i, result)?;
            }
        }
        let id = self.epoch.window;
        let me = self.open.seat;
        // Accesses are over, and all ranks know it. Only this rank reads under its lock.
        let locks = self.epoch.sync.passive();
        if locks {
            self.win("MPI_Win_lock", &[mpi::LOCK_SHARED, me as i64, 0])?;
        }
        let len = self.window.parts[me].len as usize;
        if self.session.plant == Some(super::Plant::Window) && len > 0 {
            self.session.plant = None;
            let at = GUARD + self.rng.usize(..len);
            self.open.spoil(at);
            eprintln!("planted: window {id}, byte {at} of its memory");
        }
        let found = self.open.bytes();
        if locks {
            self.win("MPI_Win_unlock", &[me as i64])?;
        }
        let on_me = self.epoch.actions.iter().enumerate().filter(|a| a.1.target == Some(me));
        let (names, pieces): (Vec<usize>, Vec<Piece>) =
            on_me.filter_map(|(i, a)| Some((i, a.place.clone()?))).unzip();
        compare(&found, &self.open.ledger.parts[me], &pieces)
            .map_err(|e| format!("window {id}: {e}; the pieces are those of actions {names:?}"))
    }

    /// Looks at the next rank's part, if that part is visible.
    fn peek(&mut self) -> Outcome {
        // No part may be locked while it is exposed.
        self.barrier()?;
        self.win("MPI_Win_lock_all", &[0])?;
        self.win("MPI_Win_sync", &[])?;
        self.barrier()?;
        self.win("MPI_Win_sync", &[])?;
        let next = (self.open.seat + 1) % self.window.parts.len();
        let part = &self.window.parts[next];
        let (mut size, mut unit, mut base) = (0i64, 0i32, 0usize);
        let args = [
            self.open.handle,
            next,
            std::ptr::from_mut(&mut size) as usize,
            std::ptr::from_mut(&mut unit) as usize,
            std::ptr::from_mut(&mut base) as usize,
        ];
        self.mpi().call("MPI_Win_shared_query", &args)?;
        let shared = matches!(self.window.flavor, Flavor::Shared { .. });
        if std::hint::black_box(size) > 0 || shared && self.session.one_node == Some(true) {
            if (size, i64::from(unit)) != (part.len, part.unit) {
                return Err(format!(
                    "MPI_Win_shared_query of rank {next} gives {size} bytes in units of {unit}; \
                     expected {} and {}",
                    part.len, part.unit
                ));
            }
            let Image { bytes, .. } = &self.open.ledger.parts[next];
            let found = look(base, part.len as usize);
            let expected = &bytes[GUARD..GUARD + found.len()];
            if let Some(at) = found.iter().zip(expected).position(|(a, b)| a != b) {
                return Err(format!(
                    "byte {at} of rank {next}'s part, as this rank sees it: {:#04x}, expected {:#04x}",
                    found[at], expected[at]
                ));
            }
        }
        self.win("MPI_Win_unlock_all", &[])?;
        self.barrier()
    }
}
