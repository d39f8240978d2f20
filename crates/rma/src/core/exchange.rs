//! Collective exchanges among the ranks of a window, while they make the window.

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
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    all.sge().part(comm.rank() * len, len).fill(&bytes);
    let first = Buffer::over(all.sge().part(0, len), named(Basic::BYTE));
    comm.allgather(None, RankBuffers::Equal { first, ranks: size }).await?;
    let mut bytes = vec![0; size * len];
    all.sge().read(&mut bytes);
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    Ok((0..size).map(|rank| std::array::from_fn(|i| word(rank * len + 8 * i))).collect())
}
