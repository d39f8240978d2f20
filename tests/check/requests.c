// Point-to-point and persistent operations: buffers in use, buffers changed, requests and messages that are left.
#include "catalogue.h"

static int other(void) { return 1 - rank; }

// Buffers in use.

ERRONEOUS(receives_that_overlap, "buffer in use", 2) {
    MPI_Request requests[2];
    MPI_Irecv(ints, 4, MPI_INT, other(), 1, world, &requests[0]);  // named
    MPI_Irecv(ints + 3, 4, MPI_INT, other(), 2, world, &requests[1]);  // named
    for (int tag = 1; tag < 3; tag++) MPI_Send(more, 4, MPI_INT, other(), tag, world);
    MPI_Waitall(2, requests, no_statuses);
}
CORRECT(receives_beside_each_other, 2) {
    MPI_Request requests[2];
    MPI_Irecv(ints, 4, MPI_INT, other(), 1, world, &requests[0]);
    MPI_Irecv(ints + 4, 4, MPI_INT, other(), 2, world, &requests[1]);
    for (int tag = 1; tag < 3; tag++) MPI_Send(more, 4, MPI_INT, other(), tag, world);
    MPI_Waitall(2, requests, no_statuses);
}
ERRONEOUS(send_from_a_receive_buffer, "buffer in use", 2) {
    MPI_Request request;
    MPI_Irecv(ints, 4, MPI_INT, other(), 1, world, &request);  // named
    MPI_Send(ints, 4, MPI_INT, other(), 1, world);  // named
    MPI_Wait(&request, no_status);
}
CORRECT(two_sends_from_one_buffer, 2) {
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++) MPI_Isend(ints, 4, MPI_INT, other(), i, world, &requests[i]);
    for (int i = 0; i < 2; i++) MPI_Recv(more, 4, MPI_INT, other(), i, world, no_status);
    MPI_Waitall(2, requests, no_statuses);
}
ERRONEOUS(receive_into_a_send_buffer, "buffer in use", 2) {
    MPI_Request request;
    MPI_Isend(ints, 4, MPI_INT, other(), 1, world, &request);  // named
    MPI_Recv(ints, 4, MPI_INT, other(), 1, world, no_status);  // named
    MPI_Wait(&request, no_status);
}
CORRECT(receive_into_a_send_buffer_after_wait, 2) {
    MPI_Request request;
    MPI_Isend(ints, 4, MPI_INT, other(), 1, world, &request);
    MPI_Recv(more, 4, MPI_INT, other(), 1, world, no_status);
    MPI_Wait(&request, no_status);
    MPI_Sendrecv(more, 4, MPI_INT, other(), 1, ints, 4, MPI_INT, other(), 1, world, no_status);
}
ERRONEOUS(sendrecv_in_one_buffer, "buffer in use", 2) {
    MPI_Sendrecv(ints, 4, MPI_INT, other(), 1, ints + 2, 4, MPI_INT, other(), 1, world, no_status);  // named
}
ERRONEOUS(broadcast_of_a_receive_buffer, "buffer in use", 2) {
    MPI_Request request;
    MPI_Irecv(ints, 4, MPI_INT, other(), 1, world, &request);  // named
    MPI_Bcast(ints, 4, MPI_INT, 0, world);  // named
    MPI_Send(more, 4, MPI_INT, other(), 1, world);
    MPI_Wait(&request, no_status);
}
ERRONEOUS(allreduce_into_a_send_buffer, "buffer in use", 2) {
    MPI_Request request;
    MPI_Isend(ints, 4, MPI_INT, other(), 1, world, &request);  // named
    MPI_Allreduce(more, ints, 4, MPI_INT, MPI_SUM, world);  // named
    MPI_Recv(more, 4, MPI_INT, other(), 1, world, no_status);
    MPI_Wait(&request, no_status);
}
ERRONEOUS(allreduce_into_its_operand, "buffer in use", 2) {
    MPI_Allreduce(ints, ints + 2, 4, MPI_INT, MPI_SUM, world);  // named
}
ERRONEOUS(nonblocking_broadcasts_in_one_buffer, "buffer in use", 2) {
    MPI_Request requests[2];
    MPI_Ibcast(ints, 4, MPI_INT, 0, world, &requests[0]);  // named
    MPI_Ibcast(ints, 4, MPI_INT, 1, world, &requests[1]);  // named
    MPI_Waitall(2, requests, no_statuses);
}
CORRECT(nonblocking_broadcasts_of_one_root, 2) {
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++) MPI_Ibcast(rank ? more + 4 * i : ints, 4, MPI_INT, 0, world, &requests[i]);
    MPI_Waitall(2, requests, no_statuses);
}
ERRONEOUS(persistent_receives_in_one_buffer, "buffer in use", 2) {
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++) MPI_Recv_init(ints, 4, MPI_INT, other(), i, world, &requests[i]);  // named
    MPI_Startall(2, requests);  // named
    for (int i = 0; i < 2; i++) MPI_Send(more, 4, MPI_INT, other(), i, world);
    MPI_Waitall(2, requests, no_statuses);
    for (int i = 0; i < 2; i++) MPI_Request_free(&requests[i]);
}
CORRECT(persistent_receives_one_after_the_other, 2) {
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++) MPI_Recv_init(ints, 4, MPI_INT, other(), i, world, &requests[i]);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&requests[i]);
        MPI_Send(more, 4, MPI_INT, other(), i, world);
        MPI_Wait(&requests[i], no_status);
        MPI_Request_free(&requests[i]);
    }
}
ERRONEOUS(column_over_a_row, "buffer in use", 2) {
    MPI_Datatype column;
    MPI_Request requests[2];
    MPI_Type_vector(8, 1, 8, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Irecv(ints + 3, 1, column, other(), 1, world, &requests[0]);  // named
    MPI_Irecv(ints + 16, 8, MPI_INT, other(), 2, world, &requests[1]);  // named
    for (int tag = 1; tag < 3; tag++) MPI_Send(more, 8, MPI_INT, other(), tag, world);
    MPI_Waitall(2, requests, no_statuses);
    MPI_Type_free(&column);
}
CORRECT(two_columns, 2) {
    MPI_Datatype column;
    MPI_Request requests[2];
    MPI_Type_vector(8, 1, 8, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < 2; i++) MPI_Irecv(ints + i, 1, column, other(), i, world, &requests[i]);
    for (int i = 0; i < 2; i++) MPI_Send(more, 8, MPI_INT, other(), i, world);
    MPI_Waitall(2, requests, no_statuses);
    MPI_Type_free(&column);
}
ERRONEOUS(file_read_into_a_send_buffer, "buffer in use", 2) {
    MPI_Request request;
    MPI_File fh;
    MPI_File_open(world, "/dev/zero", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);
    MPI_Isend(ints, 4, MPI_INT, other(), 1, world, &request);  // named
    MPI_File_read_at_all(fh, 0, ints, 4, MPI_INT, no_status);  // named
    MPI_Recv(more, 4, MPI_INT, other(), 1, world, no_status);
    MPI_Wait(&request, no_status);
    MPI_File_close(&fh);
}

// Buffers that the program changes.

ERRONEOUS(isend_buffer_changed, "buffer changed", 2) {
    MPI_Request request;
    MPI_Isend(ints, 4, MPI_INT, other(), 1, world, &request);  // named
    ints[2] = 5;
    MPI_Recv(more, 4, MPI_INT, other(), 1, world, no_status);
    MPI_Wait(&request, no_status);
}
CORRECT(isend_buffer_changed_after_wait, 2) {
    MPI_Request request;
    MPI_Isend(ints, 4, MPI_INT, other(), 1, world, &request);
    MPI_Recv(more, 4, MPI_INT, other(), 1, world, no_status);
    MPI_Wait(&request, no_status);
    ints[2] = 5;
}
ERRONEOUS(end_of_a_large_buffer_changed, "buffer changed", 2) {
    MPI_Request request;
    if (rank == 0) {
        MPI_Isend(large, 1 << 16, MPI_INT, 1, 1, world, &request);  // named
        large[(1 << 16) - 1] = 5;
        MPI_Wait(&request, no_status);
    } else {
        MPI_Recv(large, 1 << 16, MPI_INT, 0, 1, world, no_status);
    }
}
ERRONEOUS(persistent_send_buffer_changed, "buffer changed", 2) {
    MPI_Request request;
    MPI_Send_init(ints, 4, MPI_INT, other(), 1, world, &request);  // named
    MPI_Start(&request);
    ints[2] = 5;
    MPI_Recv(more, 4, MPI_INT, other(), 1, world, no_status);
    MPI_Wait(&request, no_status);
    MPI_Request_free(&request);
}
CORRECT(persistent_send_buffer_changed_between_starts, 2) {
    MPI_Request request;
    MPI_Send_init(ints, 4, MPI_INT, other(), 1, world, &request);
    for (int i = 0; i < 3; i++) {
        ints[2] = i;
        MPI_Start(&request);
        MPI_Recv(more, 4, MPI_INT, other(), 1, world, no_status);
        MPI_Wait(&request, no_status);
    }
    MPI_Request_free(&request);
}
ERRONEOUS(reduction_operand_changed, "buffer changed", 2) {
    MPI_Request request;
    MPI_Iallreduce(ints, more, 4, MPI_INT, MPI_SUM, world, &request);  // named
    ints[0] = 9;
    MPI_Wait(&request, no_status);
}
CORRECT(gaps_of_a_type_changed, 2) {
    MPI_Datatype column;
    MPI_Request request;
    MPI_Type_vector(8, 1, 8, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Isend(ints, 1, column, other(), 1, world, &request);
    ints[1] = 5;
    MPI_Recv(more, 8, MPI_INT, other(), 1, world, no_status);
    MPI_Wait(&request, no_status);
    MPI_Type_free(&column);
}

// Requests and messages that are left.

ERRONEOUS(isend_without_wait, "request not completed", 2) {
    MPI_Request request;
    MPI_Isend(ints, 4, MPI_INT, other(), 1, world, &request);  // named
    MPI_Recv(more, 4, MPI_INT, other(), 1, world, no_status);
}
ERRONEOUS(irecv_without_wait, "request not completed", 2) {
    MPI_Request request;
    MPI_Irecv(ints, 4, MPI_INT, other(), 1, world, &request);  // named
    MPI_Sendrecv(more, 1, MPI_INT, other(), 2, more + 1, 1, MPI_INT, other(), 2, world, no_status);
}
ERRONEOUS(one_of_two_requests_completed, "request not completed", 2) {
    MPI_Request requests[2];
    int index;
    for (int i = 0; i < 2; i++) MPI_Irecv(ints + 10 * i, 4, MPI_INT, other(), i, world, &requests[i]);  // named
    MPI_Send(more, 4, MPI_INT, other(), 1, world);
    MPI_Waitany(2, requests, &index, no_status);
}
CORRECT(all_requests_completed, 2) {
    MPI_Request requests[4];
    int index, count, indices[4], flag = 0;
    for (int i = 0; i < 4; i++) MPI_Irecv(ints + 10 * i, 4, MPI_INT, other(), i, world, &requests[i]);
    for (int i = 0; i < 4; i++) MPI_Send(more, 4, MPI_INT, other(), i, world);
    MPI_Waitany(4, requests, &index, no_status);
    MPI_Waitsome(4, requests, &count, indices, no_statuses);
    while (!flag) MPI_Testall(4, requests, &flag, no_statuses);
}
ERRONEOUS(ibarrier_without_wait, "request not completed", 2) {
    MPI_Request request;
    MPI_Ibarrier(world, &request);  // named
}
ERRONEOUS(ibcast_without_wait, "request not completed", 2) {
    MPI_Request request;
    MPI_Ibcast(ints, 1, MPI_INT, 0, world, &request);  // named
}
ERRONEOUS(persistent_send_not_freed, "request not completed", 2) {
    MPI_Request request;
    MPI_Ssend_init(ints, 4, MPI_INT, other(), 1, world, &request);  // named
}
ERRONEOUS(persistent_receive_not_freed, "request not completed", 2) {
    MPI_Request request;
    MPI_Recv_init(ints, 4, MPI_INT, other(), 1, world, &request);  // named
    MPI_Start(&request);
    MPI_Send(more, 4, MPI_INT, other(), 1, world);
    MPI_Wait(&request, no_status);
}
ERRONEOUS(persistent_broadcast_not_freed, "request not completed", 2) {
    MPI_Request request;
    MPI_Bcast_init(ints, 4, MPI_INT, 0, world, MPI_INFO_NULL, &request);  // named
}
CORRECT(requests_freed, 2) {
    MPI_Request request;
    MPI_Isend(ints, 4, MPI_INT, other(), 1, world, &request);
    MPI_Request_free(&request);
    MPI_Recv(more, 4, MPI_INT, other(), 1, world, no_status);
    MPI_Recv_init(ints, 4, MPI_INT, other(), 1, world, &request);
    MPI_Request_free(&request);
}
CORRECT(receive_cancelled, 2) {
    MPI_Request request;
    MPI_Irecv(ints, 4, MPI_INT, other(), 1, world, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, no_status);
}
ERRONEOUS(iwrite_all_without_wait, "request not completed", 2) {
    MPI_Request request;
    MPI_File fh;
    MPI_File_open(world, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &fh);
    MPI_File_iwrite_at_all(fh, 0, ints, 1, MPI_INT, &request);  // named
    MPI_Barrier(world);
    MPI_File_close(&fh);
}
ERRONEOUS(send_without_receive, "message not received", 2) {
    if (rank == 0) MPI_Send(ints, 1, MPI_INT, 1, 1, world);  // named
}
ERRONEOUS(bsend_without_receive, "message not received", 2) {
    char buffer[1000];
    int bytes;
    void *detached;
    if (rank == 0) {
        MPI_Buffer_attach(buffer, sizeof buffer);
        MPI_Bsend(ints, 1, MPI_INT, 1, 1, world);  // named
        MPI_Buffer_detach(&detached, &bytes);
    }
}
ERRONEOUS(send_with_other_tag, "message not received", 2) {
    if (rank == 0) {
        MPI_Send(ints, 1, MPI_INT, 1, 1, world);
        MPI_Send(ints, 1, MPI_INT, 1, 2, world);  // named
    } else {
        MPI_Recv(ints, 1, MPI_INT, 0, 1, world, no_status);
    }
}
ERRONEOUS(message_on_a_communicator_that_is_freed, "message not received", 2) {
    MPI_Comm copy;
    MPI_Comm_dup(world, &copy);
    if (rank == 0) MPI_Send(ints, 1, MPI_INT, 1, 1, copy);  // named
    MPI_Barrier(world);
    MPI_Comm_free(&copy);
}
CORRECT(messages_received_in_any_order, 2) {
    if (rank == 0) {
        for (int tag = 0; tag < 4; tag++) MPI_Send(ints, 1, MPI_INT, 1, tag, world);
    } else {
        for (int tag = 3; tag >= 0; tag--) MPI_Recv(ints, 1, MPI_INT, 0, tag, world, no_status);
    }
}
CORRECT(messages_probed, 2) {
    MPI_Status status;
    MPI_Message message;
    int flag = 0;
    if (rank == 0) {
        for (int tag = 0; tag < 3; tag++) MPI_Send(ints, 1 + tag, MPI_INT, 1, tag, world);
    } else {
        MPI_Probe(0, MPI_ANY_TAG, world, &status);
        MPI_Recv(ints, 4, MPI_INT, 0, status.MPI_TAG, world, no_status);
        MPI_Mprobe(0, 2, world, &message, &status);
        MPI_Mrecv(ints, 4, MPI_INT, &message, no_status);
        while (!flag) MPI_Iprobe(0, 1, world, &flag, &status);
        MPI_Recv(ints, 4, MPI_INT, 0, 1, world, no_status);
    }
}
CORRECT(messages_to_no_process, 2) {
    MPI_Request request;
    MPI_Send(ints, 1, MPI_INT, MPI_PROC_NULL, 1, world);
    MPI_Irecv(ints, 1, MPI_INT, MPI_PROC_NULL, 1, world, &request);
    MPI_Wait(&request, no_status);
    MPI_Sendrecv(ints, 1, MPI_INT, MPI_PROC_NULL, 1, more, 1, MPI_INT, MPI_PROC_NULL, 1, world, no_status);
}

// Threads.

static void *send_or_receive(void *argument) {
    int tag = *(int *)argument;
    if (rank == 0) MPI_Send(ints, 100, MPI_INT, 1, tag, world);
    if (rank == 1) MPI_Recv(more + 100 * tag, 100, MPI_INT, 0, tag, world, no_status);
    return NULL;
}
CORRECT(threads_send_and_receive, 2) {
    pthread_t threads[4];
    int tags[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, send_or_receive, &tags[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}
static void *send_floats(void *);
ERRONEOUS(thread_receives_other_type, "type mismatch", 2) {
    pthread_t thread;
    pthread_create(&thread, NULL, send_floats, NULL);
    MPI_Barrier(world);
    pthread_join(thread, NULL);
}
static void *send_floats(void *argument) {
    (void)argument;
    if (rank == 0) MPI_Send(doubles, 1, MPI_FLOAT, 1, 9, world);  // named
    if (rank == 1) MPI_Recv(more, 1, MPI_INT, 0, 9, world, no_status);  // named
    return NULL;
}
static void *barriers(void *argument) {
    MPI_Comm comm = *(MPI_Comm *)argument;
    for (int i = 0; i < 10; i++) MPI_Barrier(comm);
    return NULL;
}
CORRECT(threads_with_communicators_of_their_own, 2) {
    pthread_t threads[3];
    MPI_Comm comms[3];
    for (int i = 0; i < 3; i++) MPI_Comm_dup(world, &comms[i]);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, barriers, &comms[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++) MPI_Comm_free(&comms[i]);
}
ERRONEOUS(threads_call_other_operations, "collective mismatch", 2) {
    pthread_t thread;
    MPI_Comm copy;
    MPI_Comm_dup(world, &copy);
    if (rank == 0) {
        pthread_create(&thread, NULL, barriers, &copy);
        pthread_join(thread, NULL);
    } else {
        for (int i = 0; i < 10; i++) MPI_Bcast(ints, 1, MPI_INT, 0, copy);  // named
    }
    MPI_Comm_free(&copy);
}
