//! This rank's one-sided calls, and the buffers that they use.

use super::EpochRun;
use crate::buffer::{GuardedBuffer, Image};
use crate::ledger::{CallBuffers, plus};
use crate::mpi;
use crate::onesided::{Action, Epoch, Fetched, FlushForm, OneSidedCall};
use crate::run::{Outcome, compare};
use fastrand::Rng;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallSide {
    From,
    To,
}

/// A call with its buffers.
pub struct LiveCall {
    pub action: usize,
    from: Option<(GuardedBuffer, Image)>,
    compare: Option<(GuardedBuffer, Image)>,
    to: Option<(GuardedBuffer, Image)>,
    /// True if the call was made, and has not completed at this side yet.
    issued: bool,
}

impl LiveCall {
    pub fn new(call: CallBuffers, epoch: &Epoch) -> LiveCall {
        let action = &epoch.actions[call.action];
        let make = |piece: &Option<crate::buffer::Piece>, now: Option<Image>| {
            let (piece, now) = (piece.as_ref()?, now?);
            let mut buffer = GuardedBuffer::new(std::slice::from_ref(piece));
            buffer.fill(&now);
            Some((buffer, now))
        };
        let from = make(&action.from, call.from);
        let compare = make(&action.from, call.compare);
        let mut to = make(&action.to, call.to);
        if let (Some((_, image)), Some(after)) = (&mut to, call.after) {
            *image = after;
        }
        LiveCall { action: call.action, from, compare, to, issued: false }
    }

    /// Returns the fetched data, packed.
    pub fn fetched(&mut self, action: &Action) -> Vec<u8> {
        match (&mut self.to, &action.to) {
            (Some((buffer, image)), Some(piece)) => {
                Image { bytes: buffer.bytes().to_vec(), origin: image.origin }.pack(piece)
            }
            _ => Vec::new(),
        }
    }

    /// Overwrites the memory of a completed call, which belongs to the program again.
    fn reuse(&mut self) {
        if let Some((buffer, image)) = self.from.as_mut().filter(|_| self.issued) {
            image.bytes.iter_mut().for_each(|b| *b = !*b);
            buffer.fill(image);
        }
        self.issued = false;
    }

    /// Changes a byte of a buffer whose bytes are all known. Returns its index.
    pub fn spoil(&mut self, action: &Action, rng: &mut Rng) -> Option<usize> {
        let known = action.fetched == Fetched::Known;
        let (buffer, _) = self.to.as_mut().filter(|_| known)?;
        let at = rng.usize(..buffer.bytes().len());
        buffer.bytes()[at] ^= 0x10;
        Some(at)
    }

    pub fn compare(&mut self, action: &Action, side: CallSide) -> Outcome {
        let (held, piece) = match side {
            CallSide::From => (&mut self.from, &action.from),
            CallSide::To => (&mut self.to, &action.to),
        };
        let (Some((buffer, image)), Some(piece)) = (held, piece) else { return Ok(()) };
        if side == CallSide::To && action.fetched != Fetched::Known {
            let found = Image { bytes: buffer.bytes().to_vec(), origin: image.origin };
            image.unpack(piece, &found.pack(piece));
        }
        compare(buffer.bytes(), image, std::slice::from_ref(piece))
            .map_err(|e| format!("buffer {side:?}: {e}"))
    }
}

fn address(held: &mut Option<(GuardedBuffer, Image)>) -> usize {
    held.as_mut().map_or(0, |(buffer, _)| buffer.address())
}

impl EpochRun<'_, '_> {
    /// Makes those of this rank's calls that satisfy `fits`, in their order.
    pub fn calls(&mut self, fits: impl Fn(&Action) -> bool) -> Outcome {
        let epoch = self.epoch;
        for i in 0..self.live.len() {
            let action = &epoch.actions[self.live[i].action];
            if !fits(action) {
                continue;
            }
            self.session.watch.item(self.live[i].action);
            let result = self.call(i, action);
            self.named(i, result)?;
            if !self.pending.is_empty() && self.rng.u32(..4) == 0 {
                self.complete()?;
            }
        }
        Ok(())
    }

    /// Completes all requests. The data that they sent may then be overwritten.
    pub fn complete(&mut self) -> Outcome {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        let mut requests: Vec<usize> = pending.iter().map(|p| p.0).collect();
        let mut done = vec![None; requests.len()];
        let way = if self.session.waitall { 0 } else { self.rng.u32(..9) };
        crate::run::completion::finish(
            self.session.mpi,
            &mut self.rng,
            way,
            &mut requests,
            &mut done,
        )?;
        for (_, live) in pending {
            self.live[live].reuse();
        }
        Ok(())
    }

    fn call(&mut self, i: usize, action: &Action) -> Outcome {
        match action.what {
            OneSidedCall::Flush(flush) => self.flush(flush, action),
            OneSidedCall::Increment => self.increment(i, action),
            _ => {
                let (name, mut args) = self.arguments(i, action)?;
                if action.request {
                    let request = self.mpi().make_c(&name, action.width, &args)?;
                    self.pending.push((request, i));
                    // The operation is not complete before its request is, whatever is flushed.
                    self.live[i].issued = true;
                    return Ok(());
                }
                args.shrink_to_fit();
                self.mpi().call_c(&name, action.width, &args)?;
                let lone = matches!(action.what, OneSidedCall::Put | OneSidedCall::Accumulate(_));
                self.live[i].issued = lone;
                Ok(())
            }
        }
    }

    fn flush(&mut self, flush: FlushForm, action: &Action) -> Outcome {
        let target = action.target.ok_or("a flush of nobody")?;
        let win = self.open.handle;
        match flush {
            FlushForm::One => self.mpi().call("MPI_Win_flush", &[target, win])?,
            FlushForm::LocalOne => self.mpi().call("MPI_Win_flush_local", &[target, win])?,
            FlushForm::All => self.mpi().call("MPI_Win_flush_all", &[win])?,
            FlushForm::LocalAll => self.mpi().call("MPI_Win_flush_local_all", &[win])?,
        }
        // Buffers of flushed operations are free, except those of requests.
        let all = matches!(flush, FlushForm::All | FlushForm::LocalAll);
        for i in 0..self.live.len() {
            let other = &self.epoch.actions[self.live[i].action];
            if !other.request && (all || other.target == Some(target)) {
                self.live[i].reuse();
            }
        }
        Ok(())
    }

    /// Returns the displacement of an operation at its target, in the target's units.
    fn displacement(&self, action: &Action) -> i64 {
        let at = action.place.as_ref().map_or(0, |p| p.at);
        match action.target {
            Some(target) => (self.open.origins[target] + at) / self.window.parts[target].unit,
            None => at,
        }
    }

    /// Returns the function and all its arguments except a request.
    fn arguments(&mut self, i: usize, action: &Action) -> Outcome<(String, Vec<usize>)> {
        let lib = self.session.mpi;
        let live = &mut self.live[i];
        let (from, to) = (address(&mut live.from), address(&mut live.to));
        let against = address(&mut live.compare);
        let place = action.place.as_ref().ok_or("a call without a place")?;
        let rank = action.target.map_or(mpi::PROC_NULL as usize, |t| t);
        let disp = self.displacement(action) as usize;
        let win = self.open.handle;
        let mut side = |piece: &Option<crate::buffer::Piece>| -> Outcome<[usize; 2]> {
            match piece {
                Some(piece) => Ok([piece.count as usize, self.types.get(lib, &piece.ty)?]),
                None => Ok([0, mpi::PACKED]),
            }
        };
        let own = side(&action.from)?;
        let result = side(&action.to)?;
        let [count, ty] = side(&Some(place.clone()))?;
        let op = action.what.op().map(crate::onesided::AccumulateOp::handle);
        let op = op.unwrap_or(0);
        let args = match action.what {
            OneSidedCall::Put => vec![from, own[0], own[1], rank, disp, count, ty, win],
            OneSidedCall::Get => vec![to, result[0], result[1], rank, disp, count, ty, win],
            OneSidedCall::Accumulate(_) => {
                vec![from, own[0], own[1], rank, disp, count, ty, op, win]
            }
            OneSidedCall::GetAccumulate(_) => {
                let [n, own] = own;
                vec![from, n, own, to, result[0], result[1], rank, disp, count, ty, op, win]
            }
            OneSidedCall::FetchAndOp(_) => vec![from, to, ty, rank, disp, op, win],
            OneSidedCall::CompareAndSwap { .. } => vec![from, against, to, ty, rank, disp, win],
            OneSidedCall::Increment | OneSidedCall::Flush(_) => {
                return Err("no call of its own".to_owned());
            }
        };
        let name = action.what.name();
        let name = match action.request {
            true => format!("MPI_R{}", name.to_lowercase()),
            false => format!("MPI_{name}"),
        };
        Ok((name, args))
    }

    /// Adds one to a number under this rank's exclusive lock.
    fn increment(&mut self, i: usize, action: &Action) -> Outcome {
        let disp = self.displacement(action) as usize;
        let target = action.target.ok_or("an increment of nobody")?;
        let (Some(place), Some(piece)) = (&action.place, &action.from) else {
            return Err("an increment of nothing".to_owned());
        };
        let (lib, win) = (self.session.mpi, self.open.handle);
        let ty = self.types.get(lib, &place.ty)?;
        let to = address(&mut self.live[i].to);
        lib.call("MPI_Get", &[to, 1, ty, target, disp, 1, ty, win])?;
        lib.call("MPI_Win_flush", &[target, win])?;
        let more = plus(&self.live[i].fetched(action), 1);
        if let Some((buffer, image)) = &mut self.live[i].from {
            image.unpack(piece, &more);
            buffer.fill(image);
        }
        let from = address(&mut self.live[i].from);
        lib.call("MPI_Put", &[from, 1, ty, target, disp, 1, ty, win])?;
        // This rank's next increment of the number reads it.
        lib.call("MPI_Win_flush", &[target, win])
    }
}
