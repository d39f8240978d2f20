// ranks: 2
// expect: 6
// says: MPI_Send on MPI_COMM_WORLD: argument dest = 17: ranks are 0 to 1
// once: argument dest = 17
//
// Under the default error handler a bad call ends the job with its class as exit code; what is
// wrong is said once, though both ranks do it.
#include <mpi.h>

int main(int argc, char **argv)
{
    int word = 0;
    MPI_Init(&argc, &argv);
    MPI_Send(&word, 1, MPI_INT, 17, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
