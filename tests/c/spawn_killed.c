// ranks: 1 2
// expect: 58
// says: of another job, connected to this one, and has ended without MPI_Comm_disconnect or MPI_Finalize
// env: | WEFT_FABRIC=shm+ofi
//
// A spawned process that is killed is a lost peer for its parents, which end: nobody waits for ever.
#include "check.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    int word;
    begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Barrier(parent);
        if (rank == 1)
            kill(getpid(), SIGKILL);
        MPI_Recv(&word, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
    }
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Barrier(inter);
    MPI_Recv(&word, 1, MPI_INT, 1, 0, inter, MPI_STATUS_IGNORE);
    return end();
}
