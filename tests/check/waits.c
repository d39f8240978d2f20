// Waits of programs, which `mpiexec -check-slow` must print: a row of the kind behind "// wait:", with the lines of both calls that have
// "// waits" and "// late". The programs are correct, and "none" stands for no row.
#include "catalogue.h"

#define LATE 100000
static int other(void) { return 1 - rank; }

CORRECT(late_sender, 2) {  // wait: late sender
    MPI_Barrier(world);
    if (rank == 0) MPI_Recv(ints, 4, MPI_INT, 1, 1, world, no_status);  // waits
    if (rank == 1) {
        usleep(LATE);
        MPI_Send(ints, 4, MPI_INT, 0, 1, world);  // late
    }
}
CORRECT(late_sender_of_a_waitall, 2) {  // wait: late sender
    MPI_Barrier(world);
    MPI_Request requests[2];
    if (rank == 0) {
        for (int i = 0; i < 2; i++) MPI_Irecv(ints + i, 1, MPI_INT, 1, i, world, &requests[i]);
        MPI_Waitall(2, requests, no_statuses);  // waits
    } else {
        MPI_Send(ints, 1, MPI_INT, 0, 1, world);
        usleep(LATE);
        MPI_Send(ints, 1, MPI_INT, 0, 0, world);  // late
    }
}
CORRECT(late_persistent_sender, 2) {  // wait: late sender
    MPI_Barrier(world);
    MPI_Request request;
    if (rank == 0) {
        MPI_Recv_init(ints, 1, MPI_INT, 1, 1, world, &request);
    } else {
        MPI_Send_init(ints, 1, MPI_INT, 0, 1, world, &request);  // late
    }
    for (int i = 0; i < 3; i++) {
        MPI_Barrier(world);
        if (rank == 1) usleep(LATE);
        MPI_Start(&request);
        MPI_Wait(&request, no_status);  // waits
    }
    MPI_Request_free(&request);
}
CORRECT(late_sender_of_a_probe, 2) {  // wait: late sender
    MPI_Barrier(world);
    if (rank == 0) {
        MPI_Probe(1, 1, world, no_status);
        MPI_Recv(ints, 4, MPI_INT, 1, 1, world, no_status);  // waits
    } else {
        usleep(LATE);
        MPI_Send(ints, 4, MPI_INT, 0, 1, world);  // late
    }
}
CORRECT(late_sender_of_a_matched_probe, 2) {  // wait: late sender
    MPI_Barrier(world);
    if (rank == 0) {
        MPI_Message message;
        MPI_Mprobe(1, 1, world, &message, no_status);
        MPI_Mrecv(ints, 4, MPI_INT, &message, no_status);  // waits
    } else {
        usleep(LATE);
        MPI_Send(ints, 4, MPI_INT, 0, 1, world);  // late
    }
}
CORRECT(late_partner_of_an_exchange, 2) {  // wait: late sender
    MPI_Barrier(world);
    if (rank == 1) usleep(LATE);
    MPI_Sendrecv(ints, 1, MPI_INT, other(), 1, more, 1, MPI_INT, other(), 1, world, no_status);  // waits, late
}
CORRECT(late_receiver, 2) {  // wait: late receiver
    MPI_Barrier(world);
    if (rank == 0) MPI_Ssend(ints, 4, MPI_INT, 1, 1, world);  // waits
    if (rank == 1) {
        usleep(LATE);
        MPI_Recv(ints, 4, MPI_INT, 0, 1, world, no_status);  // late
    }
}
CORRECT(late_receiver_of_a_long_message, 2) {  // wait: late receiver
    MPI_Barrier(world);
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(large, 1 << 16, MPI_INT, 1, 1, world, &request);
        MPI_Wait(&request, no_status);  // waits
    } else {
        usleep(LATE);
        MPI_Recv(large, 1 << 16, MPI_INT, 0, 1, world, no_status);  // late
    }
}
CORRECT(unexpected_message, 2) {  // wait: unexpected message
    MPI_Barrier(world);
    if (rank == 0) MPI_Send(ints, 4, MPI_INT, 1, 1, world);  // waits
    if (rank == 1) {
        usleep(LATE);
        MPI_Recv(ints, 4, MPI_INT, 0, 1, world, no_status);  // late
    }
}
CORRECT(late_in_a_reduction, 3) {  // wait: late in a collective operation
    MPI_Barrier(world);
    if (rank == 2) usleep(LATE);
    MPI_Allreduce(ints, more, 4, MPI_INT, MPI_SUM, world);  // waits
}
CORRECT(late_in_a_nonblocking_barrier, 3) {  // wait: late in a collective operation
    MPI_Barrier(world);
    MPI_Request request;
    if (rank == 2) usleep(LATE);
    MPI_Ibarrier(world, &request);  // waits
    MPI_Wait(&request, no_status);
}
CORRECT(nobody_waits, 2) {  // wait: none
    if (rank == 0) MPI_Send(ints, 4, MPI_INT, MPI_PROC_NULL, 1, world);
    if (rank == 1) MPI_Recv(ints, 4, MPI_INT, MPI_PROC_NULL, 1, world, no_status);
    usleep(LATE);
}
