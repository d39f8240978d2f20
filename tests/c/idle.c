// ranks: 2 4
// says: correct
//
// A rank blocked in MPI_Recv for 5 s uses under 2 % of a core. (Processor time is counted by the
// kernel; no stopwatch is involved.)
#include "check.h"
#include <sys/resource.h>
#include <unistd.h>

static double used(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_utime.tv_sec + r.ru_stime.tv_sec +
           1e-6 * (r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    int token = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        usleep((useconds_t)(1e6 * seconds));
        for (int to = 1; to < size; to++) MPI_Send(&seconds, 1, MPI_DOUBLE, to, 0, MPI_COMM_WORLD);
    } else {
        double got, before = used();
        MPI_Recv(&got, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double share = (used() - before) / seconds;
        CHECK(share < 0.02, "%.1f %% of a core", 100 * share);
        printf("rank %d: %.2f %% of a core\n", rank, 100 * share);
        token = got == seconds;
    }
    MPI_Bcast(&token, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    CHECK(token == 1);
    return end();
}
