//! Windows: they are made, filled and freed here.

use super::{Outcome, RankSession};
use crate::buffer::{GUARD, GuardedBuffer, Image, Piece};
use crate::ledger::{Ledger, whole};
use crate::mpi::{self, CountWidth, Mpi};
use crate::onesided::{Flavor, WindowModel};
use std::ffi::CString;

/// This rank's part of a window.
enum Memory {
    /// Its own memory, with guards.
    Own(GuardedBuffer),
    /// The library's memory: address and length.
    Lent(usize, usize),
}

/// A window that is open on this rank.
pub struct Open {
    pub handle: usize,
    pub comm: usize,
    pub seat: usize,
    memory: Memory,
    pub ledger: Ledger,
    /// Origin of the displacements of each target: an address in a dynamic window, else 0.
    pub origins: Vec<i64>,
    /// A group of all its ranks.
    pub group: usize,
}

/// Returns a copy of memory of a window.
pub fn look(address: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    if len > 0 {
        // SAFETY: the library reported `len` bytes of a window at this address, and the window is not freed yet. No epoch is under
        // way that writes them.
        unsafe { std::ptr::copy(address as *const u8, bytes.as_mut_ptr(), len) };
    }
    bytes
}

impl Memory {
    fn address(&mut self) -> usize {
        match self {
            Memory::Own(buffer) => buffer.address(),
            Memory::Lent(address, _) => *address,
        }
    }

    fn fill(&mut self, image: &Image) {
        match self {
            Memory::Own(buffer) => buffer.fill(image),
            Memory::Lent(address, len) => {
                let bytes = &image.bytes[GUARD..GUARD + *len];
                if let [_, ..] = bytes {
                    // SAFETY: the library reported `len` bytes of a window at this address, and the window is not freed yet. Nobody
                    // else accesses them meanwhile.
                    unsafe { std::ptr::copy(bytes.as_ptr(), *address as *mut u8, *len) };
                }
            }
        }
    }

    /// Returns all bytes with guards. Without guards in memory, those of the image are returned.
    fn bytes(&mut self, image: &Image) -> Vec<u8> {
        match self {
            Memory::Own(buffer) => buffer.bytes().to_vec(),
            Memory::Lent(address, len) => {
                let mut bytes = image.bytes.clone();
                bytes[GUARD..GUARD + *len].copy_from_slice(&look(*address, *len));
                bytes
            }
        }
    }
}

impl Open {
    /// Returns all bytes of this rank's part, between guards.
    pub fn bytes(&mut self) -> Vec<u8> {
        self.memory.bytes(&self.ledger.parts[self.seat])
    }

    /// Stores packed data.
    pub fn store(&mut self, piece: &Piece, data: &[u8]) {
        let origin = self.ledger.parts[self.seat].origin;
        let mut image = Image { bytes: self.bytes(), origin };
        image.unpack(piece, data);
        self.memory.fill(&image);
    }

    /// Changes a byte without the library's knowledge.
    pub fn spoil(&mut self, at: usize) {
        let origin = self.ledger.parts[self.seat].origin;
        let mut image = Image { bytes: self.bytes(), origin };
        image.bytes[at] ^= 0x10;
        self.memory.fill(&image);
    }

    /// Attaches the memory of a dynamic window.
    pub fn attach(&mut self, mpi: &Mpi, window: &WindowModel) -> Outcome {
        let base = self.memory.address();
        window.parts[self.seat].chunks.iter().try_for_each(|(begin, end)| {
            let args = [self.handle, base + *begin as usize, (end - begin) as usize];
            mpi.call("MPI_Win_attach", &args)
        })
    }

    pub fn detach(&mut self, mpi: &Mpi, window: &WindowModel) -> Outcome {
        let base = self.memory.address();
        let chunks = &window.parts[self.seat].chunks;
        chunks.iter().filter(|(begin, end)| begin < end).try_for_each(|(begin, _)| {
            mpi.call("MPI_Win_detach", &[self.handle, base + *begin as usize])
        })
    }
}

fn info(mpi: &Mpi, hints: &[(&str, &str)]) -> Outcome<usize> {
    if hints.is_empty() {
        return Ok(mpi::INFO_NULL);
    }
    let info = mpi.make("MPI_Info_create", &[])?;
    for (key, value) in hints {
        let text = |text: &str| CString::new(text).map_err(|e| e.to_string());
        let (key, value) = (text(key)?, text(value)?);
        mpi.call("MPI_Info_set", &[info, key.as_ptr() as usize, value.as_ptr() as usize])?;
    }
    Ok(info)
}

impl RankSession<'_> {
    /// Returns true if all ranks are on one node.
    fn on_one_node(&mut self) -> Outcome<bool> {
        if let Some(known) = self.one_node {
            return Ok(known);
        }
        let kind = mpi::COMM_TYPE_SHARED as usize;
        let args = [mpi::COMM_WORLD, kind, 0, mpi::INFO_NULL];
        let node = self.mpi.make("MPI_Comm_split_type", &args)?;
        let of = |comm: usize| self.mpi.int("MPI_Comm_size", &[comm]);
        let one = of(node)? == of(mpi::COMM_WORLD)?;
        self.mpi.free("MPI_Comm_free", node)?;
        self.one_node = Some(one);
        Ok(one)
    }

    /// Makes a window. Returns `None` if this rank has no part in it. All ranks call it.
    pub(super) fn open(
        &mut self,
        window: &WindowModel,
        seat: Option<usize>,
        comm: usize,
        base: u64,
    ) -> Outcome<Option<Open>> {
        let one_node = match window.flavor {
            Flavor::Shared { .. } => self.on_one_node()?,
            _ => false,
        };
        let Some(seat) = seat else { return Ok(None) };
        let lib = self.mpi;
        let width = if base & 1 == 1 { CountWidth::Large } else { CountWidth::Int };
        let ledger = Ledger::new(window, base);
        let part = &window.parts[seat];
        let (len, unit) = (part.len as usize, part.unit as usize);
        let mut info = info(lib, &window.hints)?;
        let own = || {
            let mut buffer = GuardedBuffer::new(&[whole(part.len)]);
            buffer.fill(&ledger.parts[seat]);
            Memory::Own(buffer)
        };
        let lent = |name: &str| -> Outcome<(Memory, usize)> {
            let mut address = 0usize;
            let args = [len, unit, info, comm, std::ptr::from_mut(&mut address) as usize];
            let handle = lib.make_c(name, width, &args)?;
            Ok((Memory::Lent(std::hint::black_box(address), len), handle))
        };
        let (memory, handle) = match window.flavor {
            Flavor::Create => {
                let mut memory = own();
                let args = [memory.address(), len, unit, info, comm];
                let handle = lib.make_c("MPI_Win_create", width, &args)?;
                (memory, handle)
            }
            Flavor::Dynamic => (own(), lib.make("MPI_Win_create_dynamic", &[info, comm])?),
            Flavor::Shared { .. } if one_node => lent("MPI_Win_allocate_shared")?,
            Flavor::Allocate | Flavor::Shared { .. } => lent("MPI_Win_allocate")?,
        };
        if info != mpi::INFO_NULL {
            lib.call("MPI_Info_free", &[std::ptr::from_mut(&mut info) as usize])?;
        }
        lib.call("MPI_Win_set_errhandler", &[handle, mpi::ERRORS_RETURN])?;
        let group = lib.make("MPI_Win_get_group", &[handle])?;
        let origins = vec![0; window.parts.len()];
        let mut open = Open { handle, comm, seat, memory, ledger, origins, group };
        if window.flavor == Flavor::Dynamic {
            open.attach(lib, window)?;
            self.exchange(&mut open)?;
        } else if matches!(open.memory, Memory::Lent(..)) {
            lib.call("MPI_Win_lock", &[mpi::LOCK_EXCLUSIVE as usize, seat, 0, handle])?;
            open.memory.fill(&open.ledger.parts[seat]);
            lib.call("MPI_Win_unlock", &[seat, handle])?;
            lib.call("MPI_Barrier", &[comm])?;
        }
        Ok(Some(open))
    }

    /// Exchanges the addresses of the memory of a dynamic window.
    fn exchange(&self, open: &mut Open) -> Outcome {
        let mut own = 0i64;
        let own_at = std::ptr::from_mut(&mut own) as usize;
        self.mpi.call("MPI_Get_address", &[open.memory.address(), own_at])?;
        let aint = crate::basic::ElementType::named("AINT").handle();
        let all = open.origins.as_mut_ptr() as usize;
        self.mpi.call("MPI_Allgather", &[own_at, 1, aint, all, 1, aint, open.comm])
    }

    pub(super) fn close_window(&mut self, mut open: Open, window: &WindowModel) -> Outcome {
        // Sometimes its memory stays attached to the end.
        if window.flavor == Flavor::Dynamic && open.origins[0] & 64 == 0 {
            self.mpi.call("MPI_Barrier", &[open.comm])?;
            open.detach(self.mpi, window)?;
        }
        self.mpi.free("MPI_Group_free", open.group)?;
        self.mpi.free("MPI_Win_free", open.handle)
    }
}
