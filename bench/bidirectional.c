/* bidirectional: bytes a second that two ranks exchange, both directions added up, in GB/s (10^9). */
#include "stream.h"

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "bidirectional", "4K,16K,64K,256K,1M,4M", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    for (int i = 0; i < b.size_count; i++) {
        int window = bench_window(&b, b.sizes[i]);
        struct timing t = stream_measure(&b, b.sizes[i], window, 1);
        bench_report(&b, b.sizes[i], t, 2e-9 * (double)b.sizes[i] * window, "GB/s");
    }
    MPI_Finalize();
    return 0;
}
