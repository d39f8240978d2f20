// Long messages, puts and collective operations. Prints its virtual time, and whether the data are right.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 18, STEPS = 3 };

int main(int argc, char **argv)
{
    int rank, size, right = 1, all_right;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int *out = malloc(COUNT * sizeof(int)), *in = calloc(COUNT, sizeof(int)), *window;
    MPI_Win win;
    MPI_Win_allocate(COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_fence(0, win);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++) out[i] = i + 1000 * rank + step;
        MPI_Sendrecv(out, COUNT, MPI_INT, next, 0, in, COUNT, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT; i++) right &= in[i] == i + 1000 * before + step;
        MPI_Put(out, COUNT, MPI_INT, next, 0, COUNT, MPI_INT, win);
        MPI_Win_fence(0, win);
        for (int i = 0; i < COUNT; i++) right &= window[i] == i + 1000 * before + step;
        MPI_Win_fence(0, win);
        MPI_Allreduce(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < COUNT; i++) right &= in[i] == size * (i + step) + 500 * size * (size - 1);
        MPI_Bcast(in, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
    }
    double end = MPI_Wtime();
    MPI_Reduce(&right, &all_right, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%.6f us, %s\n", end * 1e6, all_right ? "correct" : "wrong data");
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
