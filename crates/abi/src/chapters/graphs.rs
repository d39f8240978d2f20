//! Virtual topologies: graphs (MPI 5.0, sections 8.5.3 and 8.5.4).

use crate::arguments::{comm, count, intracomm, not_null, optional_info, rank, store};
use crate::arrays::{list, store_list};
use crate::chapters::communicators::inherited_with;
use crate::chapters::topologies::arrange;
use crate::constants::*;
use crate::engine::CommObject;
use crate::error::Error;
use crate::types::{Comm, Info};
use crate::waiting::WaitingCall;
use std::cell::Ref;
use std::ffi::c_int;
use weft_process::{CommTopology, Edge, Graph, Neighborhood};

fn none(what: &str, remedy: &str) -> Error {
    Error::new(MPI_ERR_TOPOLOGY, format_args!("argument comm has no {what} topology: {remedy}"))
}

fn graph(comm: &CommObject) -> Result<Ref<'_, Graph>, Error> {
    let graph = Ref::filter_map(comm.topology.borrow(), |topology| match topology {
        Some(CommTopology::Graph(graph)) => Some(graph),
        _ => None,
    });
    graph.map_err(|_| none("graph", "MPI_Graph_create"))
}

fn neighborhood(comm: &CommObject) -> Result<Ref<'_, Neighborhood>, Error> {
    let part = Ref::filter_map(comm.topology.borrow(), |topology| match topology {
        Some(CommTopology::Distributed(part)) => Some(part),
        _ => None,
    });
    part.map_err(|_| none("distributed graph", "MPI_Dist_graph_create"))
}

/// Checks the graph that the program describes, which has at most `most` nodes.
///
/// # Safety
/// `index` is NULL or has `nnodes` elements; `edges` is NULL or has as many elements as the last entry of `index`.
unsafe fn described(
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    most: usize,
) -> Result<Graph, Error> {
    let n = count(i64::from(nnodes), "nnodes").map_err(|e| Error::new(MPI_ERR_ARG, e.text()))?;
    if n > most {
        let text = format!("argument nnodes = {n}: the communicator has {most} ranks");
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    // SAFETY: `index` is NULL or has `n` elements; the contract of this function says so.
    let ends = unsafe { list(index, n, "index") }?;
    let mut before = 0;
    for (i, &end) in ends.iter().enumerate() {
        if end < before {
            let text = format!("argument index[{i}] = {end}: at least {before}, the one before");
            return Err(Error::new(MPI_ERR_ARG, text));
        }
        before = end;
    }
    // SAFETY: `before` is the last entry of `index`, so `edges` is NULL or has this number of elements (contract of this function).
    let edges = unsafe { list(edges, before as usize, "edges") }?;
    if let Some(i) = edges.iter().position(|&e| !(0..nnodes).contains(&e)) {
        let text =
            format!("argument edges[{i}] = {}: the graph has nodes 0 to {}", edges[i], n - 1);
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    let wide = |list: Vec<c_int>| list.into_iter().map(|n| n as usize).collect();
    Ok(Graph::new(wide(ends), wide(edges)))
}

/// MPI_Graph_create.
pub(crate) unsafe fn graph_create(
    handle: Comm,
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    _reorder: c_int,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    not_null(newcomm, "comm_graph")?;
    let old = intracomm(handle)?;
    // SAFETY: `described` needs arrays as long as MPI requires of the program.
    let graph = unsafe { described(nnodes, index, edges, old.size()) }?;
    let new = arrange(&old, graph.index.len(), CommTopology::Graph(graph), "MPI_Graph_create")?;
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, new, "comm_graph") }
}

/// MPI_Graph_map.
pub(crate) unsafe fn graph_map(
    handle: Comm,
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    newrank: *mut c_int,
) -> Result<(), Error> {
    let old = intracomm(handle)?;
    // SAFETY: `described` needs arrays as long as MPI requires of the program.
    let graph = unsafe { described(nnodes, index, edges, old.size()) }?;
    let inside = old.rank() < graph.index.len();
    let place = if inside { old.rank() as c_int } else { MPI_UNDEFINED };
    // SAFETY: `newrank` points to room for the result, as MPI requires of the program.
    unsafe { store(newrank, place, "newrank") }
}

/// MPI_Graphdims_get.
pub(crate) unsafe fn graphdims_get(
    handle: Comm,
    nnodes: *mut c_int,
    nedges: *mut c_int,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let graph = graph(&comm)?;
    // SAFETY: `nnodes` and `nedges` are NULL or may be written, as MPI requires of the program.
    unsafe {
        store(nnodes, graph.index.len() as c_int, "nnodes")?;
        store(nedges, graph.edges.len() as c_int, "nedges")
    }
}

/// Returns the first values, at most `most`. The program's array has `most` elements.
fn fitting(values: &[usize], most: c_int) -> impl ExactSizeIterator<Item = c_int> {
    values.iter().take(most.max(0) as usize).map(|&n| n as c_int)
}

/// MPI_Graph_get.
pub(crate) unsafe fn graph_get(
    handle: Comm,
    maxindex: c_int,
    maxedges: c_int,
    index: *mut c_int,
    edges: *mut c_int,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let graph = graph(&comm)?;
    // SAFETY: `index` is NULL or has `maxindex` elements, and `edges` is NULL or has `maxedges`, as MPI requires of the program.
    unsafe {
        store_list(index, fitting(&graph.index, maxindex), "index")?;
        store_list(edges, fitting(&graph.edges, maxedges), "edges")
    }
}

/// MPI_Graph_neighbors_count.
pub(crate) unsafe fn graph_neighbors_count(
    handle: Comm,
    place: c_int,
    nneighbors: *mut c_int,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let graph = graph(&comm)?;
    let place = rank(&comm, place, "rank", MPI_ERR_RANK)?;
    // SAFETY: `nneighbors` points to room for the result, as MPI requires of the program.
    unsafe { store(nneighbors, graph.neighbors(place).len() as c_int, "nneighbors") }
}

/// MPI_Graph_neighbors.
pub(crate) unsafe fn graph_neighbors(
    handle: Comm,
    place: c_int,
    maxneighbors: c_int,
    neighbors: *mut c_int,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let graph = graph(&comm)?;
    let place = rank(&comm, place, "rank", MPI_ERR_RANK)?;
    // SAFETY: `neighbors` is NULL or has `maxneighbors` elements, as MPI requires of the program.
    unsafe { store_list(neighbors, fitting(graph.neighbors(place), maxneighbors), "neighbors") }
}

/// Returns the weights that the program gives, or 1 for each edge if the program gives MPI_UNWEIGHTED.
///
/// # Safety
/// `from` is MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY, NULL, or has `n` elements.
unsafe fn weights(from: *const c_int, n: usize, argument: &str) -> Result<Vec<i32>, Error> {
    if from.addr() == MPI_UNWEIGHTED || n == 0 {
        return Ok(vec![1; n]);
    }
    if from.addr() == MPI_WEIGHTS_EMPTY {
        let text = format!("argument {argument} is MPI_WEIGHTS_EMPTY, but there are {n} edges");
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    // SAFETY: `from` is neither of the two constants, so it is NULL or has `n` elements; the contract of this function says so.
    let weights = unsafe { list(from, n, argument) }?;
    if let Some(i) = weights.iter().position(|&w| w < 0) {
        let text = format!("argument {argument}[{i}] = {}: weights are not negative", weights[i]);
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    Ok(weights)
}

/// # Safety
/// `from` is NULL or has `n` elements.
unsafe fn ranks(
    comm: &CommObject,
    from: *const c_int,
    n: usize,
    argument: &str,
) -> Result<Vec<usize>, Error> {
    // SAFETY: `from` is NULL or has `n` elements; the contract of this function says so.
    let given = unsafe { list(from, n, argument) }?;
    given.into_iter().map(|place| rank(comm, place, argument, MPI_ERR_RANK)).collect()
}

fn degree(n: c_int, argument: &str) -> Result<usize, Error> {
    count(i64::from(n), argument).map_err(|e| Error::new(MPI_ERR_ARG, e.text()))
}

/// Makes a communicator of all ranks of `old` with these neighbours and hints. `call` names the MPI function.
fn distribute(
    old: &CommObject,
    part: Neighborhood,
    hints: Option<&weft_process::Info>,
    call: &'static str,
) -> Result<Comm, Error> {
    let made = old.arranged(old.size(), CommTopology::Distributed(part));
    let new = old.engine().block_on(&WaitingCall::new(call), made)?;
    inherited_with(old, new, hints, call)
}

/// MPI_Dist_graph_create_adjacent.
pub(crate) unsafe fn dist_graph_create_adjacent(
    handle: Comm,
    indegree: c_int,
    sources: *const c_int,
    sourceweights: *const c_int,
    outdegree: c_int,
    destinations: *const c_int,
    destweights: *const c_int,
    info: Info,
    _reorder: c_int,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    let hints = optional_info(info)?;
    not_null(newcomm, "comm_dist_graph")?;
    let old = intracomm(handle)?;
    let (into, out) = (degree(indegree, "indegree")?, degree(outdegree, "outdegree")?);
    // SAFETY: each array has as many elements as its degree, or is NULL, or is a constant of MPI, as MPI requires.
    let part = unsafe {
        let (from, to) = (
            ranks(&old, sources, into, "sources")?,
            ranks(&old, destinations, out, "destinations")?,
        );
        let from = from.into_iter().zip(weights(sourceweights, into, "sourceweights")?);
        let to = to.into_iter().zip(weights(destweights, out, "destweights")?);
        let weighted = sourceweights.addr() != MPI_UNWEIGHTED;
        Neighborhood { sources: from.collect(), destinations: to.collect(), weighted }
    };
    let new = distribute(&old, part, hints.as_ref(), "MPI_Dist_graph_create_adjacent")?;
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, new, "comm_dist_graph") }
}

/// MPI_Dist_graph_create.
pub(crate) unsafe fn dist_graph_create(
    handle: Comm,
    n: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    given: *const c_int,
    info: Info,
    _reorder: c_int,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    let hints = optional_info(info)?;
    not_null(newcomm, "comm_dist_graph")?;
    let old = intracomm(handle)?;
    let n = degree(n, "n")?;
    // SAFETY: `sources` and `degrees` have `n` elements, the other arrays the sum of the degrees, as MPI requires of the program.
    let edges = unsafe {
        let sources = ranks(&old, sources, n, "sources")?;
        let degrees = list(degrees, n, "degrees")?;
        let degrees =
            degrees.into_iter().map(|d| degree(d, "degrees")).collect::<Result<Vec<_>, _>>()?;
        let total = degrees.iter().sum();
        let destinations = ranks(&old, destinations, total, "destinations")?;
        let weights = weights(given, total, "weights")?;
        let from = sources.iter().zip(&degrees).flat_map(|(&s, &d)| std::iter::repeat_n(s, d));
        let edges = from.zip(destinations).zip(weights);
        edges.map(|((from, to), weight)| [from as i32, to as i32, weight]).collect::<Vec<Edge>>()
    };
    let call = "MPI_Dist_graph_create";
    let all = old.engine().block_on(&WaitingCall::new(call), old.all_edges(edges))?;
    let weighted = given.addr() != MPI_UNWEIGHTED;
    let part = Neighborhood { weighted, ..Neighborhood::at(old.rank(), &all) };
    let new = distribute(&old, part, hints.as_ref(), call)?;
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, new, "comm_dist_graph") }
}

/// MPI_Dist_graph_neighbors_count.
pub(crate) unsafe fn dist_graph_neighbors_count(
    handle: Comm,
    indegree: *mut c_int,
    outdegree: *mut c_int,
    weighted: *mut c_int,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let part = neighborhood(&comm)?;
    // SAFETY: `indegree`, `outdegree` and `weighted` are NULL or may be written, as MPI requires of the program.
    unsafe {
        store(indegree, part.sources.len() as c_int, "indegree")?;
        store(outdegree, part.destinations.len() as c_int, "outdegree")?;
        store(weighted, c_int::from(part.weighted), "weighted")
    }
}

/// MPI_Dist_graph_neighbors.
pub(crate) unsafe fn dist_graph_neighbors(
    handle: Comm,
    maxindegree: c_int,
    sources: *mut c_int,
    sourceweights: *mut c_int,
    maxoutdegree: c_int,
    destinations: *mut c_int,
    destweights: *mut c_int,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let part = neighborhood(&comm)?;
    let sides = [
        (&part.sources, maxindegree, sources, sourceweights, ["sources", "sourceweights"]),
        (
            &part.destinations,
            maxoutdegree,
            destinations,
            destweights,
            ["destinations", "destweights"],
        ),
    ];
    for (edges, most, to, weights, names) in sides {
        let edges = &edges[..edges.len().min(most.max(0) as usize)];
        // SAFETY: `to` is NULL or has `most` elements, and `edges` is cut to `most`, as MPI requires of the program.
        unsafe { store_list(to, edges.iter().map(|&(place, _)| place as c_int), names[0])? };
        // The weights of an unweighted graph are not written.
        if part.weighted && weights.addr() != MPI_UNWEIGHTED {
            // SAFETY: `weights` is NULL or has `most` elements, as MPI requires of the program.
            unsafe { store_list(weights, edges.iter().map(|&(_, weight)| weight), names[1])? };
        }
    }
    Ok(())
}
