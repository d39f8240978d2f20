//! Completion of requests, in one of the many ways of MPI, and the matching of receives from any source with messages.

use super::{Outcome, PhaseRun};
use crate::mpi::{self, Array, CStatus, Mpi};
use crate::program::{Dress, Item, Message};
use fastrand::Rng;
use std::collections::BTreeMap;

fn at<T>(value: &mut T) -> usize {
    std::ptr::from_mut(value) as usize
}

impl PhaseRun<'_, '_> {
    pub(super) fn complete(&mut self) -> Outcome {
        let pending = std::mem::take(&mut self.pending);
        let mut requests: Vec<usize> = pending.iter().map(|p| p.request).collect();
        let mut done: Vec<Option<CStatus>> = vec![None; requests.len()];
        if !requests.is_empty() {
            let way = if self.session.waitall { 0 } else { self.rng.u32(..9) };
            finish(self.session.mpi, &mut self.rng, way, &mut requests, &mut done)?;
        }
        for (pending, status) in pending.iter().zip(done) {
            let status = status
                .ok_or_else(|| format!("item {}: its request was never reported", pending.item))?;
            if pending.receives {
                self.live[pending.item].status = Some(status);
            }
        }
        for item in 0..self.phase.items.len() {
            if let Item::Message(m) = &self.phase.items[item]
                && m.recv_dress == Dress::Packed
                && m.to.is_some()
                && self.rank(item) == m.to
            {
                let result = self.unpack(item, m);
                self.named(item, result)?;
            }
        }
        Ok(())
    }

    /// Returns, for each receive from any source, the item whose message it took. Checks all statuses.
    pub(super) fn matched(&mut self) -> Outcome<BTreeMap<usize, usize>> {
        // Messages from one source match receives in the order in which the receives were posted.
        let mut taken = BTreeMap::new();
        let mut used = vec![false; self.phase.items.len()];
        let (phase, comms) = (self.phase, &self.program.comms);
        let rank = |m: &Message, seat: usize| comms[m.comm].rank_of(seat) as i64;
        let message = |i: usize| match &phase.items[i] {
            Item::Message(m) => Some(m),
            _ => None,
        };
        for item in std::mem::take(&mut self.posted) {
            let Some(m) = message(item) else { continue };
            let Some(status) = self.live[item].status else { continue };
            let mut by = item;
            if m.any_source {
                let fits = |i: &usize| {
                    !used[*i]
                        && message(*i).is_some_and(|x| {
                            x.any_source
                                && (x.comm, x.to) == (m.comm, m.to)
                                && x.from.is_some_and(|s| rank(x, s) == i64::from(status.source))
                        })
                };
                by = (0..used.len()).find(fits).ok_or_else(|| {
                    let source = status.source;
                    format!("item {item}: a message from rank {source}, which sent no more\n  {m}")
                })?;
                used[by] = true;
                taken.insert(item, by);
            }
            let sent = message(by).unwrap_or(m);
            let result = self.status(m, sent, status);
            self.named(item, result)?;
        }
        Ok(taken)
    }

    /// Compares a status with the message that was sent.
    pub(super) fn status(&mut self, m: &Message, sent: &Message, mut status: CStatus) -> Outcome {
        let (source, tag) = match sent.from {
            Some(from) => (self.program.comms[m.comm].rank_of(from) as i64, sent.tag),
            None => (mpi::PROC_NULL, mpi::ANY_TAG),
        };
        if (i64::from(status.source), i64::from(status.tag)) != (source, tag) {
            return Err(format!(
                "the status names source {} and tag {}; expected {source} and {tag}",
                status.source, status.tag
            ));
        }
        if [sent.send_dress, m.recv_dress].contains(&Dress::Packed) {
            return Ok(());
        }
        let items = if sent.from.is_some() { sent.send.items as i64 } else { 0 };
        let args = [status.address(), self.datatype(&m.recv.ty)?];
        let elements = self.mpi().count("MPI_Get_elements", m.recv_width, &args)?;
        if elements != items {
            return Err(format!("MPI_Get_elements gives {elements}; expected {items}"));
        }
        let in_one = m.recv.ty.map.len() as i64;
        if m.recv_dress == Dress::Plain {
            let expected = if items % in_one == 0 { items / in_one } else { mpi::UNDEFINED };
            let count = self.mpi().count("MPI_Get_count", m.recv_width, &args)?;
            if count != expected {
                return Err(format!("MPI_Get_count gives {count}; expected {expected}"));
            }
        }
        Ok(())
    }

    fn unpack(&mut self, item: usize, m: &Message) -> Outcome {
        let ty = self.datatype(&m.recv.ty)?;
        let comm = self.comms[m.comm];
        let live = &mut self.live[item];
        let Some(buffer) = &mut live.recv else { return Ok(()) };
        let position = Array::new(m.recv_width, [0]);
        let from = live.packed_recv.as_ptr() as usize;
        let (len, count) = (live.packed_recv.len(), m.recv.count as usize);
        let args = [from, len, position.address(), buffer.address(), count, ty, comm];
        self.session.mpi.call_c("MPI_Unpack", m.recv_width, &args)
    }
}

fn report(done: &mut [Option<CStatus>], index: i64, status: CStatus) -> Outcome {
    let slot = usize::try_from(index).ok().and_then(|i| done.get_mut(i));
    let Some(slot) = slot else {
        return Err(format!("a request of index {index} was reported, of {}", done.len()));
    };
    if slot.replace(status).is_some() {
        return Err(format!("the request of index {index} was reported twice"));
    }
    Ok(())
}

/// Form of a call that completes requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CompletionForm {
    Wait,
    Test,
}

/// Completes all requests in one of nine ways, by the number `way`.
pub fn finish(
    mpi: &Mpi,
    rng: &mut Rng,
    way: u32,
    requests: &mut [usize],
    done: &mut [Option<CStatus>],
) -> Outcome {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    rng.shuffle(&mut order);
    match way {
        0 => all(mpi, CompletionForm::Wait, requests, done),
        1 => all(mpi, CompletionForm::Test, requests, done),
        2 => any(mpi, CompletionForm::Wait, requests, done),
        3 => any(mpi, CompletionForm::Test, requests, done),
        4 => some(mpi, CompletionForm::Wait, requests, done),
        5 => some(mpi, CompletionForm::Test, requests, done),
        6 => waited(mpi, order, requests, done),
        7 => tested(mpi, order, requests, done),
        _ => looked_at(mpi, order, requests, done),
    }
}

/// Completes all requests by MPI_Waitall or MPI_Testall.
fn all(
    mpi: &Mpi,
    form: CompletionForm,
    requests: &mut [usize],
    done: &mut [Option<CStatus>],
) -> Outcome {
    let (n, list) = (requests.len(), requests.as_mut_ptr() as usize);
    let mut statuses = vec![CStatus::default(); n];
    let all = statuses.as_mut_ptr() as usize;
    let mut flag = 0i32;
    if form == CompletionForm::Wait {
        mpi.call("MPI_Waitall", &[n, list, all])?;
    } else {
        loop {
            mpi.call("MPI_Testall", &[n, list, at(&mut flag), all])?;
            if flag != 0 {
                break;
            }
            std::thread::yield_now();
        }
    }
    done.iter_mut().zip(&statuses).for_each(|(d, s)| *d = Some(*s));
    Ok(())
}

/// Completes requests by MPI_Waitany or MPI_Testany.
fn any(
    mpi: &Mpi,
    form: CompletionForm,
    requests: &mut [usize],
    done: &mut [Option<CStatus>],
) -> Outcome {
    let (n, list) = (requests.len(), requests.as_mut_ptr() as usize);
    let (mut flag, mut index, mut status) = (0i32, -1i32, CStatus::default());
    if form == CompletionForm::Wait {
        for _ in 0..n {
            mpi.call("MPI_Waitany", &[n, list, at(&mut index), at(&mut status)])?;
            report(done, i64::from(index), status)?;
        }
        return Ok(());
    }
    while done.iter().any(Option::is_none) {
        let args = [n, list, at(&mut index), at(&mut flag), at(&mut status)];
        mpi.call("MPI_Testany", &args)?;
        if flag != 0 {
            report(done, i64::from(index), status)?;
        } else {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Completes requests by MPI_Waitsome or MPI_Testsome.
fn some(
    mpi: &Mpi,
    form: CompletionForm,
    requests: &mut [usize],
    done: &mut [Option<CStatus>],
) -> Outcome {
    let (n, list) = (requests.len(), requests.as_mut_ptr() as usize);
    let mut statuses = vec![CStatus::default(); n];
    let all = statuses.as_mut_ptr() as usize;
    let mut indices = vec![-1i32; n];
    let some = indices.as_mut_ptr() as usize;
    let mut count = -1i32;
    let name = match form {
        CompletionForm::Wait => "MPI_Waitsome",
        CompletionForm::Test => "MPI_Testsome",
    };
    while done.iter().any(Option::is_none) {
        mpi.call(name, &[n, list, at(&mut count), some, all])?;
        if count < 0 {
            return Err(format!("{name}: no active request, but some were not reported"));
        }
        for i in 0..count as usize {
            report(done, i64::from(indices[i]), statuses[i])?;
        }
        if count == 0 {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Completes requests one after the other by MPI_Wait.
fn waited(
    mpi: &Mpi,
    order: Vec<usize>,
    requests: &mut [usize],
    done: &mut [Option<CStatus>],
) -> Outcome {
    for i in order {
        let mut status = CStatus::default();
        mpi.call("MPI_Wait", &[at(&mut requests[i]), at(&mut status)])?;
        report(done, i as i64, status)?;
    }
    Ok(())
}

/// Completes requests by repeated MPI_Test.
fn tested(
    mpi: &Mpi,
    mut order: Vec<usize>,
    requests: &mut [usize],
    done: &mut [Option<CStatus>],
) -> Outcome {
    let (mut flag, mut status) = (0i32, CStatus::default());
    while let Some(i) = order.pop() {
        mpi.call("MPI_Test", &[at(&mut requests[i]), at(&mut flag), at(&mut status)])?;
        if flag != 0 {
            report(done, i as i64, status)?;
        } else {
            order.insert(0, i);
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Completes requests one after the other: MPI_Request_get_status until the request is complete, then MPI_Wait.
fn looked_at(
    mpi: &Mpi,
    order: Vec<usize>,
    requests: &mut [usize],
    done: &mut [Option<CStatus>],
) -> Outcome {
    let mut status = CStatus::default();
    for i in order {
        let mut flag = 0i32;
        while flag == 0 {
            let args = [requests[i], at(&mut flag), at(&mut status)];
            mpi.call("MPI_Request_get_status", &args)?;
            std::thread::yield_now();
        }
        report(done, i as i64, status)?;
        mpi.call("MPI_Wait", &[at(&mut requests[i]), at(&mut status)])?;
    }
    Ok(())
}
