// ranks: 2
// expect: 16
// env: WEFT_ALLREDUCE=FASTEST | WEFT_ALLREDUCE=FASTEST:3
// says: no algorithm "FASTEST" for allreduce; known: CENTRAL,
// says: WEFT_ALLREDUCE=FASTEST
//
// An algorithm that does not exist ends the job in MPI_Init, with what there is.
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
