// Errors in MPI calls, each beside a correct program, by the name in the first argument. Runs on 2 ranks.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size;
static MPI_Comm world = MPI_COMM_WORLD;
static int ints[2000];
static double doubles[200];
static int large[1 << 20];

static void send_ints_as_double(void) {
    if (rank == 0) MPI_Send(ints, 2, MPI_INT, 1, 5, world);
    if (rank == 1) MPI_Recv(doubles, 1, MPI_DOUBLE, 0, 5, world, MPI_STATUS_IGNORE);
}
static void isend_floats_as_ints(void) {
    MPI_Request requests[2];
    MPI_Irecv(ints, 10, MPI_INT, 1 - rank, 5, world, &requests[0]);
    MPI_Isend(doubles, 4, MPI_FLOAT, 1 - rank, 5, world, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}
static void persistent_with_other_type(void) {
    MPI_Request request;
    if (rank == 0) MPI_Send_init(ints, 1, MPI_INT, 1, 5, world, &request);
    if (rank == 1) MPI_Recv_init(ints, 1, MPI_FLOAT, 0, 5, world, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}
static void matched_receive_of_other_type(void) {
    if (rank == 0) MPI_Send(ints, 1, MPI_INT, 1, 5, world);
    if (rank == 1) {
        MPI_Message message;
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(ints, 1, MPI_FLOAT, &message, MPI_STATUS_IGNORE);
    }
}
static void structure_with_other_order(void) {
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, type;
    if (rank == 1) types[0] = MPI_DOUBLE, types[1] = MPI_INT;
    MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_commit(&type);
    if (rank == 0) MPI_Send(doubles, 1, type, 1, 5, world);
    if (rank == 1) MPI_Recv(doubles, 1, type, 0, 5, world, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
}
static void longer_receive_of_other_type(void) {
    MPI_Datatype type;
    int lengths[2] = {2, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_commit(&type);
    if (rank == 0) MPI_Send(ints, 3, MPI_INT, 1, 5, world);
    if (rank == 1) MPI_Recv(doubles, 10, type, 0, 5, world, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
}
static void large_send_of_other_type(void) {
    if (rank == 0) MPI_Send(large, 1 << 20, MPI_INT, 1, 5, world);
    if (rank == 1) MPI_Recv(large, 1 << 20, MPI_FLOAT, 0, 5, world, MPI_STATUS_IGNORE);
}
static void early_message_of_other_type(void) {
    if (rank == 0) {
        MPI_Send(ints, 1, MPI_INT, 1, 5, world);
        MPI_Ssend(ints, 1, MPI_INT, 1, 6, world);
    } else {
        MPI_Recv(ints, 1, MPI_INT, 0, 6, world, MPI_STATUS_IGNORE);
        MPI_Recv(ints, 1, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
    }
}
static void types_change_in_one_call(void) {
    // One call site, whose third message is wrong.
    for (int i = 0; i < 4; i++) {
        if (rank == 0) MPI_Send(ints, 1, i == 2 ? MPI_FLOAT : MPI_INT, 1, 5, world);
        if (rank == 1) MPI_Recv(ints, 1, MPI_INT, 0, 5, world, MPI_STATUS_IGNORE);
    }
}
static void sendrecv_of_other_type(void) {
    MPI_Sendrecv(ints, 2, MPI_INT, 1 - rank, 5, doubles, 1, MPI_DOUBLE, 1 - rank, 5, world, MPI_STATUS_IGNORE);
}
static void replace_with_other_type(void) {
    MPI_Sendrecv_replace(ints, 1, rank ? MPI_INT : MPI_FLOAT, 1 - rank, 5, 1 - rank, 5, world, MPI_STATUS_IGNORE);
}
static void isendrecv_of_other_type(void) {
    MPI_Request request;
    MPI_Isendrecv(ints, 2, MPI_INT, 1 - rank, 5, doubles, 1, MPI_DOUBLE, 1 - rank, 5, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void buffered_send_of_other_type(void) {
    static char buffer[1000];
    void *detached;
    int bytes;
    MPI_Buffer_attach(buffer, sizeof buffer);
    if (rank == 0) MPI_Bsend(ints, 1, MPI_INT, 1, 5, world);
    if (rank == 1) MPI_Recv(ints, 1, MPI_FLOAT, 0, 5, world, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&detached, &bytes);
}
static void nonblocking_matched_receive_of_other_type(void) {
    if (rank == 0) MPI_Ssend(ints, 1, MPI_INT, 1, 5, world);
    if (rank == 1) {
        MPI_Message message;
        MPI_Request request;
        int flag = 0;
        while (!flag) MPI_Improbe(0, 5, world, &flag, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(ints, 1, MPI_FLOAT, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

// Sends a message to the other rank of a communicator, which receives it with a type.
static void exchange_on(MPI_Comm comm, MPI_Datatype type) {
    int sends = rank == 0;
    if (sends) MPI_Send(ints, 1, MPI_INT, 1, 5, comm);
    if (!sends) MPI_Recv(ints, 1, type, 0, 5, comm, MPI_STATUS_IGNORE);
}
static MPI_Comm nonblocking_copy(void) {
    MPI_Comm copy;
    MPI_Request request;
    MPI_Comm_idup(world, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return copy;
}
static void message_on_nonblocking_copy(void) {
    MPI_Comm copy = nonblocking_copy();
    exchange_on(copy, MPI_FLOAT);
    MPI_Comm_free(&copy);
}
static MPI_Comm from_group(void) {
    MPI_Comm made;
    MPI_Group group;
    MPI_Comm_group(world, &group);
    MPI_Comm_create_from_group(group, "kinds", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
    MPI_Group_free(&group);
    return made;
}
static void message_on_communicator_from_group(void) {
    MPI_Comm made = from_group();
    exchange_on(made, MPI_FLOAT);
    MPI_Comm_free(&made);
}
static void exchange_on_intercommunicator(MPI_Datatype type) {
    MPI_Comm inter;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, world, 1 - rank, 9, &inter);
    if (rank == 0) MPI_Send(ints, 1, MPI_INT, 0, 5, inter);
    if (rank == 1) MPI_Recv(ints, 1, type, 0, 5, inter, MPI_STATUS_IGNORE);
    MPI_Comm_free(&inter);
}
static void message_on_intercommunicator(void) { exchange_on_intercommunicator(MPI_FLOAT); }
static const char *program;
static void exchange_with_child(MPI_Datatype type) {
    MPI_Comm children, parent;
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        char *arguments[] = {"spawned_child", NULL};
        MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, world, &children, MPI_ERRCODES_IGNORE);
        if (rank == 0) MPI_Send(ints, 1, MPI_INT, 0, 5, children);
        if (rank == 1) MPI_Recv(ints, 1, type, 0, 6, children, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&children);
    } else {
        MPI_Recv(ints, 1, MPI_INT, 0, 5, parent, MPI_STATUS_IGNORE);
        MPI_Send(ints, 1, MPI_INT, 1, 6, parent);
        MPI_Comm_disconnect(&parent);
    }
}
static void message_from_spawned_child(void) { exchange_with_child(MPI_FLOAT); }

// Two partitioned transfers with one tag. Only the second has the type.
static void partitioned(MPI_Datatype type) {
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++) {
        if (rank == 0) MPI_Psend_init(ints + 100 * i, 4, 3, MPI_INT, 1, 5, world, MPI_INFO_NULL, &requests[i]);
        if (rank == 1) MPI_Precv_init(ints + 100 * i, 2, 6, i ? type : MPI_INT, 0, 5, world, MPI_INFO_NULL, &requests[i]);
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 1; i >= 0; i--) {
            MPI_Start(&requests[i]);
            if (rank == 0) MPI_Pready_range(0, 3, requests[i]);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
    }
    for (int i = 0; i < 2; i++) MPI_Request_free(&requests[i]);
}
static void partitioned_of_other_type(void) { partitioned(MPI_FLOAT); }

static void roots_differ(void) { MPI_Bcast(ints, 1, MPI_INT, rank, world); }
static void operators_differ(void) {
    MPI_Allreduce(ints, ints + 1, 1, MPI_INT, rank ? MPI_SUM : MPI_MAX, world);
}
static void types_differ_in_reduce(void) {
    MPI_Reduce(ints, ints + 1, 1, rank ? MPI_INT : MPI_FLOAT, MPI_SUM, 0, world);
}
static void lengths_differ(void) { MPI_Bcast(ints, 1 + rank, MPI_INT, 0, world); }
static void operations_differ(void) {
    if (rank == 0) {
        MPI_Bcast(ints, 1, MPI_INT, 0, world);
    } else {
        MPI_Barrier(world);
    }
}
static void nonblocking_roots_differ(void) {
    MPI_Request request;
    MPI_Ibcast(ints, 1, MPI_INT, rank, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void nonblocking_order_differs(void) {
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++) {
        if ((i + rank) % 2) {
            MPI_Ibarrier(world, &requests[i]);
        } else {
            MPI_Ibcast(ints, 1, MPI_INT, 0, world, &requests[i]);
        }
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}
static void gather_of_other_type(void) {
    MPI_Gather(ints, 2, MPI_INT, doubles, 1, MPI_DOUBLE, 0, world);
}

static void two_receives_in_one_buffer(void) {
    MPI_Request requests[2];
    if (rank == 0) {
        for (int i = 0; i < 2; i++) MPI_Irecv(ints + i, 2, MPI_INT, 1, i, world, &requests[i]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
        for (int i = 0; i < 2; i++) MPI_Send(ints, 2, MPI_INT, 0, i, world);
    }
}
static void receive_into_memory_that_is_sent(void) {
    MPI_Request request;
    MPI_Isend(ints, 100, MPI_INT, 1 - rank, 5, world, &request);
    MPI_Recv(ints + 50, 100, MPI_INT, 1 - rank, 5, world, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void reduce_into_its_operand(void) {
    MPI_Request request;
    MPI_Iallreduce(ints, ints + 1, 2, MPI_INT, MPI_SUM, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void buffer_changed(void) {
    MPI_Request request;
    if (rank == 0) {
        MPI_Isend(large, 1 << 20, MPI_INT, 1, 5, world, &request);
        large[0] = 7;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(large, 1 << 20, MPI_INT, 0, 5, world, MPI_STATUS_IGNORE);
    }
}

static void send_not_completed(void) {
    MPI_Request request;
    if (rank == 0) MPI_Isend(ints, 1, MPI_INT, 1, 5, world, &request);
    if (rank == 1) MPI_Recv(ints, 1, MPI_INT, 0, 5, world, MPI_STATUS_IGNORE);
}
static void persistent_not_freed(void) {
    MPI_Request request;
    MPI_Send_init(ints, 1, MPI_INT, 1 - rank, 5, world, &request);
}
static void message_not_received(void) {
    if (rank == 0) MPI_Send(ints, 1, MPI_INT, 1, 5, world);
}
static void message_not_received_on_copy(void) {
    MPI_Comm copy = nonblocking_copy();
    exchange_on(copy, MPI_INT);
    if (rank == 0) MPI_Send(ints, 1, MPI_INT, 1, 5, copy);
    MPI_Barrier(world);
    MPI_Comm_free(&copy);
}
static void partitioned_not_freed(void) {
    MPI_Request request;
    if (rank == 0) MPI_Psend_init(ints, 1, 1, MPI_INT, 1, 5, world, MPI_INFO_NULL, &request);
    if (rank == 1) MPI_Precv_init(ints, 1, 1, MPI_INT, 0, 5, world, MPI_INFO_NULL, &request);
}
static void communicator_not_freed(void) {
    MPI_Comm copy;
    MPI_Comm_dup(world, &copy);
}
static void datatype_not_freed(void) {
    MPI_Datatype type;
    MPI_Type_contiguous(3, MPI_INT, &type);
}
static void group_not_freed(void) {
    MPI_Group group;
    MPI_Comm_group(world, &group);
}
static void add(void *in, void *inout, int *n, MPI_Datatype *type) { (void)in, (void)inout, (void)n, (void)type; }
static void operator_not_freed(void) {
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
}
static void window_not_freed(void) {
    MPI_Win win;
    MPI_Win_create(ints, sizeof ints, 4, MPI_INFO_NULL, world, &win);
}

// Correct programs.

static void messages(void) {
    MPI_Datatype column;
    MPI_Request requests[4];
    MPI_Type_vector(10, 1, 20, MPI_INT, &column);
    MPI_Type_commit(&column);
    // Two columns lie between each other, and a receive may be longer than its message.
    for (int i = 0; i < 2; i++) {
        MPI_Irecv(ints + i, 1, column, 1 - rank, i, world, &requests[i]);
        MPI_Isend(ints + 1000, 5 + i, MPI_INT, 1 - rank, i, world, &requests[2 + i]);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Type_free(&column);
    char packed[100];
    int place = 0;
    MPI_Pack(ints, 3, MPI_INT, packed, sizeof packed, &place, world);
    MPI_Sendrecv(packed, place, MPI_PACKED, 1 - rank, 7, ints, 100, MPI_INT, 1 - rank, 7, world, MPI_STATUS_IGNORE);
}
static void wildcards(void) {
    MPI_Request requests[4];
    if (rank == 0) {
        MPI_Irecv(ints, 100, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &requests[0]);
        MPI_Irecv(ints + 100, 1, MPI_INT, 1, 2, world, &requests[1]);
        MPI_Irecv(doubles, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 3, world, &requests[2]);
        MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    } else {
        MPI_Send(ints, 100, MPI_INT, 0, 2, world);
        MPI_Send(ints, 1, MPI_INT, 0, 2, world);
        MPI_Send(doubles, 1, MPI_DOUBLE, 0, 3, world);
    }
}
static void cancelled_receive(void) {
    MPI_Request request;
    MPI_Irecv(ints, 1, MPI_INT, 1 - rank, 9, world, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(doubles, 1, MPI_DOUBLE, 1 - rank, 9, doubles + 1, 1, MPI_DOUBLE, 1 - rank, 9, world, MPI_STATUS_IGNORE);
}
static void cancelled_send(void) {
    MPI_Request request;
    if (rank == 0) {
        MPI_Issend(doubles, 1, MPI_DOUBLE, 1, 9, world, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(world);
    MPI_Sendrecv(ints, 1, MPI_INT, 1 - rank, 9, ints + 1, 1, MPI_INT, 1 - rank, 9, world, MPI_STATUS_IGNORE);
}
static void sends_of_all_modes(void) {
    static char buffer[1000];
    void *detached;
    int bytes, other = 1 - rank;
    MPI_Request requests[4];
    MPI_Message message;
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Bsend(ints, 1, MPI_INT, other, 1, world);
    MPI_Recv(ints + 1, 10, MPI_INT, other, 1, world, MPI_STATUS_IGNORE);
    MPI_Bsend_init(ints, 2, MPI_INT, other, 2, world, &requests[0]);
    MPI_Ssend_init(ints, 3, MPI_INT, other, 3, world, &requests[1]);
    MPI_Recv_init(ints + 10, 10, MPI_INT, MPI_ANY_SOURCE, 2, world, &requests[2]);
    MPI_Recv_init(ints + 20, 10, MPI_INT, other, 3, world, &requests[3]);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(4, requests);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < 4; i++) MPI_Request_free(&requests[i]);
    MPI_Isendrecv(ints, 1, MPI_INT, other, 4, ints + 1, 1, MPI_INT, other, 4, world, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(doubles, 1, MPI_DOUBLE, other, 5, other, 5, world, MPI_STATUS_IGNORE);
    MPI_Isend(large, 1 << 20, MPI_INT, other, 6, world, &requests[0]);
    MPI_Mprobe(other, 6, world, &message, MPI_STATUS_IGNORE);
    static int received[1 << 20];
    MPI_Mrecv(received, 1 << 20, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&detached, &bytes);
}
static void messages_on_communicators(void) {
    MPI_Comm comms[2] = {nonblocking_copy(), from_group()};
    for (int i = 0; i < 2; i++) {
        exchange_on(comms[i], MPI_INT);
        MPI_Comm_free(&comms[i]);
    }
    exchange_on_intercommunicator(MPI_INT);
    partitioned(MPI_INT);
}
static void spawned_child(void) { exchange_with_child(MPI_INT); }
static void errors_are_returned(void) {
    MPI_Comm none = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Send(ints, 1, MPI_INT, 99, 5, world);
    MPI_Send(ints, 1, MPI_INT, 0, 5, none);
    MPI_Recv(ints, 1, MPI_INT, 0, 5, none, MPI_STATUS_IGNORE);
    MPI_Comm_free(&none);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}
// A handle that is freed and made again may be another type or communicator.
static void handles_are_used_again(void) {
    for (int i = 0; i < 4; i++) {
        MPI_Datatype type;
        MPI_Comm copy;
        MPI_Type_contiguous(2, i % 2 ? MPI_INT : MPI_FLOAT, &type);
        MPI_Type_commit(&type);
        MPI_Comm_dup(world, &copy);
        if (rank == 0) MPI_Send(ints, 1, type, 1, 5, copy);
        if (rank == 1) MPI_Recv(ints, 1, type, 0, 5, copy, MPI_STATUS_IGNORE);
        MPI_Comm_free(&copy);
        MPI_Type_free(&type);
    }
}
static void collectives(void) {
    MPI_Comm half;
    MPI_Request request;
    MPI_Comm_split(world, rank, 0, &half);
    MPI_Bcast(ints, 5, MPI_INT, 0, half);
    MPI_Comm_free(&half);
    MPI_Gather(ints, 1, MPI_INT, ints + 100, 1, MPI_INT, 1, world);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, ints, 3, MPI_INT, world);
    MPI_Iallreduce(MPI_IN_PLACE, doubles, 3, MPI_DOUBLE, MPI_SUM, world, &request);
    MPI_Barrier(world);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int counts[2] = {1, 2}, places[2] = {0, 1};
    MPI_Allgatherv(ints, counts[rank], MPI_INT, ints + 100, counts, places, MPI_INT, world);
    MPI_Scatterv(rank ? NULL : ints, rank ? NULL : counts, rank ? NULL : places, MPI_INT, ints + 200, counts[rank], MPI_INT, 0, world);
    // The same elements by another type.
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Bcast(ints, rank ? 1 : 2, rank ? pair : MPI_INT, 0, world);
    MPI_Type_free(&pair);
}
static void objects(void) {
    MPI_Group group;
    MPI_Win win;
    MPI_Request request;
    MPI_Comm_group(world, &group);
    MPI_Group_free(&group);
    MPI_Win_create(ints, sizeof ints, 4, MPI_INFO_NULL, world, &win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_Isend(ints, 1, MPI_INT, rank, 3, world, &request);
    MPI_Request_free(&request);
    MPI_Recv(ints + 10, 1, MPI_INT, rank, 3, world, MPI_STATUS_IGNORE);
}

#define KIND(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} kinds[] = {
    KIND(send_ints_as_double), KIND(isend_floats_as_ints), KIND(persistent_with_other_type),
    KIND(matched_receive_of_other_type), KIND(structure_with_other_order), KIND(longer_receive_of_other_type),
    KIND(large_send_of_other_type), KIND(early_message_of_other_type), KIND(types_change_in_one_call),
    KIND(sendrecv_of_other_type), KIND(replace_with_other_type), KIND(isendrecv_of_other_type),
    KIND(buffered_send_of_other_type), KIND(nonblocking_matched_receive_of_other_type), KIND(message_on_nonblocking_copy),
    KIND(message_on_communicator_from_group), KIND(message_on_intercommunicator), KIND(message_from_spawned_child),
    KIND(partitioned_of_other_type), KIND(roots_differ), KIND(operators_differ),
    KIND(types_differ_in_reduce), KIND(lengths_differ), KIND(operations_differ), KIND(nonblocking_roots_differ),
    KIND(nonblocking_order_differs), KIND(gather_of_other_type), KIND(two_receives_in_one_buffer),
    KIND(receive_into_memory_that_is_sent), KIND(reduce_into_its_operand), KIND(buffer_changed), KIND(send_not_completed),
    KIND(persistent_not_freed), KIND(partitioned_not_freed), KIND(message_not_received),
    KIND(message_not_received_on_copy), KIND(communicator_not_freed), KIND(datatype_not_freed),
    KIND(group_not_freed), KIND(operator_not_freed), KIND(window_not_freed), KIND(messages), KIND(wildcards),
    KIND(cancelled_receive), KIND(cancelled_send), KIND(sends_of_all_modes), KIND(messages_on_communicators),
    KIND(spawned_child), KIND(errors_are_returned), KIND(handles_are_used_again), KIND(collectives), KIND(objects),
};

int main(int argc, char **argv) {
    MPI_Comm parent;
    program = argv[0];
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!strcmp(argv[1], kinds[i].name)) kinds[i].run();
    }
    MPI_Finalize();
    if (rank == 0 && parent == MPI_COMM_NULL) printf("end\n");
    return 0;
}
