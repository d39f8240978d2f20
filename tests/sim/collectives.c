/* Prints the time of some collective operations: the name, a blank, and the time of the slowest rank in nanoseconds. */
#include <mpi.h>
#include <stdio.h>

enum { BYTES = 1024, RANKS = 8, REPEAT = 4 };

static char out[BYTES * RANKS], in[BYTES * RANKS];

static void call(int operation) {
    switch (operation) {
    case 0: MPI_Barrier(MPI_COMM_WORLD); break;
    case 1: MPI_Allreduce(out, in, BYTES / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
    case 2: MPI_Alltoall(out, BYTES, MPI_BYTE, in, BYTES, MPI_BYTE, MPI_COMM_WORLD); break;
    default: MPI_Bcast(out, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    }
}

int main(int argc, char **argv) {
    static const char *names[] = {"barrier", "allreduce", "alltoall", "bcast"};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int operation = 0; operation < 4; operation++) {
        double span = 0, slowest = 0;
        for (int i = 0; i < REPEAT; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            call(operation);
            span = MPI_Wtime() - begin;
        }
        MPI_Reduce(&span, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("%s %.0f\n", names[operation], slowest * 1e9);
    }
    MPI_Finalize();
    return 0;
}
