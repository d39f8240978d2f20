// For MPI_Init_thread.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE)
        printf("only one thread at a time may call MPI\n");
    MPI_Finalize();
}
