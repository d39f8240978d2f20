// Collective operations: persistent ones, neighborhoods, intercommunicators, files.
#include "collectives.h"

// Persistent operations.

ERRONEOUS(persistent_roots_differ, "collective mismatch", 2) {
    MPI_Request request;
    MPI_Bcast_init(ints, 1, MPI_INT, rank, world, MPI_INFO_NULL, &request);  // named
    MPI_Start(&request);
    MPI_Wait(&request, no_status);
    MPI_Request_free(&request);
}
ERRONEOUS(persistent_operators_differ, "collective mismatch", 2) {
    MPI_Request request;
    MPI_Allreduce_init(ints, more, 1, MPI_INT, rank ? MPI_SUM : MPI_MAX, world, MPI_INFO_NULL, &request);  // named
    MPI_Request_free(&request);
}
ERRONEOUS(persistent_alltoallv_counts_differ, "collective mismatch", 2) {
    MPI_Request request;
    if (rank == 1) counts[0] = 2;
    MPI_Alltoallv_init(ints, counts, places, MPI_INT, more, others, places, MPI_INT, world, MPI_INFO_NULL, &request);  // named
    MPI_Request_free(&request);
}
ERRONEOUS(persistent_and_blocking, "collective mismatch", 2) {
    MPI_Request request;
    if (rank == 0) MPI_Barrier_init(world, MPI_INFO_NULL, &request);  // named
    if (rank == 1) MPI_Barrier(world);  // named
}
CORRECT(persistent_operations, 2) {
    MPI_Request requests[2];
    MPI_Bcast_init(ints, 4, MPI_INT, 1, world, MPI_INFO_NULL, &requests[0]);
    MPI_Alltoallv_init(ints + 10, counts, places, MPI_INT, more, others, places, MPI_INT, world, MPI_INFO_NULL, &requests[1]);
    for (int i = 0; i < 3; i++) MPI_Startall(2, requests), MPI_Waitall(2, requests, no_statuses);
    for (int i = 0; i < 2; i++) MPI_Request_free(&requests[i]);
}

// Neighborhoods.

ERRONEOUS(neighbors_send_other_lengths, "collective mismatch", 3) {
    MPI_Comm comm = ring(0);
    MPI_Neighbor_allgather(ints, 1 + rank, MPI_INT, more, 1, MPI_INT, comm);  // named
    MPI_Comm_free(&comm);
}
ERRONEOUS(neighbors_send_other_types, "collective mismatch", 2) {
    MPI_Comm comm = ring(0);
    MPI_Neighbor_alltoall(ints, 1, rank ? MPI_INT : MPI_FLOAT, more, 1, MPI_INT, comm);  // named
    MPI_Comm_free(&comm);
}
ERRONEOUS(neighbor_alltoallv_counts_differ, "collective mismatch", 3) {
    MPI_Comm comm = ring(0);
    if (rank == 1) counts[1] = 2;
    MPI_Neighbor_alltoallv(ints, counts, places, MPI_INT, more, others, places, MPI_INT, comm);  // named
    MPI_Comm_free(&comm);
}
ERRONEOUS(neighbors_of_one_side, "collective mismatch", 3) {
    MPI_Comm comm;
    int next = (rank + 1) % 3, before = (rank + 2) % 3;
    // Rank 1 does not name its source.
    MPI_Dist_graph_create_adjacent(world, rank != 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    MPI_Neighbor_alltoall(ints, 1, MPI_INT, more, 1, MPI_INT, comm);  // named
    MPI_Comm_free(&comm);
}
ERRONEOUS(nonblocking_neighbors_send_other_lengths, "collective mismatch", 2) {
    MPI_Request request;
    MPI_Comm comm = ring(0);
    MPI_Ineighbor_allgather(ints, 1 + rank, MPI_INT, more, 1, MPI_INT, comm, &request);  // named
    MPI_Wait(&request, no_status);
    MPI_Comm_free(&comm);
}
CORRECT(neighbors_in_a_line, 3) {
    MPI_Comm comm = ring(0);
    MPI_Request request;
    MPI_Neighbor_allgather(ints, 2, MPI_INT, more, 2, MPI_INT, comm);
    MPI_Neighbor_alltoall(ints, 2, MPI_INT, more, 2, MPI_INT, comm);
    MPI_Ineighbor_alltoall(ints, 2, MPI_INT, more, 2, MPI_INT, comm, &request);
    MPI_Wait(&request, no_status);
    MPI_Comm_free(&comm);
}
CORRECT(neighbors_in_a_ring_of_two, 2) {
    MPI_Comm comm = ring(1);
    int sent[2] = {1, 2}, received[2] = {2, 1};
    MPI_Neighbor_alltoallv(ints, sent, places, MPI_INT, more, received, places, MPI_INT, comm);
    MPI_Comm_free(&comm);
}
CORRECT(neighbors_in_a_graph, 3) {
    MPI_Comm comm;
    int next = (rank + 1) % 3, before = (rank + 2) % 3;
    MPI_Dist_graph_create_adjacent(world, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    MPI_Neighbor_allgatherv(ints, 1 + rank, MPI_INT, more, (int[]){1 + before}, places, MPI_INT, comm);
    MPI_Comm_free(&comm);
}

// Intercommunicators.

ERRONEOUS(inter_names_differ, "collective mismatch", 2) {
    MPI_Comm both = inter();
    if (rank == 0) MPI_Barrier(both);  // named
    if (rank == 1) MPI_Allreduce(ints, more, 1, MPI_INT, MPI_SUM, both);  // named
    MPI_Comm_free(&both);
}
ERRONEOUS(inter_without_root, "collective mismatch", 2) {
    MPI_Comm both = inter();
    MPI_Bcast(ints, 1, MPI_INT, 0, both);  // named
    MPI_Comm_free(&both);
}
ERRONEOUS(inter_two_roots, "collective mismatch", 2) {
    MPI_Comm both = inter();
    MPI_Bcast(ints, 1, MPI_INT, MPI_ROOT, both);  // named
    MPI_Comm_free(&both);
}
ERRONEOUS(inter_wrong_root, "collective mismatch", 4) {
    MPI_Comm both = inter();
    if (rank == 2) MPI_Bcast(ints, 1, MPI_INT, MPI_ROOT, both);  // named
    if (rank == 0) MPI_Bcast(ints, 1, MPI_INT, MPI_PROC_NULL, both);
    if (rank % 2) MPI_Bcast(ints, 1, MPI_INT, 0, both);  // named
    MPI_Comm_free(&both);
}
ERRONEOUS(inter_lengths_differ, "collective mismatch", 2) {
    MPI_Comm both = inter();
    if (rank == 0) MPI_Bcast(ints, 4, MPI_INT, MPI_ROOT, both);  // named
    if (rank == 1) MPI_Bcast(ints, 8, MPI_INT, 0, both);  // named
    MPI_Comm_free(&both);
}
ERRONEOUS(inter_allgather_lengths_differ, "collective mismatch", 2) {
    MPI_Comm both = inter();
    MPI_Allgather(ints, 1 + rank, MPI_INT, more, 1 + rank, MPI_INT, both);  // named
    MPI_Comm_free(&both);
}
ERRONEOUS(inter_operators_differ, "collective mismatch", 2) {
    MPI_Comm both = inter();
    MPI_Allreduce(ints, more, 1, MPI_INT, rank ? MPI_SUM : MPI_MAX, both);  // named
    MPI_Comm_free(&both);
}
ERRONEOUS(inter_alltoallv_counts_differ, "collective mismatch", 2) {
    MPI_Comm both = inter();
    if (rank == 0) counts[0] = 2;
    MPI_Alltoallv(ints, counts, places, MPI_INT, more, others, places, MPI_INT, both);  // named
    MPI_Comm_free(&both);
}
CORRECT(inter_operations, 4) {
    MPI_Comm both = inter();
    int root = rank == 2 ? MPI_ROOT : rank == 0 ? MPI_PROC_NULL : 1;
    MPI_Request request;
    MPI_Barrier(both);
    MPI_Bcast(ints, 4, MPI_INT, root, both);
    MPI_Ibcast(ints, 4, MPI_INT, root, both, &request);
    MPI_Wait(&request, no_status);
    MPI_Allreduce(ints, more, 2, MPI_INT, MPI_SUM, both);
    MPI_Reduce(ints, more, 2, MPI_INT, MPI_SUM, root, both);
    MPI_Gather(ints, 2, MPI_INT, more, 2, MPI_INT, root, both);
    MPI_Scatter(ints, 2, MPI_INT, more, 2, MPI_INT, root, both);
    // Groups may send other lengths to each other.
    MPI_Allgather(ints, 1 + rank % 2, MPI_INT, more, 2 - rank % 2, MPI_INT, both);
    MPI_Gatherv(ints, 1, MPI_INT, more, counts, places, MPI_INT, root, both);
    MPI_Alltoallv(ints, counts, places, MPI_INT, more, others, places, MPI_INT, both);
    MPI_Comm_free(&both);
}
CORRECT(inter_groups_of_other_sizes, 3) {
    MPI_Comm both = inter();
    MPI_Reduce_scatter_block(ints, more, rank % 2 ? 4 : 2, MPI_INT, MPI_SUM, both);
    MPI_Allgather(ints, 1 + rank % 2, MPI_INT, more, 2 - rank % 2, MPI_INT, both);
    MPI_Comm_free(&both);
}
CORRECT(inter_merge, 4) {
    MPI_Comm both = inter(), all;
    MPI_Intercomm_merge(both, rank % 2, &all);
    MPI_Barrier(all);
    MPI_Comm_free(&all);
    MPI_Comm_free(&both);
}

// Files.

static MPI_File file(void) {
    MPI_File fh;
    char name[100];
    int id = 0;
    if (rank == 0) id = (int)getpid();
    MPI_Bcast(&id, 1, MPI_INT, 0, world);
    snprintf(name, sizeof name, "/tmp/weft-check-%d", id);
    MPI_File_open(world, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &fh);
    return fh;
}
ERRONEOUS(file_modes_differ, "collective mismatch", 2) {
    MPI_File fh;
    MPI_File_open(world, "/dev/null", rank ? MPI_MODE_RDONLY : MPI_MODE_WRONLY, MPI_INFO_NULL, &fh);  // named
    MPI_File_close(&fh);
}
ERRONEOUS(file_open_and_barrier, "collective mismatch", 2) {
    MPI_File fh;
    if (rank == 0) MPI_File_open(world, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);  // named
    if (rank == 1) MPI_Barrier(world);  // named
}
ERRONEOUS(file_write_all_and_close, "collective mismatch", 2) {
    MPI_File fh = file();
    if (rank == 0) MPI_File_write_all(fh, ints, 1, MPI_INT, no_status);  // named
    MPI_File_close(&fh);  // named
}
ERRONEOUS(file_write_all_and_read_all, "collective mismatch", 2) {
    MPI_File fh = file();
    if (rank == 0) MPI_File_write_all(fh, ints, 1, MPI_INT, no_status);  // named
    if (rank == 1) MPI_File_read_all(fh, ints, 1, MPI_INT, no_status);  // named
    MPI_File_close(&fh);
}
ERRONEOUS(file_write_at_all_and_sync, "collective mismatch", 2) {
    MPI_File fh = file();
    if (rank == 0) MPI_File_write_at_all(fh, 0, ints, 1, MPI_INT, no_status);  // named
    if (rank == 1) MPI_File_sync(fh);  // named
    MPI_File_close(&fh);
}
ERRONEOUS(file_sizes_differ, "collective mismatch", 2) {
    MPI_File fh = file();
    MPI_File_set_size(fh, 100 * rank);  // named
    MPI_File_close(&fh);
}
ERRONEOUS(file_nonblocking_and_blocking, "collective mismatch", 2) {
    MPI_Request request;
    MPI_File fh = file();
    if (rank == 0) MPI_File_iwrite_all(fh, ints, 1, MPI_INT, &request), MPI_Wait(&request, no_status);  // named
    if (rank == 1) MPI_File_write_all(fh, ints, 1, MPI_INT, no_status);  // named
    MPI_File_close(&fh);
}
CORRECT(file_operations, 2) {
    MPI_Request request;
    MPI_File fh = file();
    MPI_File_set_size(fh, 0);
    MPI_File_set_view(fh, 4 * rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    // Ranks may write other lengths.
    MPI_File_write_all(fh, ints, 1 + rank, MPI_INT, no_status);
    MPI_File_write_at_all(fh, 100 * rank, ints, 10 * rank, MPI_INT, no_status);
    MPI_File_iwrite_at_all(fh, 0, ints, 1, MPI_INT, &request);
    MPI_Wait(&request, no_status);
    MPI_File_sync(fh);
    if (rank == 0) MPI_File_write_at(fh, 0, ints, 1, MPI_INT, no_status);
    MPI_File_read_at_all_begin(fh, 0, more, 1, MPI_INT);
    MPI_File_read_at_all_end(fh, more, no_status);
    MPI_File_close(&fh);
}
CORRECT(file_of_one_rank, 2) {
    MPI_File fh;
    if (rank == 0) {
        MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);
        MPI_File_read_all(fh, ints, 1, MPI_INT, no_status);
        MPI_File_close(&fh);
    }
    MPI_Barrier(world);
}
