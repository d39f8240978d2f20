//! This rank's memory of a new window: the program's own, or allocated (MPI 5.0, sections 12.2.1 to 12.2.4).

use crate::core::Flavor;
use crate::core::exchange::gather;
use weft_fabric::{Fabric, FabricExt, Fault, Region, RemoteAddr, Sge};
use weft_process::{Comm, Error, class};

/// What a rank brings to a new window.
#[derive(Debug, Clone, Copy)]
pub enum Memory {
    /// The program's own (MPI_Win_create).
    Own(Sge),
    /// So many bytes, to be allocated; aligned to `align`, a power of two.
    Allocate {
        /// Bytes of this rank; ranks may differ.
        len: usize,
        /// Bytes.
        align: usize,
    },
    /// So many bytes in memory that all ranks see, one after the other if `contiguous`.
    Share {
        /// Bytes of this rank; ranks may differ.
        len: usize,
        /// Bytes, a power of two: of the whole if `contiguous`, else of each rank's part.
        align: usize,
        /// The parts of all ranks make one piece, without gaps between them.
        contiguous: bool,
    },
    /// Nothing yet (MPI_Win_create_dynamic).
    Nothing,
}

impl Memory {
    /// Bytes of this rank.
    pub(crate) fn len(&self) -> usize {
        match self {
            Memory::Own(memory) => memory.len(),
            Memory::Allocate { len, .. } | Memory::Share { len, .. } => *len,
            Memory::Nothing => 0,
        }
    }

    /// By which call such a window is made.
    pub(crate) fn flavor(&self) -> Flavor {
        match self {
            Memory::Own(_) => Flavor::Create,
            Memory::Allocate { .. } => Flavor::Allocate,
            Memory::Share { .. } => Flavor::Shared,
            Memory::Nothing => Flavor::Dynamic,
        }
    }
}

/// This rank's memory, made.
pub struct OwnMemory {
    pub memory: Sge,
    /// As `holder` names it.
    pub at: RemoteAddr,
    /// What the fabric lent for it.
    pub region: Option<Region>,
    /// The rank in whose fabric memory it lies, if that is another one.
    pub holder: Option<usize>,
    /// The fabric allocated it.
    pub within: bool,
}

impl OwnMemory {
    /// All ranks of `comm` call it. Errors: NO_MEM, and what the fabric says of memory that it cannot expose.
    pub async fn new<F: Fabric>(comm: &Comm<F>, brings: &Memory) -> Result<OwnMemory, Error> {
        let engine = comm.engine();
        let fabric = engine.endpoint().fabric();
        match *brings {
            Memory::Nothing => {
                let at = RemoteAddr::default();
                Ok(OwnMemory { memory: Sge::EMPTY, at, region: None, holder: None, within: false })
            }
            Memory::Own(memory) => {
                let within = fabric.lies_within(memory);
                let region = fabric.expose_to_writers(memory)?;
                Ok(OwnMemory {
                    memory,
                    at: region.remote,
                    region: Some(region),
                    holder: None,
                    within,
                })
            }
            Memory::Allocate { len, align } => {
                let region = engine.allocate(padded(len, align)?)?;
                let skip = aligned(region.local, align);
                let (memory, at) = (region.local.part(skip, len), region.at(skip));
                Ok(OwnMemory { memory, at, region: Some(region), holder: None, within: true })
            }
            Memory::Share { len, align, contiguous } => {
                OwnMemory::shared(comm, len, align, contiguous).await
            }
        }
    }

    /// Memory of rank 0 for all, or of each rank for itself.
    async fn shared<F: Fabric>(
        comm: &Comm<F>,
        len: usize,
        align: usize,
        contiguous: bool,
    ) -> Result<OwnMemory, Error> {
        let engine = comm.engine();
        let fabric = engine.endpoint().fabric();
        if !contiguous {
            let region = engine.allocate_on_node(padded(len, align)?)?;
            let skip = aligned(region.local, align);
            let (memory, at) = (region.local.part(skip, len), region.at(skip));
            return Ok(OwnMemory { memory, at, region: Some(region), holder: None, within: true });
        }
        let lens = gather(comm, [len as u64]).await?;
        let places: Vec<u64> = lens
            .iter()
            .scan(0u64, |end, &[len]| {
                let at = *end;
                *end = end.saturating_add(len);
                Some(at)
            })
            .collect();
        let total = lens.iter().fold(0u64, |sum, &[len]| sum.saturating_add(len));
        let region = match comm.rank() {
            0 => usize::try_from(total)
                .map_err(|_| out_of_memory(total))
                .and_then(|total| Ok(engine.allocate_on_node(padded(total, align)?)?)),
            _ => Err(out_of_memory(total)),
        };
        let start = match &region {
            Ok(region) => region.at(aligned(region.local, align)).words(),
            Err(_) => [0; 4],
        };
        // Only rank 0's counts: the others get it in one exchange with everybody's share of it.
        let [at, ..] = gather(comm, start).await?[..] else { return Err(out_of_memory(total)) };
        if at == [0; 4] {
            // The others see the same limits: so all can say which one it is.
            let why = |total| match fabric.allocate_on_node(total) {
                Err(fault) => fault.into(),
                Ok(region) => {
                    fabric.withdraw(region);
                    out_of_memory(total as u64)
                }
            };
            return Err(match region {
                Err(error) if comm.rank() == 0 => error,
                _ => usize::try_from(total).map_or_else(|_| out_of_memory(total), why),
            });
        }
        let holder = comm.group().ranks()[0] as usize;
        let at = RemoteAddr::from_words(at).offset(places[comm.rank()]);
        // No bytes have a place, too: the others see it, and so does their owner.
        let memory = match fabric.shown(holder, at, len) {
            None if len == 0 => Some(Sge::EMPTY),
            seen => seen,
        };
        let Some(memory) = memory else {
            let what = "see memory of another process";
            return Err(Fault::unsupported(holder, what).into());
        };
        Ok(OwnMemory { memory, at, region: region.ok(), holder: Some(0), within: true })
    }

    /// To the fabric.
    pub fn give_back<F: Fabric>(self, fabric: &F) {
        if let Some(region) = self.region {
            fabric.withdraw(region);
        }
    }
}

fn out_of_memory(len: u64) -> Error {
    let text = format_args!(
        "no room for {len} bytes of memory that all ranks see, which the communicator's rank 0 allocates; ask for less, or \
         start fewer processes on a node"
    );
    Error::new(class::NO_MEM, text)
}

/// Memory of the fabric is aligned to so much.
const ALIGN: usize = 64;

fn padded(len: usize, align: usize) -> Result<usize, Error> {
    let extra = if align > ALIGN { align } else { 0 };
    // A length of 0 still has an address.
    len.max(1).checked_add(extra).ok_or_else(|| out_of_memory(u64::MAX))
}

fn aligned(memory: Sge, align: usize) -> usize {
    memory.ptr().addr().wrapping_neg() & (align.max(1) - 1)
}
