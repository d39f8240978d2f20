// What stands around an example that is no whole program: EXAMPLE is the name of its file, in quotes.
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    (void)rank, (void)size;
    {
#include EXAMPLE
    }
    MPI_Finalize();
    return 0;
}
