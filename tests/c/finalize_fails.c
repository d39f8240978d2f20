// ranks: 2
// expect: 1
// says: ended with exit code 0, but after a call of MPI_Finalize that failed
//
// A callback of an attribute makes MPI_Finalize fail, and the program exits with code 0: mpiexec must not report that
// MPI_Finalize was not called.
#include "check.h"

static int refuse(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_ERR_OTHER;
}

int main(int argc, char **argv)
{
    int key;
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    CHECK(MPI_Finalize() != MPI_SUCCESS, "it went well");
    return 0;
}
