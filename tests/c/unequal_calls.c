// ranks: 2 4
// expect: 15
// env: WEFT_COPY_MODEL=generic
// once: do all ranks make the same collective calls
//
// Rank 0 makes one broadcast more than the others, which are in MPI_Finalize: the message says so, and not that memory is
// missing.
#include "check.h"

int main(int argc, char **argv)
{
    char byte = 1;
    begin(&argc, &argv);
    for (int i = 0; i < 3 + (rank == 0); i++) MPI_Bcast(&byte, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
