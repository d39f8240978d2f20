// ranks: 2 3 4
// env: | WEFT_FABRIC=ofi | WEFT_CMA=0
// says: correct
//
// Ranks with different arithmetic, as if some were linked with -ffast-math: all ranks except the first that starts flush
// subnormal numbers to zero and round down. MPI_Allreduce gives all ranks the same bits (MPI 5.0, 6.9.1, advice to
// implementors), by any algorithm.
#include "check.h"
#include <fcntl.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

static const char *algorithms[] = {
    "", "CENTRAL", "SHM-LAST", "SHM-PAIR", "SHM-SLICES", "SHM-READ", "SHM-READ-STAGED", "SHM-READ-WHOLE", "RPE", "RPE-IMM",
    "RGM", "RGM-IMM", "RGM-ACK", "RECURSIVE-DOUBLING", "MPI-PE", "MPI-GB", "MPI-K-NOMIAL", "K-NOMIAL", "MPI-RABENSEIFNER", "RABENSEIFNER",
    "MPI-RING", "RING", "MPI-SWING", "SWING", "MPI-CIRCULANT", "CIRCULANT", "REDUCE-BCAST",
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms, MOST = 1 << 15 };

/* Changes the arithmetic of this process, unless it is the first of this job on this machine. */
static void differ(char *path)
{
    sprintf(path, "/tmp/weft-unlike-%ld", (long)getppid());
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file >= 0) { close(file); return; }
    path[0] = 0;
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040 | 0x2000);
#endif
}

int main(int argc, char **argv)
{
    static double own[MOST], sum[MOST], first[MOST];
    static const int lengths[] = {1, 5, 300, 5000, MOST};
    char path[64];
    differ(path);
    begin(&argc, &argv);
    for (int i = 0; i < MOST; i++)
        own[i] = i % 3 == 0 ? 1e-310 * (rank + 1) : i % 3 == 1 ? 0.1 * (rank + 1) / 3 : 1e300 / (rank + 3);
    for (int a = 0; a < ALGORITHMS; a++) {
        MPI_Info info;
        MPI_Comm comm;
        MPI_Info_create(&info);
        if (a) MPI_Info_set(info, "weft_allreduce", algorithms[a]);
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
        MPI_Info_free(&info);
        for (int l = 0; l < 5; l++)
            for (int again = 0; again < 3; again++) {
                MPI_Allreduce(own, sum, lengths[l], MPI_DOUBLE, MPI_SUM, comm);
                memcpy(first, sum, sizeof first);
                MPI_Bcast(first, lengths[l], MPI_DOUBLE, 0, MPI_COMM_WORLD);
                CHECK(memcmp(first, sum, lengths[l] * sizeof *sum) == 0, "%s, %d doubles", algorithms[a], lengths[l]);
            }
        MPI_Comm_free(&comm);
    }
    // The ranks do differ: the same quotient has different bits.
    volatile double least = 2.3e-308, three = 3;
    double mine = least / three, low, high;
    MPI_Allreduce(&mine, &low, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &high, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (path[0]) unlink(path);
#if defined(__SSE2__)
    CHECK(memcmp(&low, &high, sizeof low) != 0, "all ranks compute alike");
#endif
    return end();
}
