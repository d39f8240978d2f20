/* gather: MPI_Gather back to back, microseconds each. The size is that of one rank's block. The root moves on by one rank
 * each time. */
#include "bench.h"

struct state {
    int roots, root, bytes;
    char *out, *in;
};

static void gathers(void *opaque, long iterations)
{
    struct state *s = opaque;
    for (long i = 0; i < iterations; i++) {
        MPI_Gather(s->out, s->bytes, MPI_CHAR, s->in, s->bytes, MPI_CHAR, s->root, MPI_COMM_WORLD);
        s->root = s->root + 1 == s->roots ? 0 : s->root + 1;
    }
}

/* Each root has its turn. */
static void verify(struct bench *b, struct state *s, unsigned round)
{
    size_t bytes = (size_t)s->bytes;
    bench_fill(s->out, bytes, 64 * round + (unsigned)b->rank);
    memset(s->in, 0, (size_t)b->ranks * bytes);
    gathers(s, s->roots);
    for (int r = 0; b->rank < s->roots && r < b->ranks; r++) bench_check(b, s->in + (size_t)r * bytes, bytes, 64 * round + (unsigned)r);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "gather", "8,512,4K,64K,1M", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        size_t bytes = b.sizes[i];
        struct state s = {bench_roots(&b), 0, (int)bytes, bench_buffer(&b, bytes), bench_buffer(&b, bytes * (size_t)b.ranks)};
        verify(&b, &s, 1);
        struct timing t = bench_measure(&b, gathers, &s);
        verify(&b, &s, 2);
        bench_report(&b, bytes, t, 1e6, "us");
        free(s.out), free(s.in);
    }
    MPI_Finalize();
    return 0;
}
