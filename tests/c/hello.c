// Every rank says who it is, after a sum over all and a turn round the ring.
// ranks: 1 2 4
//
// With "abort", the rank in the middle ends the job with code 7; with "wait", all wait in MPI until
// somebody ends them.
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, sum, from;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "abort") == 0 && rank == size / 2)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(what, "wait") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            printf("running\n");
            fflush(stdout);
            sleep(1000);
        }
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 5, &from, 1, MPI_INT, (rank + size - 1) % size, 5,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (sum != size * (size - 1) / 2 || from != (rank + size - 1) % size) {
        printf("rank %d: sum %d, from %d\n", rank, sum, from);
        return 1;
    }
    printf("rank %d of %d\n", rank, size);
    MPI_Finalize();
    return 0;
}
