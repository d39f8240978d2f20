/* put_bidirectional: bytes a second that two ranks put at each other at once, both directions added up, in GB/s (10^9):
 * windows of puts, each ended by a flush. */
#include "rma_stream.h"

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "put_bidirectional", "4K,64K,1M", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    for (int i = 0; i < b.size_count; i++) {
        int puts = bench_window(&b, b.sizes[i]);
        struct timing t = rma_stream_measure(&b, b.sizes[i], puts, 0, 1);
        bench_report(&b, b.sizes[i], t, 2e-9 * (double)b.sizes[i] * puts, "GB/s");
    }
    MPI_Finalize();
    return 0;
}
