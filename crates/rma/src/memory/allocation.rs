//! This rank's memory of a new window: the program's own memory, or allocated memory (MPI 5.0, sections 12.2.1 to 12.2.4).

use crate::core::WindowFlavor;
use crate::core::exchange::gather;
use weft_fabric::{Fabric, FabricExt, Region, RemoteAddr, Sge};
use weft_process::{Comm, Error, class};

/// Memory that a rank brings to a new window.
#[derive(Debug, Clone, Copy)]
pub enum WindowOffer {
    /// The program's own memory (MPI_Win_create).
    Own(Sge),
    /// Memory to be allocated (MPI_Win_allocate).
    Allocate {
        /// Number of bytes of this rank. Other ranks may have other numbers.
        len: usize,
        /// Alignment in bytes, a power of two.
        align: usize,
    },
    /// Memory that all ranks see (MPI_Win_allocate_shared), without gaps between the ranks' parts if `contiguous`.
    Share {
        /// Number of bytes of this rank. Other ranks may have other numbers.
        len: usize,
        /// Alignment in bytes, a power of two up to [`Region::ALIGN_SEEN`]: the alignment of the whole memory if `contiguous`,
        /// otherwise of each rank's part.
        align: usize,
        /// True if the parts of all ranks are one piece, without gaps between them.
        contiguous: bool,
    },
    /// No memory yet (MPI_Win_create_dynamic).
    Nothing,
}

impl WindowOffer {
    /// Returns the number of bytes of this rank.
    pub(crate) fn len(&self) -> usize {
        match self {
            WindowOffer::Own(memory) => memory.len(),
            WindowOffer::Allocate { len, .. } | WindowOffer::Share { len, .. } => *len,
            WindowOffer::Nothing => 0,
        }
    }

    /// Returns the kind of call that makes a window with this memory.
    pub(crate) fn flavor(&self) -> WindowFlavor {
        match self {
            WindowOffer::Own(_) => WindowFlavor::Create,
            WindowOffer::Allocate { .. } => WindowFlavor::Allocate,
            WindowOffer::Share { .. } => WindowFlavor::Shared,
            WindowOffer::Nothing => WindowFlavor::Dynamic,
        }
    }
}

/// This rank's memory of a window.
pub struct OwnMemory {
    pub memory: Sge,
    /// Address of the memory in the fabric of `holder`.
    pub at: RemoteAddr,
    /// Registration or allocation by the fabric.
    pub region: Option<Region>,
    /// The rank in whose fabric memory this part lies, if it is another rank.
    pub holder: Option<usize>,
    /// True if the fabric allocated the memory.
    pub within: bool,
}

impl OwnMemory {
    /// Makes this rank's memory. All ranks of `comm` must call this function. Errors: NO_MEM, and errors of the fabric for memory
    /// that it cannot expose.
    pub async fn new<F: Fabric>(comm: &Comm<F>, brings: &WindowOffer) -> Result<OwnMemory, Error> {
        let engine = comm.engine();
        let fabric = engine.endpoint().fabric();
        match *brings {
            WindowOffer::Nothing => {
                let at = RemoteAddr::default();
                Ok(OwnMemory { memory: Sge::EMPTY, at, region: None, holder: None, within: false })
            }
            WindowOffer::Own(memory) => {
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
            WindowOffer::Allocate { len, align } => {
                Ok(OwnMemory::allocated(engine.allocate(padded(len, align)?)?, len, align))
            }
            WindowOffer::Share { len, align, contiguous: true } => {
                OwnMemory::shared_in_one(comm, len, align).await
            }
            // The other ranks learn of the error when all ranks exchange the results.
            WindowOffer::Share { len, align, contiguous: false } => match apart(comm) {
                Some(error) => Err(error),
                None => {
                    let region = engine.allocate_on_node(padded(len, align)?)?;
                    Ok(OwnMemory::allocated(region, len, align))
                }
            },
        }
    }

    /// Allocates memory at rank 0 for all ranks. Errors: RMA_SHARED, on all ranks, if some ranks do not see each other's memory.
    async fn shared_in_one<F: Fabric>(
        comm: &Comm<F>,
        len: usize,
        align: usize,
    ) -> Result<OwnMemory, Error> {
        let engine = comm.engine();
        let fabric = engine.endpoint().fabric();
        let apart = apart(comm);
        let told = gather(comm, [len as u64, align as u64, u64::from(apart.is_some())]).await?;
        if let Some(rank) = told.iter().position(|&[.., apart]| apart != 0) {
            return Err(apart.unwrap_or_else(|| not_shared(rank)));
        }
        // Rank 0's part begins at an address that satisfies the alignment of every rank. The other parts follow without gaps.
        let align = told.iter().map(|&[_, align, _]| align as usize).fold(align, usize::max);
        let align = if align.is_power_of_two() { align.min(Region::ALIGN_SEEN) } else { 1 };
        let places: Vec<u64> = told
            .iter()
            .scan(0u64, |end, &[len, ..]| {
                let at = *end;
                *end = end.saturating_add(len);
                Some(at)
            })
            .collect();
        let total = told.iter().fold(0u64, |sum, &[len, ..]| sum.saturating_add(len));
        let region = match comm.rank() {
            0 => usize::try_from(total)
                .map_err(|_| out_of_memory(total))
                .and_then(|total| Ok(engine.allocate_on_node(padded(total, align)?)?)),
            _ => Err(out_of_memory(total)),
        };
        let start = match &region {
            Ok(region) => region.at(region.first_at(align)).words(),
            Err(_) => [0; 4],
        };
        // Only rank 0's address counts. The other ranks get this address by this exchange, in which all ranks take part.
        let [at, ..] = gather(comm, start).await?[..] else { return Err(out_of_memory(total)) };
        if at == [0; 4] {
            // Allocation failed at rank 0. The other ranks have the same limits, so each rank can find the limit that was reached.
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
        // Even a part without bytes has an address, which its owner and the other ranks can query.
        let memory = match (&region, fabric.shown(holder, at, len)) {
            (_, Some(seen)) => seen,
            (Ok(region), None) => region.local.part(region.first_at(align), len),
            (Err(_), None) if len == 0 => Sge::EMPTY,
            (Err(_), None) => return Err(not_shared(0)),
        };
        Ok(OwnMemory { memory, at, region: region.ok(), holder: Some(0), within: true })
    }

    /// Returns this rank's part of `region`.
    fn allocated(region: Region, len: usize, align: usize) -> OwnMemory {
        let skip = region.first_at(align);
        let (memory, at) = (region.local.part(skip, len), region.at(skip));
        OwnMemory { memory, at, region: Some(region), holder: None, within: true }
    }

    /// Gives back the memory to the fabric.
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

/// Returns an error if a rank of the group has memory that this rank does not see.
fn apart<F: Fabric>(comm: &Comm<F>) -> Option<Error> {
    let fabric = comm.engine().endpoint().fabric();
    let unseen = |&(rank, &peer): &(usize, &u32)| {
        rank != comm.rank() && !fabric.shows_memory_of(peer as usize)
    };
    comm.group().ranks().iter().enumerate().find(unseen).map(|(rank, _)| not_shared(rank))
}

/// Returns the error for memory that not all ranks see. `rank` is a rank whose memory is not visible.
pub fn not_shared(rank: usize) -> Error {
    let text = format_args!(
        "rank {rank} of the communicator and others do not see each other's memory, as on different nodes; make a \
         communicator of those that do by MPI_Comm_split_type with MPI_COMM_TYPE_SHARED"
    );
    Error::new(class::RMA_SHARED, text)
}

fn padded(len: usize, align: usize) -> Result<usize, Error> {
    // A part of length 0 still has an address.
    Region::room(len.max(1), align).ok_or_else(|| out_of_memory(u64::MAX))
}
