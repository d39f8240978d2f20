// ranks: 1 2
// says: correct
// env: | WEFT_FABRIC=shm+ofi
//
// Spawned processes that have parted from their parents, and others that have not, go on after these have ended: mpiexec waits
// for them as for its own.
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    char *parts[] = {"parts", NULL};
    begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        if (argc > 1) {
            MPI_Comm_disconnect(&parent);
            usleep(900000);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Finalize();
        usleep(900000);
        /* The last word of all, by those that part. */
        if (rank == 0 && argc > 1) printf("correct\n");
        return 0;
    }
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm_spawn(argv[0], parts, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&inter);
    MPI_Finalize();
    return 0;
}
