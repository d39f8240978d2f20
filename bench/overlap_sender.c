/* overlap_sender: application availability at a sender that computes (overlap.h). The receive is posted before the clock
 * starts, and the receiver then waits for nothing else. */
#include "overlap.h"

static void prepare(struct overlap *o)
{
    (void)o;
    MPI_Recv(NULL, 0, MPI_CHAR, 1, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static MPI_Request post(struct overlap *o)
{
    MPI_Request request;
    MPI_Isend(o->data, (int)o->bytes, MPI_CHAR, 1, MESSAGE, MPI_COMM_WORLD, &request);
    return request;
}

static void serve(struct overlap *o)
{
    MPI_Request request;
    MPI_Irecv(o->data, (int)o->bytes, MPI_CHAR, 0, MESSAGE, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_CHAR, 0, READY, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) { return overlap_main("overlap_sender", 0, argc, argv); }
