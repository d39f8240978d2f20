/* A relay whose critical path is known: rank 0 sleeps, then a token passes all ranks in order, and each rank sleeps before it passes the
 * token on. With virtual clocks (--clocks) the path is all sleeps but the transfers between neighbours. Ranks wait for the rank
 * before them. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, token = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct timespec millisecond = {0, 1000000};
    if (rank > 0) {
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    nanosleep(&millisecond, NULL);
    token++;
    if (rank + 1 < size) {
        MPI_Send(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    } else {
        printf("token %d\n", token);
    }
    MPI_Finalize();
    return 0;
}
