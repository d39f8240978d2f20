/* message_rate: small messages a second from the lower half of the ranks to the upper half, all pairs added up, in
 * millions a second. */
#include "stream.h"

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "message_rate", "0,8,64,512", &argc, &argv);
    bench_need_ranks(&b, b.ranks >= 2 && b.ranks % 2 == 0, "an even number of ranks");
    for (int i = 0; i < b.size_count; i++) {
        int window = bench_window(&b, b.sizes[i]);
        struct timing t = stream_measure(&b, b.sizes[i], window, 0);
        bench_report(&b, b.sizes[i], t, 1e-6 * window * (b.ranks / 2), "M/s");
    }
    MPI_Finalize();
    return 0;
}
