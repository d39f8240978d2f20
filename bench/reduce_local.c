/* reduce_local: MPI_Reduce_local (sum of MPI_DOUBLE), GB/s of one array. Sizes are rounded up to whole doubles. */
#include "bench.h"

struct state {
    int count;
    double *in, *inout;
};

static void reductions(void *opaque, long iterations)
{
    struct state *s = opaque;
    for (long i = 0; i < iterations; i++) MPI_Reduce_local(s->in, s->inout, s->count, MPI_DOUBLE, MPI_SUM);
}

static void verify(struct bench *b, struct state *s, int round)
{
    for (int i = 0; i < s->count; i++) s->in[i] = i % 1000 + round, s->inout[i] = i % 7;
    reductions(s, 1);
    for (int i = 0; i < s->count; i++)
        if (s->inout[i] != i % 1000 + round + i % 7) bench_fail(b, "wrong sum in element", i);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "reduce_local", "64,4K,64K,1M,16M", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        size_t bytes = (b.sizes[i] + 7) / 8 * 8;
        struct state s = {(int)(bytes / 8), bench_buffer(&b, bytes), bench_buffer(&b, bytes)};
        verify(&b, &s, 1);
        struct timing t = bench_measure(&b, reductions, &s);
        verify(&b, &s, 2);
        bench_report(&b, b.sizes[i], t, 1e-9 * (double)bytes, "GB/s");
        free(s.in), free(s.inout);
    }
    MPI_Finalize();
    return 0;
}
