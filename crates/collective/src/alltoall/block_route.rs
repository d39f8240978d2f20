//! Places of a block while it travels by the digits of its distance.
//!
//! ```text
//!   rank r, blocks by their distance in ranks, digits from the lowest on
//!   no digit moved   out[r + j]       some moved   place j of `here`       all moved   into[r - j]
//! ```

use crate::{CommView, local_ops};
use weft_fabric::{Fabric, Sge, Staging};

/// The blocks of an alltoall between its rounds.
pub struct BlockRoute<'a> {
    me: usize,
    out: &'a [Sge],
    into: &'a [Sge],
    radix: usize,
    /// A place for each block on its way.
    here: Staging,
}

impl<'a> BlockRoute<'a> {
    /// Describes blocks that go from `out[r]` of this rank to `into[me]` of rank r; all blocks have the same length.
    pub fn new<F: Fabric>(
        link: &CommView<F>,
        out: &'a [Sge],
        into: &'a [Sge],
        radix: usize,
    ) -> BlockRoute<'a> {
        let (me, size) = (link.rank, link.size());
        // If there is only one round, no block stops between rounds.
        let stops = if radix < size { size } else { 0 };
        let here = local_ops::stage(link, out[me], stops * out[me].len());
        BlockRoute { me, out, into, radix, here }
    }

    fn here(&self, j: usize) -> Sge {
        let len = self.out[self.me].len();
        self.here.sge().part(j * len, len)
    }

    /// Returns the place of block `j` before the round of the digits at `place`.
    pub fn before(&self, j: usize, place: usize) -> Sge {
        match j.is_multiple_of(place) {
            true => self.out[(self.me + j) % self.out.len()],
            false => self.here(j),
        }
    }

    /// Returns the place of block `j` after the round of the digits at `place`.
    pub fn after(&self, j: usize, place: usize) -> Sge {
        match j / place < self.radix {
            true => self.into[(self.me + self.into.len() - j) % self.into.len()],
            false => self.here(j),
        }
    }
}
