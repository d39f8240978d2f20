// Half the time there and back of messages between the first and the last rank, in microseconds.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 3, REPEAT = 20 };

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++) {
        int bytes = atoi(argv[i]);
        char *buffer = calloc(bytes, 1);
        double start = 0;
        for (int time = 0; time < WARM_UP + REPEAT; time++) {
            if (time == WARM_UP) start = MPI_Wtime();
            int first = rank == 0, peer = first ? size - 1 : 0;
            if (rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
            if (rank == 0 || rank == size - 1)
                MPI_Recv(buffer, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == size - 1) MPI_Send(buffer, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
        }
        if (rank == 0) printf("%d %.4f\n", bytes, (MPI_Wtime() - start) / (2 * REPEAT) * 1e6);
        free(buffer);
    }
    MPI_Finalize();
    return 0;
}
