/* scatterv: MPI_Scatterv of equal blocks back to back, microseconds each. The size is that of one rank's block. The root moves on by one
 * rank each time, so that no root runs ahead of ranks that have yet to receive. */
#include "bench.h"

struct state {
    int roots, root, bytes;
    int *counts, *places;
    char *out, *in;
};

static void scatters(void *opaque, long iterations)
{
    struct state *s = opaque;
    for (long i = 0; i < iterations; i++) {
        MPI_Scatterv(s->out, s->counts, s->places, MPI_CHAR, s->in, s->bytes, MPI_CHAR, s->root, MPI_COMM_WORLD);
        s->root = s->root + 1 == s->roots ? 0 : s->root + 1;
    }
}

/* Every rank is the root once; each time what came is looked at. */
static void verify(struct bench *b, struct state *s, unsigned round)
{
    size_t bytes = (size_t)s->bytes;
    for (int r = 0; r < b->ranks; r++) bench_fill(s->out + (size_t)r * bytes, bytes, (unsigned)(b->rank * 64 + r) + round);
    for (int turn = 0; turn < b->ranks; turn++) {
        unsigned seed = (unsigned)(s->root * 64 + b->rank) + round;
        memset(s->in, 0, bytes);
        scatters(s, 1);
        bench_check(b, s->in, bytes, seed);
    }
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "scatterv", "8,512,4K,64K,1M", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        size_t bytes = b.sizes[i];
        size_t table = sizeof(int) * (size_t)b.ranks;
        struct state s = {.roots = bench_roots(&b), .bytes = (int)bytes};
        s.out = bench_buffer(&b, bytes * (size_t)b.ranks), s.in = bench_buffer(&b, bytes);
        s.counts = bench_buffer(&b, table), s.places = bench_buffer(&b, table);
        for (int r = 0; r < b.ranks; r++) s.counts[r] = s.bytes, s.places[r] = r * s.bytes;
        verify(&b, &s, 1);
        struct timing t = bench_measure(&b, scatters, &s);
        verify(&b, &s, 2);
        bench_report(&b, bytes, t, 1e6, "us");
        free(s.out), free(s.in), free(s.counts), free(s.places);
    }
    MPI_Finalize();
    return 0;
}
