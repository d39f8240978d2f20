// Collective operations: order, roots, operators, types, lengths, parts between pairs of ranks, neighborhoods, intercommunicators.
#include "catalogue.h"

static int counts[4] = {1, 1, 1, 1}, places[4] = {0, 100, 200, 300}, others[4] = {1, 1, 1, 1};

static MPI_Comm inter(void) {
    MPI_Comm half, both;
    MPI_Comm_split(world, rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 9, &both);
    MPI_Comm_free(&half);
    return both;
}
static MPI_Comm ring(int periodic) {
    MPI_Comm comm;
    MPI_Cart_create(world, 1, &size, &periodic, 0, &comm);
    return comm;
}

// Order.

ERRONEOUS(broadcast_and_barrier, "collective mismatch", 2) {
    if (rank == 0) MPI_Bcast(ints, 1, MPI_INT, 0, world);  // named
    if (rank == 1) MPI_Barrier(world);  // named
}
ERRONEOUS(reduce_and_allreduce, "collective mismatch", 2) {
    if (rank == 0) MPI_Reduce(ints, more, 1, MPI_INT, MPI_SUM, 0, world);  // named
    if (rank == 1) MPI_Allreduce(ints, more, 1, MPI_INT, MPI_SUM, world);  // named
}
ERRONEOUS(blocking_and_nonblocking, "collective mismatch", 2) {
    MPI_Request request;
    if (rank == 0) MPI_Barrier(world);  // named
    if (rank == 1) MPI_Ibarrier(world, &request), MPI_Wait(&request, no_status);  // named
}
ERRONEOUS(order_of_blocking_and_nonblocking, "collective mismatch", 2) {
    MPI_Request request;
    if (rank == 0) {
        MPI_Ibarrier(world, &request);  // named
        MPI_Bcast(ints, 1, MPI_INT, 0, world);
    } else {
        MPI_Bcast(ints, 1, MPI_INT, 0, world);  // named
        MPI_Ibarrier(world, &request);
    }
    MPI_Wait(&request, no_status);
}
CORRECT(blocking_between_nonblocking, 2) {
    MPI_Request requests[3];
    MPI_Ibarrier(world, &requests[0]);
    MPI_Ibcast(ints, 1, MPI_INT, 0, world, &requests[1]);
    MPI_Bcast(more, 1, MPI_INT, 1, world);
    MPI_Iallreduce(MPI_IN_PLACE, doubles, 1, MPI_DOUBLE, MPI_SUM, world, &requests[2]);
    // Ranks may wait in any order.
    for (int i = 0; i < 3; i++) MPI_Wait(&requests[rank ? i : 2 - i], no_status);
}
ERRONEOUS(nonblocking_operations_swapped, "collective mismatch", 2) {
    MPI_Request requests[2];
    if (rank == 0) MPI_Ibarrier(world, &requests[0]);  // named
    MPI_Ibcast(ints, 1, MPI_INT, 0, world, &requests[1]);  // named
    if (rank == 1) MPI_Ibarrier(world, &requests[0]);
    MPI_Waitall(2, requests, no_statuses);
}
CORRECT(nonblocking_operations_tested, 2) {
    MPI_Request requests[10];
    int flag = 0;
    for (int i = 0; i < 10; i++) MPI_Ibcast(ints + i, 1, MPI_INT, i % 2, world, &requests[i]);
    while (!flag) MPI_Testall(10, requests, &flag, no_statuses);
    MPI_Barrier(world);
}
ERRONEOUS(a_rank_leaves_out_a_barrier, "collective mismatch", 2) {
    if (rank == 0) MPI_Barrier(world);  // named
    MPI_Bcast(ints, 1, MPI_INT, 0, world);  // named
}
ERRONEOUS(one_call_more_before_the_end, "collective mismatch", 2) {
    MPI_Barrier(world);
    if (rank == 0) MPI_Bcast(ints, 1, MPI_INT, 0, world);  // named
}
ERRONEOUS(one_call_more_on_a_copy, "collective mismatch", 2) {
    MPI_Comm copy;
    MPI_Comm_dup(world, &copy);
    if (rank == 1) MPI_Allreduce(ints, more, 1, MPI_INT, MPI_SUM, copy);  // named
    MPI_Comm_free(&copy);  // named
}
ERRONEOUS(one_nonblocking_call_more, "collective mismatch", 2) {
    MPI_Request request;
    if (rank == 0) {
        MPI_Ibcast(ints, 1, MPI_INT, 0, world, &request);  // named
        MPI_Wait(&request, no_status);
    }
}
ERRONEOUS(two_communicators_in_other_order, "collective mismatch", 2) {
    MPI_Comm copy;
    MPI_Comm_dup(world, &copy);
    if (rank == 0) MPI_Barrier(world);  // named
    if (rank == 0) MPI_Comm_free(&copy);
    if (rank == 1) MPI_Comm_dup(world, &copy);  // named
}
CORRECT(the_last_call_is_nonblocking, 2) {
    MPI_Request request;
    MPI_Ibarrier(world, &request);
    MPI_Wait(&request, no_status);
}
ERRONEOUS(split_and_dup, "collective mismatch", 2) {
    MPI_Comm comm;
    if (rank == 0) MPI_Comm_split(world, 0, 0, &comm);  // named
    if (rank == 1) MPI_Comm_dup(world, &comm);  // named
}
CORRECT(split_with_other_colors, 3) {
    MPI_Comm comm;
    MPI_Comm_split(world, rank == 2 ? MPI_UNDEFINED : rank, 0, &comm);
    if (comm != MPI_COMM_NULL) MPI_Barrier(comm), MPI_Comm_free(&comm);
    MPI_Barrier(world);
}
ERRONEOUS(free_of_a_copy_and_barrier, "collective mismatch", 2) {
    MPI_Comm copy;
    MPI_Comm_dup(world, &copy);
    if (rank == 0) MPI_Barrier(copy);  // named
    MPI_Comm_free(&copy);  // named
}
ERRONEOUS(dimensions_differ, "collective mismatch", 2) {
    MPI_Comm comm;
    int dims[2] = {1 + rank, 2 - rank}, periods[2] = {0, 0};
    MPI_Cart_create(world, 2, dims, periods, 0, &comm);  // named
    MPI_Comm_free(&comm);
}

// Roots, operators, types and lengths.

ERRONEOUS(broadcast_from_two_roots, "collective mismatch", 2) {
    MPI_Bcast(ints, 1, MPI_INT, rank, world);  // named
}
ERRONEOUS(reduce_to_two_roots, "collective mismatch", 2) {
    MPI_Reduce(ints, more, 1, MPI_INT, MPI_SUM, rank, world);  // named
}
ERRONEOUS(gather_to_two_roots, "collective mismatch", 2) {
    MPI_Gather(ints, 1, MPI_INT, more, 1, MPI_INT, rank, world);  // named
}
ERRONEOUS(scatter_from_two_roots, "collective mismatch", 2) {
    MPI_Scatter(ints, 1, MPI_INT, more, 1, MPI_INT, rank, world);  // named
}
ERRONEOUS(gatherv_to_two_roots, "collective mismatch", 2) {
    MPI_Gatherv(ints, 1, MPI_INT, more, counts, places, MPI_INT, rank, world);  // named
}
CORRECT(one_root, 3) {
    MPI_Bcast(ints, 1, MPI_INT, 2, world);
    MPI_Reduce(ints, more, 1, MPI_INT, MPI_SUM, 1, world);
    MPI_Gather(ints, 1, MPI_INT, more, 1, MPI_INT, 1, world);
    MPI_Scatter(ints, 1, MPI_INT, more, 1, MPI_INT, 2, world);
}
ERRONEOUS(sum_and_product, "collective mismatch", 2) {
    MPI_Allreduce(ints, more, 1, MPI_INT, rank ? MPI_SUM : MPI_PROD, world);  // named
}
ERRONEOUS(scan_with_two_operators, "collective mismatch", 2) {
    MPI_Scan(ints, more, 1, MPI_INT, rank ? MPI_SUM : MPI_MAX, world);  // named
}
ERRONEOUS(exscan_with_two_operators, "collective mismatch", 2) {
    MPI_Exscan(ints, more, 1, MPI_INT, rank ? MPI_SUM : MPI_MAX, world);  // named
}
CORRECT(all_reductions, 3) {
    int each[3] = {1, 2, 3};
    MPI_Allreduce(ints, more, 2, MPI_INT, MPI_BAND, world);
    MPI_Scan(ints, more, 2, MPI_INT, MPI_SUM, world);
    MPI_Exscan(MPI_IN_PLACE, more, 2, MPI_INT, MPI_SUM, world);
    MPI_Reduce_scatter(ints, more, each, MPI_INT, MPI_SUM, world);
    MPI_Reduce_scatter_block(ints, more, 2, MPI_INT, MPI_SUM, world);
}
ERRONEOUS(int_and_float_sums, "collective mismatch", 2) {
    MPI_Allreduce(ints, more, 1, rank ? MPI_INT : MPI_FLOAT, MPI_SUM, world);  // named
}
ERRONEOUS(broadcast_of_other_type, "collective mismatch", 2) {
    MPI_Bcast(ints, 1, rank ? MPI_INT : MPI_FLOAT, 0, world);  // named
}
ERRONEOUS(broadcast_of_4_and_8, "collective mismatch", 2) {
    MPI_Bcast(ints, rank ? 8 : 4, MPI_INT, 0, world);  // named
}
ERRONEOUS(broadcast_of_0_and_8, "collective mismatch", 2) {
    MPI_Bcast(ints, rank ? 8 : 0, MPI_INT, 0, world);  // named
}
ERRONEOUS(allreduce_of_4_and_8, "collective mismatch", 2) {
    MPI_Allreduce(ints, more, rank ? 8 : 4, MPI_INT, MPI_SUM, world);  // named
}
ERRONEOUS(reduce_of_4_and_8, "collective mismatch", 2) {
    MPI_Reduce(ints, more, rank ? 8 : 4, MPI_INT, MPI_SUM, 0, world);  // named
}
ERRONEOUS(scan_of_4_and_8, "collective mismatch", 2) {
    MPI_Scan(ints, more, rank ? 8 : 4, MPI_INT, MPI_SUM, world);  // named
}
ERRONEOUS(nonblocking_broadcast_of_4_and_8, "collective mismatch", 2) {
    MPI_Request request;
    MPI_Ibcast(ints, rank ? 8 : 4, MPI_INT, 0, world, &request);  // named
    MPI_Wait(&request, no_status);
}
ERRONEOUS(gather_of_2_and_1, "collective mismatch", 2) {
    MPI_Gather(ints, 1 + rank, MPI_INT, more, 1, MPI_INT, 0, world);  // named
}
ERRONEOUS(scatter_of_1_and_2, "collective mismatch", 2) {
    MPI_Scatter(ints, 1, MPI_INT, more, 1 + rank, MPI_INT, 0, world);  // named
}
ERRONEOUS(allgather_of_1_and_2, "collective mismatch", 2) {
    MPI_Allgather(ints, 1, MPI_INT, more, 2, MPI_INT, world);  // named
}
ERRONEOUS(alltoall_of_1_and_2, "collective mismatch", 2) {
    MPI_Alltoall(ints, 1 + rank, MPI_INT, more, 1 + rank, MPI_INT, world);  // named
}
CORRECT(the_same_elements_by_other_types, 2) {
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Bcast(ints, rank ? 2 : 4, rank ? pair : MPI_INT, 0, world);
    MPI_Gather(ints, rank ? 1 : 2, rank ? pair : MPI_INT, more, 2, MPI_INT, 0, world);
    MPI_Allgather(ints, 1, pair, more, 2, MPI_INT, world);
    MPI_Alltoall(ints, 2, MPI_INT, more, 1, pair, world);
    MPI_Type_free(&pair);
}
CORRECT(packed_data, 2) {
    char buffer[100];
    int place = 0;
    MPI_Pack(ints, 3, MPI_INT, buffer, sizeof buffer, &place, world);
    MPI_Bcast(rank ? (void *)ints : buffer, rank ? 3 : place, rank ? MPI_INT : MPI_PACKED, 0, world);
}
ERRONEOUS(reduce_scatter_counts_differ, "collective mismatch", 2) {
    int each[2] = {1 + rank, 2 - rank};
    MPI_Reduce_scatter(ints, more, each, MPI_INT, MPI_SUM, world);  // named
}
ERRONEOUS(reduce_scatter_types_differ, "collective mismatch", 2) {
    MPI_Reduce_scatter(ints, more, counts, rank ? MPI_INT : MPI_FLOAT, MPI_SUM, world);  // named
}
ERRONEOUS(reduce_scatter_block_counts_differ, "collective mismatch", 2) {
    MPI_Reduce_scatter_block(ints, more, 1 + rank, MPI_INT, MPI_SUM, world);  // named
}

// MPI_IN_PLACE.

ERRONEOUS(allreduce_in_place_at_one_rank, "collective mismatch", 2) {
    MPI_Allreduce(rank ? MPI_IN_PLACE : ints, more, 1, MPI_INT, MPI_SUM, world);  // named
}
ERRONEOUS(allgather_in_place_at_one_rank, "collective mismatch", 2) {
    MPI_Allgather(rank ? MPI_IN_PLACE : ints, 1, MPI_INT, more, 1, MPI_INT, world);  // named
}
ERRONEOUS(alltoall_in_place_at_one_rank, "collective mismatch", 2) {
    MPI_Alltoall(rank ? MPI_IN_PLACE : ints, 1, MPI_INT, more, 1, MPI_INT, world);  // named
}
ERRONEOUS(reduce_in_place_at_another_rank, "collective mismatch", 2) {
    MPI_Reduce(rank ? MPI_IN_PLACE : ints, more, 1, MPI_INT, MPI_SUM, 0, world);  // named
}
ERRONEOUS(gather_in_place_at_another_rank, "collective mismatch", 2) {
    MPI_Gather(rank ? MPI_IN_PLACE : ints, 1, MPI_INT, more, 1, MPI_INT, 0, world);  // named
}
CORRECT(in_place, 2) {
    MPI_Allreduce(MPI_IN_PLACE, more, 1, MPI_INT, MPI_SUM, world);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, more, 1, MPI_INT, world);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, more, 1, MPI_INT, world);
    MPI_Reduce(rank ? ints : MPI_IN_PLACE, more, 1, MPI_INT, MPI_SUM, 0, world);
    MPI_Gather(rank ? ints : MPI_IN_PLACE, 1, MPI_INT, more, 1, MPI_INT, 0, world);
    MPI_Scatter(ints, 1, MPI_INT, rank ? more : MPI_IN_PLACE, 1, MPI_INT, 0, world);
    MPI_Reduce_scatter(MPI_IN_PLACE, more, counts, MPI_INT, MPI_SUM, world);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, more, counts, places, MPI_INT, world);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, more, counts, places, MPI_INT, world);
    MPI_Gatherv(rank ? ints : MPI_IN_PLACE, 1, MPI_INT, more, counts, places, MPI_INT, 0, world);
    MPI_Scatterv(ints, counts, places, MPI_INT, rank ? more : MPI_IN_PLACE, 1, MPI_INT, 0, world);
    MPI_Scan(MPI_IN_PLACE, more, 1, MPI_INT, MPI_SUM, world);
}

// Parts between pairs of ranks.

ERRONEOUS(gatherv_longer_than_its_place, "collective mismatch", 3) {
    MPI_Gatherv(ints, rank == 1 ? 3 : 1, MPI_INT, more, counts, places, MPI_INT, 0, world);  // named
}
ERRONEOUS(gatherv_shorter_than_its_place, "collective mismatch", 3) {
    if (rank == 0) counts[2] = 4;
    MPI_Gatherv(ints, 1, MPI_INT, more, counts, places, MPI_INT, 0, world);  // named
}
ERRONEOUS(gatherv_of_other_type, "collective mismatch", 2) {
    MPI_Gatherv(ints, 1, rank ? MPI_FLOAT : MPI_INT, more, counts, places, MPI_INT, 0, world);  // named
}
CORRECT(gatherv_of_other_lengths, 3) {
    int each[3] = {1, 2, 3};
    MPI_Gatherv(ints, rank + 1, MPI_INT, more, each, places, MPI_INT, 2, world);
    MPI_Gatherv(ints, rank + 1, MPI_INT, more, rank == 1 ? each : NULL, rank == 1 ? places : NULL, MPI_INT, 1, world);
}
ERRONEOUS(scatterv_shorter_than_its_part, "collective mismatch", 3) {
    if (rank == 0) counts[1] = 2;
    MPI_Scatterv(ints, counts, places, MPI_INT, more, 1, MPI_INT, 0, world);  // named
}
ERRONEOUS(scatterv_longer_than_its_part, "collective mismatch", 3) {
    MPI_Scatterv(ints, counts, places, MPI_INT, more, 5, MPI_INT, 0, world);  // named
}
CORRECT(scatterv_of_other_lengths, 3) {
    int each[3] = {1, 2, 0};
    MPI_Scatterv(ints, each, places, MPI_INT, more, each[rank], MPI_INT, 0, world);
}
ERRONEOUS(allgatherv_counts_differ, "collective mismatch", 3) {
    if (rank == 2) counts[0] = 2;
    MPI_Allgatherv(ints, 1, MPI_INT, more, counts, places, MPI_INT, world);  // named
}
ERRONEOUS(allgatherv_sends_too_much, "collective mismatch", 2) {
    MPI_Allgatherv(ints, 1 + rank, MPI_INT, more, counts, places, MPI_INT, world);  // named
}
CORRECT(allgatherv_of_other_lengths, 3) {
    int each[3] = {4, 0, 3};
    MPI_Allgatherv(ints, each[rank], MPI_INT, more, each, places, MPI_INT, world);
}
ERRONEOUS(alltoallv_counts_differ, "collective mismatch", 3) {
    if (rank == 1) counts[2] = 2;
    MPI_Alltoallv(ints, counts, places, MPI_INT, more, others, places, MPI_INT, world);  // named
}
ERRONEOUS(alltoallv_types_differ, "collective mismatch", 2) {
    MPI_Alltoallv(ints, counts, places, rank ? MPI_INT : MPI_FLOAT, more, others, places, MPI_INT, world);  // named
}
CORRECT(alltoallv_of_other_lengths, 3) {
    for (int i = 0; i < size; i++) counts[i] = 1 + 2 * rank + i, others[i] = 1 + 2 * i + rank;
    MPI_Alltoallv(ints, counts, places, MPI_INT, more, others, places, MPI_INT, world);
}
ERRONEOUS(alltoallw_types_differ, "collective mismatch", 2) {
    MPI_Datatype sent[2] = {MPI_INT, MPI_INT}, received[2] = {MPI_INT, MPI_INT};
    int bytes[2] = {0, 400};
    if (rank == 0) sent[1] = MPI_FLOAT;
    MPI_Alltoallw(ints, counts, bytes, sent, more, others, bytes, received, world);  // named
}
CORRECT(alltoallw_of_other_types, 2) {
    MPI_Datatype sent[2] = {MPI_INT, MPI_FLOAT}, received[2] = {MPI_INT, MPI_FLOAT};
    int bytes[2] = {0, 400};
    if (rank == 1) sent[0] = MPI_FLOAT, received[0] = MPI_FLOAT, sent[1] = received[1] = MPI_DOUBLE;
    MPI_Alltoallw(ints, counts, bytes, sent, more, others, bytes, received, world);
}
ERRONEOUS(nonblocking_alltoallv_counts_differ, "collective mismatch", 2) {
    MPI_Request request;
    if (rank == 1) counts[0] = 2;
    MPI_Ialltoallv(ints, counts, places, MPI_INT, more, others, places, MPI_INT, world, &request);  // named
    MPI_Wait(&request, no_status);
}
ERRONEOUS(nonblocking_gatherv_counts_differ, "collective mismatch", 2) {
    MPI_Request request;
    MPI_Igatherv(ints, 1 + rank, MPI_INT, more, counts, places, MPI_INT, 0, world, &request);  // named
    MPI_Wait(&request, no_status);
}
CORRECT(nonblocking_parts, 3) {
    MPI_Request requests[4];
    int each[3] = {1, 2, 3};
    MPI_Ialltoallv(ints, counts, places, MPI_INT, more, others, places, MPI_INT, world, &requests[0]);
    MPI_Iallgatherv(ints, each[rank], MPI_INT, large, each, places, MPI_INT, world, &requests[1]);
    MPI_Igatherv(ints, each[rank], MPI_INT, large + 1000, each, places, MPI_INT, 0, world, &requests[2]);
    MPI_Iscatterv(ints, each, places, MPI_INT, large + 2000, each[rank], MPI_INT, 0, world, &requests[3]);
    MPI_Waitall(4, requests, no_statuses);
}

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
