// Collective operations: order, roots, operators, types, lengths, parts between pairs of ranks.
#include "collectives.h"

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
ERRONEOUS(two_roots_while_a_rank_looks, "collective mismatch", 3) {
    MPI_Request request, message;
    MPI_Ibcast(ints, 1, MPI_INT, rank == 1, world, &request);  // named
    if (rank == 2) {
        // Only after its wait does rank 1 send.
        int flag = 0;
        MPI_Irecv(more, 1, MPI_INT, 1, 3, world, &message);
        while (!flag) MPI_Test(&message, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(ints, 1, MPI_INT, 2, 3, world);
}
ERRONEOUS(two_roots_while_a_rank_probes, "collective mismatch", 3) {
    MPI_Request request;
    MPI_Ibcast(ints, 1, MPI_INT, rank == 1, world, &request);  // named
    int flag = rank != 2;
    while (!flag) MPI_Iprobe(1, 3, world, &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(ints, 1, MPI_INT, 2, 3, world);
    if (rank == 2) MPI_Recv(more, 1, MPI_INT, 1, 3, world, MPI_STATUS_IGNORE);
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
