//! Neighborhood collectives: exchanges along the edges of a topology (MPI 5.0, sections 8.6 to 8.8).

use crate::buffer::BufferPiece;
use crate::collectives::CollectiveOperation;
use crate::topology::CommTopology;
use crate::{Buffer, Comm, Error, class};
use weft_collective::{CommView, neighbor};
use weft_fabric::{Fabric, Sge};

/// Neighbours of a rank: sources by block of the receive buffer, destinations by block of the send buffer. `None` beyond the edge
/// of a grid (MPI_PROC_NULL).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbors {
    /// Source of each block of the receive buffer.
    pub sources: Vec<Option<usize>>,
    /// Destination of each block of the send buffer.
    pub destinations: Vec<Option<usize>>,
    /// True in a grid: data that leave in one direction arrive from the opposite direction.
    grid: bool,
}

impl Neighbors {
    /// Returns the neighbours of `rank`. Returns an error if an edge of a graph has no counterpart.
    pub fn of(topology: &CommTopology, rank: usize) -> Result<Neighbors, Error> {
        let some = |ranks: Vec<usize>| ranks.into_iter().map(Some).collect::<Vec<_>>();
        Ok(match topology {
            CommTopology::Cartesian(grid) => {
                let both = |dimension| grid.shift(rank, dimension, 1);
                let around: Vec<_> = (0..grid.dims.len()).flat_map(both).collect();
                Neighbors { sources: around.clone(), destinations: around, grid: true }
            }
            CommTopology::Graph(graph) => {
                if let Some((from, to)) = graph.lopsided {
                    let text = format!(
                        "the graph has more edges from rank {from} to rank {to} than back; \
                         neighborhood collectives need as many (MPI_Dist_graph_create has edges \
                         of one direction)"
                    );
                    return Err(Error::new(class::TOPOLOGY, text));
                }
                let around = some(graph.neighbors(rank).to_vec());
                Neighbors { sources: around.clone(), destinations: around, grid: false }
            }
            CommTopology::Distributed(part) => Neighbors {
                sources: some(part.sources.iter().map(|&(from, _)| from).collect()),
                destinations: some(part.destinations.iter().map(|&(to, _)| to).collect()),
                grid: false,
            },
        })
    }

    /// Returns the blocks of the send buffer and their destinations, in the order in which they are sent.
    fn departures(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let all = self.destinations.iter().enumerate();
        all.filter_map(|(block, to)| to.map(|to| (block, to)))
    }

    /// Returns the blocks of the receive buffer and their sources. Blocks from the same source stand in the order in which the
    /// source sends them. In each dimension of a grid, a rank sends in the negative direction first, and this message arrives from
    /// the positive side. The order matters if both neighbours in a dimension are the same rank.
    fn arrivals(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let place = |i: usize| if self.grid { i ^ 1 } else { i };
        let all = (0..self.sources.len()).map(place);
        all.filter_map(|block| self.sources[block].map(|from| (block, from)))
    }
}

/// Sends the data of `sends`, and receives the data of each source into the buffer for this source in `receives`.
async fn exchange<F: Fabric>(
    link: &CommView<F>,
    sends: &[(usize, Sge)],
    receives: &[(usize, Buffer)],
) -> Result<(), Error> {
    let pool = link.endpoint.staging();
    let pieces: Vec<BufferPiece> =
        receives.iter().map(|(_, buffer)| buffer.writable(pool)).collect();
    let into: Vec<_> =
        receives.iter().zip(&pieces).map(|(&(from, _), piece)| (from, piece.sge)).collect();
    let bytes = neighbor::direct(link, sends, &into).await?;
    for ((piece, (_, buffer)), bytes) in pieces.iter().zip(receives).zip(bytes) {
        piece.unpack(buffer, bytes);
    }
    Ok(())
}

impl<F: Fabric> Comm<F> {
    /// Sends `send` to every destination, and receives `receive[i]` from source i (MPI_Neighbor_allgather).
    pub fn neighbor_allgather(
        &self,
        neighbors: &Neighbors,
        send: Buffer,
        receive: Vec<Buffer>,
    ) -> impl CollectiveOperation + use<F> {
        let link = self.link();
        let destinations: Vec<usize> = neighbors.departures().map(|(_, to)| to).collect();
        let receives = arriving(neighbors, &receive);
        async move {
            let piece = send.readable(link.endpoint.staging());
            let sends: Vec<_> = destinations.into_iter().map(|to| (to, piece.sge)).collect();
            exchange(&link, &sends, &receives).await
        }
    }

    /// Sends `send[i]` to destination i, and receives `receive[i]` from source i (MPI_Neighbor_alltoall).
    pub fn neighbor_alltoall(
        &self,
        neighbors: &Neighbors,
        send: Vec<Buffer>,
        receive: Vec<Buffer>,
    ) -> impl CollectiveOperation + use<F> {
        let link = self.link();
        let departures: Vec<_> =
            neighbors.departures().map(|(block, to)| (to, send[block].clone())).collect();
        let receives = arriving(neighbors, &receive);
        async move {
            let pool = link.endpoint.staging();
            let pieces: Vec<BufferPiece> =
                departures.iter().map(|(_, b)| b.readable(pool)).collect();
            let sends: Vec<_> =
                departures.iter().zip(&pieces).map(|(&(to, _), piece)| (to, piece.sge)).collect();
            exchange(&link, &sends, &receives).await
        }
    }
}

/// Returns sources and their blocks, in the order of [`Neighbors::arrivals`].
fn arriving(neighbors: &Neighbors, blocks: &[Buffer]) -> Vec<(usize, Buffer)> {
    neighbors.arrivals().map(|(block, from)| (from, blocks[block].clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Cartesian, Graph, Neighborhood};
    use std::collections::HashMap;

    fn grid(dims: &[usize], periods: &[bool]) -> CommTopology {
        CommTopology::Cartesian(Cartesian { dims: dims.to_vec(), periods: periods.to_vec() })
    }

    #[test]
    fn neighbours_of_a_grid_go_by_dimension_negative_first() {
        let topology = grid(&[2, 3], &[false, true]);
        let corner = Neighbors::of(&topology, 0).unwrap();
        assert_eq!(corner.sources, [None, Some(3), Some(2), Some(1)]);
        assert_eq!(corner.destinations, corner.sources);
        assert_eq!(corner.departures().collect::<Vec<_>>(), [(1, 3), (2, 2), (3, 1)]);
        assert_eq!(corner.arrivals().collect::<Vec<_>>(), [(1, 3), (3, 1), (2, 2)]);
    }

    /// Returns the sender's block that each block of a receiver gets. Of each pair of ranks, the k-th message matches the k-th
    /// receive.
    fn delivered(topology: &CommTopology, size: usize) -> HashMap<(usize, usize), (usize, usize)> {
        let all: Vec<_> = (0..size).map(|r| Neighbors::of(topology, r).unwrap()).collect();
        let mut got = HashMap::new();
        for (to, here) in all.iter().enumerate() {
            for (from, there) in all.iter().enumerate() {
                let sent = there.departures().filter(|&(_, rank)| rank == to);
                let received = here.arrivals().filter(|&(_, rank)| rank == from);
                let (sent, received): (Vec<_>, Vec<_>) = (sent.collect(), received.collect());
                assert_eq!(sent.len(), received.len(), "{from} to {to}");
                for ((out, _), (into, _)) in sent.into_iter().zip(received) {
                    assert!(got.insert((to, into), (from, out)).is_none());
                }
            }
        }
        got
    }

    #[test]
    fn a_grid_delivers_from_the_opposite_side_however_small_it_is() {
        for dims in [[1, 1, 1], [2, 1, 3], [1, 2, 2], [4, 3, 1], [2, 2, 2]] {
            for periods in [[true, true, true], [false, true, true], [true, false, true]] {
                let topology = grid(&dims, &periods);
                let CommTopology::Cartesian(shape) = &topology else { unreachable!() };
                let got = delivered(&topology, shape.size());
                for rank in 0..shape.size() {
                    for dimension in 0..3 {
                        let [below, above] = shape.shift(rank, dimension, 1);
                        let (negative, positive) = (2 * dimension, 2 * dimension + 1);
                        let from_below = below.map(|peer| (peer, positive));
                        let from_above = above.map(|peer| (peer, negative));
                        assert_eq!(got.get(&(rank, negative)).copied(), from_below, "{dims:?}");
                        assert_eq!(got.get(&(rank, positive)).copied(), from_above, "{dims:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn edges_of_a_graph_are_matched_in_their_order() {
        // There are two edges between ranks 0 and 1. Rank 1 lists them before and after an edge to itself.
        let graph = CommTopology::Graph(Graph::new(vec![2, 5], vec![1, 1, 0, 1, 0]));
        let got = delivered(&graph, 2);
        assert_eq!((got[&(1, 0)], got[&(1, 1)], got[&(1, 2)]), ((0, 0), (1, 1), (0, 1)));
        let lopsided = CommTopology::Graph(Graph::new(vec![1, 1], vec![1]));
        let error = Neighbors::of(&lopsided, 1).unwrap_err();
        assert_eq!(error.class(), class::TOPOLOGY);
        assert!(error.text().contains("from rank 0 to rank 1"), "{error:?}");
    }

    #[test]
    fn a_distributed_graph_has_other_sources_than_destinations() {
        let sources = vec![(2, 1), (0, 1)];
        let part = Neighborhood { sources, destinations: vec![(1, 1)], weighted: false };
        let neighbors = Neighbors::of(&CommTopology::Distributed(part), 1).unwrap();
        assert_eq!(neighbors.sources, [Some(2), Some(0)]);
        assert_eq!(neighbors.destinations, [Some(1)]);
    }
}
