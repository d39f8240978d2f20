/* idle: the share of a processor, in per cent, that a rank uses while it is blocked in MPI_Recv for --seconds (default
 * 2). Rank 0 sleeps meanwhile; all other ranks are blocked. */
#include "bench.h"
#include <sys/resource.h>

static double processor_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    struct bench b;
    int chosen = 0, token = 0;
    for (int i = 1; i < argc; i++) chosen |= !strcmp(argv[i], "--seconds");
    bench_begin(&b, "idle", "0", &argc, &argv);
    bench_need_ranks(&b, b.ranks >= 2, "at least 2 ranks");
    double seconds = chosen ? b.seconds : 2, share = 0, *shares = calloc((size_t)b.ranks, sizeof(double));
    MPI_Barrier(MPI_COMM_WORLD);
    if (b.rank == 0) {
        struct timespec nap = {(time_t)seconds, (long)(fmod(seconds, 1.0) * 1e9)};
        nanosleep(&nap, NULL);
        for (int r = 1; r < b.ranks; r++) MPI_Send(&r, 1, MPI_INT, r, 1, MPI_COMM_WORLD);
    } else {
        double used = processor_seconds(), begin = bench_now();
        MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        share = 100 * (processor_seconds() - used) / (bench_now() - begin);
        if (token != b.rank) bench_fail(&b, "wrong token", token);
    }
    MPI_Gather(&share, 1, MPI_DOUBLE, shares, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (b.rank == 0) {
        double worst = 0;
        for (int r = 1; r < b.ranks; r++) worst = fmax(worst, shares[r]);
        printf("{\"size\":0,\"value\":%.4g,\"unit\":\"%%\",\"seconds\":%g}\n", worst, seconds);
    }
    free(shares);
    MPI_Finalize();
    return 0;
}
