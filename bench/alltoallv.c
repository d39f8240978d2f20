/* alltoallv: MPI_Alltoallv of equal blocks back to back, microseconds each. The size is that of one block, from one rank to another. */
#include "bench.h"

struct state {
    int bytes;
    int *counts, *places;
    char *out, *in;
};

static void exchanges(void *opaque, long iterations)
{
    struct state *s = opaque;
    for (long i = 0; i < iterations; i++)
        MPI_Alltoallv(s->out, s->counts, s->places, MPI_CHAR, s->in, s->counts, s->places, MPI_CHAR, MPI_COMM_WORLD);
}

static unsigned seed(int from, int to, unsigned round) { return (unsigned)(from * 64 + to) + round; }

static void check(struct bench *b, struct state *s, unsigned round)
{
    for (int r = 0; r < b->ranks; r++)
        bench_check(b, s->in + (size_t)r * (size_t)s->bytes, (size_t)s->bytes, seed(r, b->rank, round));
}

static void verify(struct bench *b, struct state *s, unsigned round)
{
    size_t bytes = (size_t)s->bytes;
    for (int r = 0; r < b->ranks; r++) bench_fill(s->out + (size_t)r * bytes, bytes, seed(b->rank, r, round));
    memset(s->in, 0, (size_t)b->ranks * bytes);
    exchanges(s, 1);
    check(b, s, round);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "alltoallv", "8,512,4K,64K,1M", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        size_t all = b.sizes[i] * (size_t)b.ranks;
        size_t table = sizeof(int) * (size_t)b.ranks;
        struct state s = {.bytes = (int)b.sizes[i], .out = bench_buffer(&b, all), .in = bench_buffer(&b, all)};
        s.counts = bench_buffer(&b, table), s.places = bench_buffer(&b, table);
        for (int r = 0; r < b.ranks; r++) s.counts[r] = s.bytes, s.places[r] = r * s.bytes;
        verify(&b, &s, 1);
        struct timing t = bench_measure(&b, exchanges, &s);
        check(&b, &s, 1);
        verify(&b, &s, 2);
        bench_report(&b, b.sizes[i], t, 1e6, "us");
        free(s.out), free(s.in), free(s.counts), free(s.places);
    }
    MPI_Finalize();
    return 0;
}
