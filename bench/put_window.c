/* put_window: bytes a second of windows of puts by rank 0, each ended by a flush, in GB/s (10^9). */
#include "rma_stream.h"

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "put_window", "8,1K,64K,1M", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    for (int i = 0; i < b.size_count; i++) {
        int window = bench_window(&b, b.sizes[i]);
        struct timing t = rma_stream_measure(&b, b.sizes[i], window, 0, 0);
        bench_report(&b, b.sizes[i], t, 1e-9 * (double)b.sizes[i] * window, "GB/s");
    }
    MPI_Finalize();
    return 0;
}
