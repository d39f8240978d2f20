// ranks: 1
// expect: 16
// says: MPI_Send: called before MPI_Init
// once: called before MPI_Init
//
// A call before MPI_Init ends the program with a message that says so.
#include <mpi.h>

int main(void)
{
    int word = 0;
    MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    return 0;
}
