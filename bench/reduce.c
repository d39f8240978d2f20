/* reduce: MPI_Reduce (sum of MPI_DOUBLE) back to back, microseconds each. The root moves on by one rank each time. Sizes
 * are rounded up to whole doubles. */
#include "bench.h"

struct state {
    int roots, root, count;
    double *in, *out;
};

static void reductions(void *opaque, long iterations)
{
    struct state *s = opaque;
    for (long i = 0; i < iterations; i++) {
        MPI_Reduce(s->in, s->out, s->count, MPI_DOUBLE, MPI_SUM, s->root, MPI_COMM_WORLD);
        s->root = s->root + 1 == s->roots ? 0 : s->root + 1;
    }
}

/* Each root has its turn: whole numbers, whose sum is exact in any order. */
static void verify(struct bench *b, struct state *s, int round)
{
    for (int i = 0; i < s->count; i++) s->in[i] = (double)((b->rank + 1) * (i % 1000 + round)), s->out[i] = -1;
    reductions(s, s->roots);
    for (int i = 0; b->rank < s->roots && i < s->count; i++)
        if (s->out[i] != (double)(b->ranks * (b->ranks + 1) / 2) * (i % 1000 + round))
            bench_fail(b, "wrong sum in element", i);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "reduce", "8,512,4K,64K,1M", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        size_t bytes = (b.sizes[i] + 7) / 8 * 8;
        struct state s = {bench_roots(&b), 0, (int)(bytes / 8), bench_buffer(&b, bytes), bench_buffer(&b, bytes)};
        verify(&b, &s, 1);
        struct timing t = bench_measure(&b, reductions, &s);
        verify(&b, &s, 2);
        bench_report(&b, bytes, t, 1e6, "us");
        free(s.in), free(s.out);
    }
    MPI_Finalize();
    return 0;
}
