//! Virtual topologies: cartesian grids and graphs (MPI 5.0, chapter 8). Pure arithmetic.

/// Arrangement of a communicator's ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommTopology {
    /// A grid (MPI 5.0, section 8.5.1).
    Cartesian(Cartesian),
    /// A graph that each rank has given completely (MPI 5.0, section 8.5.3).
    Graph(Graph),
    /// A graph of which a rank knows only its own edges (MPI 5.0, section 8.5.4).
    Distributed(Neighborhood),
}

/// A graph that every rank knows completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// End of the neighbours of each rank in `edges`.
    pub index: Vec<usize>,
    /// Neighbours of rank 0, then neighbours of rank 1, and so on.
    pub edges: Vec<usize>,
    /// Two nodes with more edges from the first to the second than from the second to the first, if there are such nodes.
    pub lopsided: Option<(usize, usize)>,
}

impl Graph {
    /// Makes the graph of these neighbours, each of which is a node of the graph.
    pub fn new(index: Vec<usize>, edges: Vec<usize>) -> Graph {
        let mut graph = Graph { index, edges, lopsided: None };
        let from = (0..graph.index.len())
            .flat_map(|node| graph.neighbors(node).iter().map(move |&to| (node, to)));
        let mut there: Vec<_> = from.collect();
        let mut back: Vec<_> = there.iter().map(|&(from, to)| (to, from)).collect();
        there.sort_unstable();
        back.sort_unstable();
        let differ = there.iter().zip(&back).find(|(there, back)| there != back);
        graph.lopsided = differ.map(|(&there, &back)| match there < back {
            true => there,
            false => (back.1, back.0),
        });
        graph
    }

    /// Returns the neighbours of `rank`, in the order in which they were given.
    pub fn neighbors(&self, rank: usize) -> &[usize] {
        let start = if rank == 0 { 0 } else { self.index[rank - 1] };
        &self.edges[start..self.index[rank]]
    }
}

/// Part of a distributed graph that a rank knows: its neighbours and the weights of the edges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighborhood {
    /// Ranks with an edge to this rank, and the weight of the edge. A rank is named once for each edge.
    pub sources: Vec<(usize, i32)>,
    /// Ranks to which an edge from this rank leads, and the weight of the edge. A rank is named once for each edge.
    pub destinations: Vec<(usize, i32)>,
    /// True if the program gave weights. Otherwise the weights of the edges have no meaning.
    pub weighted: bool,
}

/// An edge of a distributed graph: source, destination, weight.
pub type Edge = [i32; 3];

impl Neighborhood {
    /// Returns the weighted edges at `rank`, out of all edges that ranks have named.
    pub fn at(rank: usize, edges: &[Edge]) -> Neighborhood {
        let here = rank as i32;
        let into = edges.iter().filter(|edge| edge[1] == here);
        let out = edges.iter().filter(|edge| edge[0] == here);
        Neighborhood {
            sources: into.map(|&[source, _, weight]| (source as usize, weight)).collect(),
            destinations: out.map(|&[_, to, weight]| (to as usize, weight)).collect(),
            weighted: true,
        }
    }
}

/// A grid, row-major: the last dimension varies fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cartesian {
    /// Number of points in each dimension.
    pub dims: Vec<usize>,
    /// By dimension: true if the dimension wraps around. As long as `dims`.
    pub periods: Vec<bool>,
}

impl Cartesian {
    /// Returns the number of points: 1 for no dimensions, 0 if a dimension has no points.
    pub fn size(&self) -> usize {
        // Zero is checked first, since the product of the other dimensions may overflow.
        if self.dims.contains(&0) { 0 } else { self.dims.iter().product() }
    }

    /// Returns the place of `rank`, one coordinate per dimension, each below the number of points (MPI_Cart_coords).
    pub fn coords(&self, rank: usize) -> Vec<usize> {
        let mut rest = rank;
        let mut coords: Vec<usize> = self
            .dims
            .iter()
            .rev()
            .map(|&d| {
                let c = rest % d;
                rest /= d;
                c
            })
            .collect();
        coords.reverse();
        coords
    }

    /// Returns the rank at `coords`, which wrap around in periodic dimensions. The error is the number of the dimension in which a
    /// coordinate is outside of the grid.
    pub fn rank(&self, coords: &[i64]) -> Result<usize, usize> {
        let mut rank = 0;
        for (d, &c) in coords.iter().enumerate() {
            let extent = self.dims[d] as i64;
            let inside = if self.periods[d] { c.rem_euclid(extent) } else { c };
            if !(0..extent).contains(&inside) {
                return Err(d);
            }
            rank = rank * self.dims[d] + inside as usize;
        }
        Ok(rank)
    }

    /// Returns source and destination of a shift by `displacement` along `dimension`, seen from `rank`. `None` beyond the edge.
    pub fn shift(&self, rank: usize, dimension: usize, displacement: i64) -> [Option<usize>; 2] {
        let here: Vec<i64> = self.coords(rank).iter().map(|&c| c as i64).collect();
        [-displacement, displacement].map(|by| {
            let mut there = here.clone();
            there[dimension] += by;
            self.rank(&there).ok()
        })
    }

    /// Returns the grid that keeps the dimensions marked in `keep`, and the colour and key with which a split puts `rank` into this
    /// grid.
    pub fn sub(&self, rank: usize, keep: &[bool]) -> (Cartesian, usize, usize) {
        let coords = self.coords(rank);
        let (mut colour, mut key) = (0, 0);
        let mut grid = Cartesian { dims: Vec::new(), periods: Vec::new() };
        for (d, &kept) in keep.iter().enumerate() {
            if kept {
                key = key * self.dims[d] + coords[d];
                grid.dims.push(self.dims[d]);
                grid.periods.push(self.periods[d]);
            } else {
                colour = colour * self.dims[d] + coords[d];
            }
        }
        (grid, colour, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_and_ranks_agree() {
        let grid = Cartesian { dims: vec![3, 4, 2], periods: vec![false, true, false] };
        for rank in 0..grid.size() {
            let coords: Vec<i64> = grid.coords(rank).iter().map(|&c| c as i64).collect();
            assert_eq!(grid.rank(&coords), Ok(rank));
        }
        assert_eq!(grid.rank(&[0, -1, 0]), grid.rank(&[0, 3, 0]));
        assert_eq!(grid.rank(&[3, 0, 0]), Err(0));
        assert_eq!(grid.shift(0, 0, 1), [None, Some(8)]);
        assert_eq!(grid.shift(0, 1, 1), [Some(6), Some(2)]);
    }

    #[test]
    fn a_grid_without_points_has_size_0() {
        let size = |dims: &[usize]| Cartesian { dims: dims.to_vec(), periods: Vec::new() }.size();
        assert_eq!((size(&[]), size(&[2, 3]), size(&[2, 0])), (1, 6, 0));
        assert_eq!(size(&[usize::MAX, usize::MAX, 0]), 0);
    }

    #[test]
    fn neighbours_are_those_of_the_edges() {
        let graph = Graph::new(vec![2, 3, 3], vec![1, 2, 0]);
        assert_eq!([0, 1, 2].map(|r| graph.neighbors(r)), [&[1, 2][..], &[0], &[]]);
        assert_eq!(graph.lopsided, Some((0, 2)));
        assert_eq!(Graph::new(vec![1, 3], vec![1, 0, 0]).lopsided, Some((1, 0)));
        assert_eq!(Graph::new(vec![3, 5], vec![1, 0, 1, 0, 0]).lopsided, None);
        let edges = [[0, 1, 5], [1, 0, 6], [0, 1, 7], [2, 2, 8]];
        let part = Neighborhood::at(1, &edges);
        assert_eq!(part.sources, [(0, 5), (0, 7)]);
        assert_eq!(part.destinations, [(0, 6)]);
        assert_eq!(Neighborhood::at(2, &edges).sources, [(2, 8)]);
    }

    #[test]
    fn subgrids_partition_the_ranks() {
        let grid = Cartesian { dims: vec![2, 3], periods: vec![true, false] };
        let (rows, colour, key) = grid.sub(4, &[false, true]);
        assert_eq!((rows.dims, rows.periods, colour, key), (vec![3], vec![false], 1, 1));
    }
}
