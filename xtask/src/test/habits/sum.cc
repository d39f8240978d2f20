// Sums the ranks of a job of two.
#include <mpi.h>
#include <iostream>

int main(int argc, char **argv)
{
    int rank, size, sum = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        std::cout << "size " << size << " sum " << sum << std::endl;
    MPI_Finalize();
    return size == 2 && sum == 1 ? 0 : 1;
}
