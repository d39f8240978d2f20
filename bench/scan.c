/* scan: MPI_Scan (sum of MPI_DOUBLE) back to back, microseconds each. Sizes are rounded up to whole doubles. */
#include "bench.h"

struct state {
    int count;
    double *in, *out;
};

static void reductions(void *opaque, long iterations)
{
    struct state *s = opaque;
    for (long i = 0; i < iterations; i++) MPI_Scan(s->in, s->out, s->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Whole numbers: the sum is exact in any order. */
static double element(int rank, int i, int round) { return (double)((rank + 1) * (i % 1000 + round)); }

static void check(struct bench *b, struct state *s, int round)
{
    for (int i = 0; i < s->count; i++)
        if (s->out[i] != (double)((b->rank + 1) * (b->rank + 2) / 2) * (i % 1000 + round))
            bench_fail(b, "wrong sum in element", i);
}

static void verify(struct bench *b, struct state *s, int round)
{
    for (int i = 0; i < s->count; i++) s->in[i] = element(b->rank, i, round), s->out[i] = -1;
    reductions(s, 1);
    check(b, s, round);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "scan", "8,512,4K,64K,1M", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        size_t bytes = (b.sizes[i] + 7) / 8 * 8;
        struct state s = {(int)(bytes / 8), bench_buffer(&b, bytes), bench_buffer(&b, bytes)};
        verify(&b, &s, 1);
        struct timing t = bench_measure(&b, reductions, &s);
        check(&b, &s, 1);
        verify(&b, &s, 2);
        bench_report(&b, bytes, t, 1e6, "us");
        free(s.in), free(s.out);
    }
    MPI_Finalize();
    return 0;
}
