// An error that ends the job names what was asked for, of what, what is left, and what to do.
//
// ranks: 1 2
// expect: 39
// once: no room for 17592186044416 bytes (16.0 TiB) of memory that other processes reach: the machine's free memory leaves
// says: ask for less
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    void *base;
    MPI_Win win;
    MPI_Win_allocate((MPI_Aint)1 << 44, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    return end();
}
