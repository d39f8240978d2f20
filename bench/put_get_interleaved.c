/* put_get_interleaved: rank 0 puts and gets 16 times each in turns, then flushes; rank 1 does nothing. Bytes a second, both
 * directions added up, in GB/s (10^9). In turns, because that lets a network work in both directions at once (Vishnu et al.,
 * 2005, the interleaving test). */
#include "rma_stream.h"

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "put_get_interleaved", "4K,64K,1M", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    for (int i = 0; i < b.size_count; i++) {
        int each = b.window ? b.window : 16;
        struct timing t = rma_stream_measure(&b, b.sizes[i], each, each, 0);
        bench_report(&b, b.sizes[i], t, 2e-9 * (double)b.sizes[i] * each, "GB/s");
    }
    MPI_Finalize();
    return 0;
}
