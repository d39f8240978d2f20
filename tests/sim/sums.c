// Prints the bits of sums of numbers that depend on the order of additions.
#include <mpi.h>
#include <stdio.h>

enum { N = 1000 };

int main(int argc, char **argv)
{
    int rank;
    double mine[N], sum[N];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < N; i++) mine[i] = 1.0 / (i + 3 * rank + 1);
    MPI_Allreduce(mine, sum, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        for (int i = 0; i < N; i++) printf("%a\n", sum[i]);
    MPI_Reduce(mine, sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%a\n", sum[0]);
    MPI_Finalize();
    return 0;
}
