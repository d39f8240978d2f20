/* barrier: MPI_Barrier back to back, microseconds each. */
#include "bench.h"

static void barriers(void *state, long iterations)
{
    (void)state;
    for (long i = 0; i < iterations; i++) MPI_Barrier(MPI_COMM_WORLD);
}

/* Each rank in turn comes late; nobody may leave before it has come. The clocks' uncertainty is allowed for. */
static void verify(struct bench *b)
{
    const double delay = 0.002, slack = 0.001;
    for (int late = 0; late < b->ranks && late < 4; late++) {
        double came = 0, left;
        MPI_Barrier(MPI_COMM_WORLD);
        if (b->rank == late) {
            struct timespec nap = {0, (long)(delay * 1e9)};
            nanosleep(&nap, NULL);
            came = bench_now() - b->offset;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        left = bench_now() - b->offset;
        MPI_Bcast(&came, 1, MPI_DOUBLE, late, MPI_COMM_WORLD);
        if (left < came - slack) bench_fail(b, "left a barrier before this rank came", late);
    }
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "barrier", "0", &argc, &argv);
    verify(&b);
    bench_report(&b, 0, bench_measure(&b, barriers, NULL), 1e6, "us");
    MPI_Finalize();
    return 0;
}
