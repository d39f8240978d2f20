/* bcast: MPI_Bcast back to back, microseconds each. The root moves on by one rank each time, so that no root runs ahead
 * of ranks that have yet to receive. */
#include "bench.h"

struct state {
    int roots, root;
    size_t bytes;
    char *buffer;
};

static void broadcasts(void *opaque, long iterations)
{
    struct state *s = opaque;
    for (long i = 0; i < iterations; i++) {
        MPI_Bcast(s->buffer, (int)s->bytes, MPI_CHAR, s->root, MPI_COMM_WORLD);
        s->root = s->root + 1 == s->roots ? 0 : s->root + 1;
    }
}

static void verify(struct bench *b, struct state *s)
{
    for (int i = 0; i < b->ranks && i < 4; i++) {
        unsigned seed = (unsigned)(s->root + 1);
        if (b->rank == s->root) bench_fill(s->buffer, s->bytes, seed);
        else memset(s->buffer, 0, s->bytes);
        broadcasts(s, 1);
        bench_check(b, s->buffer, s->bytes, seed);
    }
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "bcast", "8,512,4K,64K,1M", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        struct state s = {bench_roots(&b), 0, b.sizes[i], bench_buffer(&b, b.sizes[i])};
        verify(&b, &s);
        struct timing t = bench_measure(&b, broadcasts, &s);
        verify(&b, &s);
        bench_report(&b, b.sizes[i], t, 1e6, "us");
        free(s.buffer);
    }
    MPI_Finalize();
    return 0;
}
