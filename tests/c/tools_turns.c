// ranks: 1
// says: correct
//
// While MPI runs without locks, a tool that wants several threads at once is told to take turns;
// afterwards it gets what it wants.
#include "tools.h"

int main(int argc, char **argv)
{
    int provided = -1;
    begin(&argc, &argv);
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_SERIALIZED, "%d", provided);
    OK(MPI_T_init_thread(MPI_THREAD_FUNNELED, &provided));
    CHECK(provided == MPI_THREAD_FUNNELED, "%d", provided);
    end();
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE, "%d", provided);
    for (int i = 0; i < 3; i++) OK(MPI_T_finalize());
    IS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_finalize());
    return 0;
}
