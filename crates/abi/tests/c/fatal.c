/* Ends by a fatal error; the argument says where. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *where = argc > 1 ? argv[1] : "";
    int value = 0;
    MPI_Group group;
    if (strcmp(where, "before") == 0)
        MPI_Comm_rank(MPI_COMM_WORLD, &value);
    MPI_Init(&argc, &argv);
    printf("initialised\n");
    if (strcmp(where, "send") == 0)
        MPI_Send(&value, 1, MPI_INT, 7, 0, MPI_COMM_WORLD);
    if (strcmp(where, "named") == 0) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_name(comm, "rows");
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_ABORT);
        MPI_Send(&value, 1, MPI_INT, 7, 0, comm);
    }
    if (strcmp(where, "group") == 0)
        MPI_Group_union(MPI_GROUP_NULL, MPI_GROUP_EMPTY, &group);
    if (strcmp(where, "called") == 0)
        MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_IO);
    MPI_Finalize();
    if (strcmp(where, "after") == 0)
        MPI_Comm_rank(MPI_COMM_WORLD, &value);
    printf("still here\n");
    return 0;
}
