/* allgather: MPI_Allgather back to back, microseconds each. The size is that of one rank's block. */
#include "bench.h"

struct state {
    int bytes;
    char *out, *in;
};

static void gathers(void *opaque, long iterations)
{
    struct state *s = opaque;
    for (long i = 0; i < iterations; i++)
        MPI_Allgather(s->out, s->bytes, MPI_CHAR, s->in, s->bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void check(struct bench *b, struct state *s, unsigned round)
{
    for (int r = 0; r < b->ranks; r++)
        bench_check(b, s->in + (size_t)r * (size_t)s->bytes, (size_t)s->bytes, 64 * round + (unsigned)r);
}

static void verify(struct bench *b, struct state *s, unsigned round)
{
    bench_fill(s->out, (size_t)s->bytes, 64 * round + (unsigned)b->rank);
    memset(s->in, 0, (size_t)b->ranks * (size_t)s->bytes);
    gathers(s, 1);
    check(b, s, round);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "allgather", "8,512,4K,64K,1M", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        size_t bytes = b.sizes[i];
        struct state s = {(int)bytes, bench_buffer(&b, bytes), bench_buffer(&b, bytes * (size_t)b.ranks)};
        verify(&b, &s, 1);
        struct timing t = bench_measure(&b, gathers, &s);
        check(&b, &s, 1);
        verify(&b, &s, 2);
        bench_report(&b, bytes, t, 1e6, "us");
        free(s.out), free(s.in);
    }
    MPI_Finalize();
    return 0;
}
