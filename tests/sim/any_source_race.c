/* A race that real machines rarely show: rank 0 takes two messages from MPI_ANY_SOURCE and assumes that rank 1 is first. Rank 1 sends
 * first, but no message orders rank 2 behind it. `weft sim run --explore` must find a seed with the other order. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 3) {
        fprintf(stderr, "needs 3 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int value = rank;
    if (rank == 1) {
        MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    } else if (rank == 2) {
        /* Time that usually suffices for the message of rank 1. */
        double start = MPI_Wtime();
        while (MPI_Wtime() - start < 60e-6) {
        }
        MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    } else if (rank == 0) {
        int first, second;
        MPI_Recv(&first, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&second, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("from 1: %d, from 2: %d\n", first, second);
    }
    MPI_Finalize();
    return 0;
}
