//! Collective exchanges among the ranks of a window, while they make the window.

use weft_collective::words;
use weft_datatype::{Basic, Predefined, Type};
use weft_fabric::Fabric;
use weft_process::{Buffer, Comm, Error, RankBuffers};

/// Returns the datatype of a predefined element type.
pub fn named(basic: Basic) -> Type {
    Predefined::only(basic)
}

/// Gathers a few words of every rank on every rank.
pub async fn gather<F: Fabric, const N: usize>(
    comm: &Comm<F>,
    words: [u64; N],
) -> Result<Vec<[u64; N]>, Error> {
    let (size, len) = (comm.size(), 8 * N);
    let all = comm.engine().endpoint().staging().take(size * len);
    let of = |rank: usize| all.sge().part(rank * len, len);
    words::write(words, of(comm.rank()));
    let first = Buffer::over(of(0), named(Basic::BYTE));
    comm.allgather(None, RankBuffers::Equal { first, ranks: size }).await?;
    Ok((0..size).map(|rank| words::read_array(of(rank))).collect())
}
