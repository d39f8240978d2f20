/* overlap_receiver: application availability at a receiver that computes (overlap.h). The sender hears when the receive is
 * posted, and sends then: the message begins while rank 0 computes. */
#include "overlap.h"

static void prepare(struct overlap *o) { (void)o; }

static MPI_Request post(struct overlap *o)
{
    MPI_Request request;
    MPI_Irecv(o->data, (int)o->bytes, MPI_CHAR, 1, MESSAGE, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_CHAR, 1, READY, MPI_COMM_WORLD);
    return request;
}

static void serve(struct overlap *o)
{
    MPI_Request request;
    MPI_Recv(NULL, 0, MPI_CHAR, 0, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isend(o->data, (int)o->bytes, MPI_CHAR, 0, MESSAGE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) { return overlap_main("overlap_receiver", 1, argc, argv); }
