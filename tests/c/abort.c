// ranks: 3
// expect: 5
// says: MPI_Abort with code 5
//
// MPI_Abort ends the other ranks, which wait for what never comes, and its code is the job's.
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (rank == 1) {
        MPI_Abort(MPI_COMM_WORLD, 5);
        exit(9);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 8;
}
