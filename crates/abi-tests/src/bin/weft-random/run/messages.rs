//! This rank's part of a message.

use super::{Outcome, PendingRequest, PhaseRun, immediate};
use crate::buffer::Piece;
use crate::comm::CommModel;
use crate::mpi::{self, Array, CStatus, CountWidth};
use crate::oracle::BufferSide;
use crate::program::{CallForm, Dress, Item, Message, MessageMode, ProbeForm, Shift, Taking};

/// Returns a seat's rank, or MPI_PROC_NULL.
fn peer(comm: &CommModel, seat: Option<usize>) -> usize {
    seat.map_or(mpi::PROC_NULL as usize, |s| comm.rank_of(s))
}

fn at<T>(value: &mut T) -> usize {
    std::ptr::from_mut(value) as usize
}

impl PhaseRun<'_, '_> {
    /// Attaches memory for buffered sends, if this rank has any.
    pub(super) fn attach(&mut self) -> Outcome<bool> {
        let mut size = 0;
        for item in 0..self.phase.items.len() {
            let Item::Message(m) = &self.phase.items[item] else { continue };
            if m.mode == MessageMode::Buffered && m.from.is_some() && self.rank(item) == m.from {
                let ty = self.datatype(&m.send.ty)?;
                let args = [m.send.count as usize, ty, self.comms[m.comm]];
                let one = self.mpi().count("MPI_Pack_size", CountWidth::Int, &args)?;
                // A packed message is packed twice. The room of a round may not be free again in the next round.
                size += self.phase.rounds as i64 * (2 * one + mpi::BSEND_OVERHEAD + 64);
            }
        }
        if size == 0 {
            return Ok(false);
        }
        self.attached = vec![0; (size as usize).div_ceil(8)];
        let args = [self.attached.as_mut_ptr() as usize, self.attached.len() * 8];
        let width = CountWidth::any(&mut self.rng);
        self.mpi().call_c("MPI_Buffer_attach", width, &args)?;
        Ok(true)
    }

    /// Detaches the memory, when all of it is sent.
    pub(super) fn detach(&mut self) -> Outcome {
        let width = CountWidth::any(&mut self.rng);
        let (mut address, mut size) = (0usize, 0i64);
        self.mpi().call_c("MPI_Buffer_detach", width, &[at(&mut address), at(&mut size)])?;
        let size = std::hint::black_box(if width == CountWidth::Large {
            size
        } else {
            i64::from(size as i32)
        });
        let found = (std::hint::black_box(address), size as usize);
        let given = (self.attached.as_ptr() as usize, self.attached.len() * 8);
        if found == given {
            return Ok(());
        }
        Err(format!("MPI_Buffer_detach gives address and size {found:?}; attached were {given:?}"))
    }

    pub(super) fn message(&mut self, item: usize, m: &Message, rank: usize) -> Outcome {
        let (sends, receives) = (m.from == Some(rank), m.to == Some(rank) && !m.early);
        let first = receives && immediate(m.taking);
        if first {
            self.receive(item, m)?;
        }
        if sends {
            self.send(item, m)?;
        }
        if receives && !first { self.receive(item, m) } else { Ok(()) }
    }

    /// Returns address, count and datatype as the call gets them.
    fn described(
        &mut self,
        item: usize,
        side: BufferSide,
        piece: &Piece,
        dress: Dress,
    ) -> Outcome<[usize; 3]> {
        let ty = self.datatype(&piece.ty)?;
        let live = &mut self.live[item];
        let buffer = if side == BufferSide::Send { &mut live.send } else { &mut live.recv };
        let address = buffer.as_mut().map_or(0, |b| b.address());
        let count = piece.count as usize;
        if dress != Dress::Absolute {
            return Ok([address, count, ty]);
        }
        let (blocks, places) =
            (Array::ints([piece.count]), Array::new(CountWidth::Large, [address as i64]));
        let args = [1, blocks.address(), places.address(), ty];
        let mut made = self.mpi().make("MPI_Type_create_hindexed", &args)?;
        self.mpi().call("MPI_Type_commit", &[at(&mut made)])?;
        self.absolute.push(made);
        Ok([0, 1, made])
    }

    fn send(&mut self, item: usize, m: &Message) -> Outcome {
        if let Some(request) = self.live[item].persistent[0] {
            return self.start(PendingRequest { request, item, receives: false });
        }
        let comm = self.comms[m.comm];
        let mut data = self.described(item, BufferSide::Send, &m.send, m.send_dress)?;
        if m.send_dress == Dress::Packed {
            data = self.pack(item, m, data, comm)?;
        }
        let letter = match m.mode {
            MessageMode::Standard => "",
            MessageMode::Synchronous => "s",
            MessageMode::Buffered => "b",
            MessageMode::Ready => "r",
        };
        let [address, count, ty] = data;
        let args =
            [address, count, ty, peer(&self.program.comms[m.comm], m.to), m.tag as usize, comm];
        match m.form {
            CallForm::Blocking => {
                let name = capital(&format!("{letter}send"));
                self.mpi().call_c(&name, m.send_width, &args)
            }
            CallForm::Immediate => {
                let name = capital(&format!("i{letter}send"));
                let request = self.mpi().make_c(&name, m.send_width, &args)?;
                self.pending.push(PendingRequest { request, item, receives: false });
                Ok(())
            }
            CallForm::Persistent => {
                let name = capital(&format!("{letter}send_init"));
                let request = self.mpi().make_c(&name, m.send_width, &args)?;
                self.live[item].persistent[0] = Some(request);
                self.start(PendingRequest { request, item, receives: false })
            }
        }
    }

    /// Packs the data to send, sometimes with MPI_Pack's form with large counts.
    fn pack(
        &mut self,
        item: usize,
        m: &Message,
        data: [usize; 3],
        comm: usize,
    ) -> Outcome<[usize; 3]> {
        let [address, count, ty] = data;
        let width = m.send_width;
        let mpi = self.session.mpi;
        let size = mpi.count("MPI_Pack_size", width, &[count, ty, comm])?;
        let out = &mut self.live[item].packed_send;
        out.resize(size as usize, 0);
        let mut position = 0i64;
        let to = out.as_mut_ptr() as usize;
        let args = [address, count, ty, to, size as usize, at(&mut position), comm];
        mpi.call_c("MPI_Pack", width, &args)?;
        Ok([to, std::hint::black_box(position) as usize, mpi::PACKED])
    }

    pub(super) fn start(&mut self, mut pending: PendingRequest) -> Outcome {
        if self.rng.bool() {
            self.mpi().call("MPI_Start", &[at(&mut pending.request)])?;
        } else {
            self.mpi().call("MPI_Startall", &[1, at(&mut pending.request)])?;
        }
        self.pending.push(pending);
        Ok(())
    }

    pub(super) fn receive(&mut self, item: usize, m: &Message) -> Outcome {
        self.posted.push(item);
        if let Some(request) = self.live[item].persistent[1] {
            return self.start(PendingRequest { request, item, receives: true });
        }
        let comm = self.comms[m.comm];
        let mut data = self.described(item, BufferSide::Recv, &m.recv, m.recv_dress)?;
        if m.recv_dress == Dress::Packed {
            let [_, count, ty] = data;
            let size = self.mpi().count("MPI_Pack_size", m.recv_width, &[count, ty, comm])?;
            let out = &mut self.live[item].packed_recv;
            out.resize(size as usize, 0);
            data = [out.as_mut_ptr() as usize, out.len(), mpi::PACKED];
        }
        let mut source = if m.any_source {
            mpi::ANY_SOURCE as usize
        } else {
            peer(&self.program.comms[m.comm], m.from)
        };
        let mut tag = if m.any_tag { mpi::ANY_TAG } else { m.tag } as usize;
        let width = m.recv_width;
        let [address, count, ty] = data;
        let mut status = CStatus::default();
        match m.taking {
            Taking::Receive(CallForm::Immediate) => {
                let args = [address, count, ty, source, tag, comm];
                let request = self.mpi().make_c("MPI_Irecv", width, &args)?;
                self.pending.push(PendingRequest { request, item, receives: true });
                return Ok(());
            }
            Taking::Receive(CallForm::Persistent) => {
                let args = [address, count, ty, source, tag, comm];
                let request = self.mpi().make_c("MPI_Recv_init", width, &args)?;
                self.live[item].persistent[1] = Some(request);
                return self.start(PendingRequest { request, item, receives: true });
            }
            Taking::Receive(CallForm::Blocking) => {
                if !m.any_source && self.rng.u32(..4) == 0 {
                    let args = [address, count, ty, source, tag, comm, 0];
                    return self.mpi().call_c("MPI_Recv", width, &args);
                }
                let args = [address, count, ty, source, tag, comm, status.address()];
                self.mpi().call_c("MPI_Recv", width, &args)?;
            }
            Taking::Probe { form } => {
                self.probe(form, [source, tag, comm], &mut status, None)?;
                if !m.any_source {
                    self.status(m, m, status)?;
                }
                // From any source: receives the very message that was found.
                source = status.source as usize;
                tag = if m.from.is_none() { tag } else { status.tag as usize };
                let args = [address, count, ty, source, tag, comm, status.address()];
                self.mpi().call_c("MPI_Recv", width, &args)?;
            }
            Taking::Matched { form, later } => {
                let mut message = mpi::MESSAGE_NULL;
                self.probe(form, [source, tag, comm], &mut status, Some(&mut message))?;
                if !m.any_source {
                    self.status(m, m, status)?;
                }
                if later {
                    let args = [address, count, ty, at(&mut message)];
                    let request = self.mpi().make_c("MPI_Imrecv", width, &args)?;
                    self.pending.push(PendingRequest { request, item, receives: true });
                } else {
                    let args = [address, count, ty, at(&mut message), status.address()];
                    self.mpi().call_c("MPI_Mrecv", width, &args)?;
                }
                if std::hint::black_box(message) != mpi::MESSAGE_NULL {
                    return Err("the message handle is not MPI_MESSAGE_NULL after it".to_owned());
                }
                if later {
                    return Ok(());
                }
            }
        }
        self.live[item].status = Some(std::hint::black_box(status));
        Ok(())
    }

    fn probe(
        &self,
        form: ProbeForm,
        [source, tag, comm]: [usize; 3],
        status: &mut CStatus,
        message: Option<&mut usize>,
    ) -> Outcome {
        let mut flag = 0i32;
        let name = match (form, &message) {
            (ProbeForm::Blocking, None) => "MPI_Probe",
            (ProbeForm::Immediate, None) => "MPI_Iprobe",
            (ProbeForm::Blocking, Some(_)) => "MPI_Mprobe",
            (ProbeForm::Immediate, Some(_)) => "MPI_Improbe",
        };
        let mut args = vec![source, tag, comm];
        if form == ProbeForm::Immediate {
            args.push(at(&mut flag));
        }
        args.extend(message.map(at));
        args.push(status.address());
        loop {
            self.mpi().call(name, &args)?;
            if form == ProbeForm::Blocking || std::hint::black_box(flag) != 0 {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    pub(super) fn shift(&mut self, item: usize, s: &Shift, rank: usize) -> Outcome {
        let comm = self.comms[s.comm];
        let width = s.width[rank];
        let [address, count, ty] =
            self.described(item, BufferSide::Send, &s.send[rank], Dress::Plain)?;
        let who = &self.program.comms[s.comm];
        let (to, from, tag) = (peer(who, s.to(rank)), peer(who, s.from(rank)), s.tag as usize);
        let mut args = vec![address, count, ty, to, tag];
        if !s.replace {
            args.extend(self.described(item, BufferSide::Recv, &s.recv[rank], Dress::Plain)?);
        }
        args.extend([from, tag, comm]);
        let name = if s.replace { "sendrecv_replace" } else { "sendrecv" };
        if s.immediate {
            let request = self.mpi().make_c(&capital(&format!("i{name}")), width, &args)?;
            self.pending.push(PendingRequest { request, item, receives: false });
            return Ok(());
        }
        let mut status = CStatus::default();
        args.push(status.address());
        self.mpi().call_c(&capital(name), width, &args)?;
        let expected = match s.from(rank) {
            Some(from) => (from as i64, s.tag),
            None => (mpi::PROC_NULL, mpi::ANY_TAG),
        };
        let found = (i64::from(status.source), i64::from(status.tag));
        if found == expected {
            return Ok(());
        }
        Err(format!("the status names source and tag {found:?}; expected {expected:?}"))
    }
}

/// Returns `MPI_Isend` for `isend`.
pub(super) fn capital(name: &str) -> String {
    format!("MPI_{}{}", name[..1].to_uppercase(), &name[1..])
}
