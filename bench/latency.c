/* latency: half of a round trip of MPI_Send and MPI_Recv between two ranks, in microseconds. */
#include "bench.h"

#ifndef NAME
#define NAME "latency"
#endif
#ifndef BENCH_FRESH
#define BENCH_FRESH 0
#endif

struct state {
    int rank;
    size_t bytes;
    void *out, *in, *contents;
};

static void round_trips(void *opaque, long iterations)
{
    struct state *s = opaque;
    int count = (int)s->bytes;
    for (long i = 0; i < iterations; i++) {
        if (BENCH_FRESH)
            memcpy(s->out, s->contents, s->bytes);
        if (s->rank == 0) {
            MPI_Send(s->out, count, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(s->in, count, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(s->in, count, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(s->out, count, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
}

/* One round trip into cleared buffers, with new contents. */
static void verify(struct bench *b, struct state *s, unsigned seed)
{
    bench_fill(s->contents, s->bytes, seed + (unsigned)s->rank);
    memcpy(s->out, s->contents, s->bytes);
    memset(s->in, 0, s->bytes);
    round_trips(s, 1);
    bench_check(b, s->in, s->bytes, seed + 1 - (unsigned)s->rank);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, NAME, "0,8,64,512,4K,32K,256K,2M", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    for (int i = 0; i < b.size_count; i++) {
        size_t bytes = b.sizes[i];
        void *buffers[3] = {bench_buffer(&b, bytes), bench_buffer(&b, bytes), bench_buffer(&b, bytes)};
        struct state s = {b.rank, bytes, buffers[0], buffers[1], buffers[2]};
        verify(&b, &s, 10);
        struct timing t = bench_measure(&b, round_trips, &s);
        bench_check(&b, s.in, bytes, 11 - (unsigned)b.rank);
        verify(&b, &s, 20);
        bench_report(&b, bytes, t, 0.5e6, "us");
        free(s.out), free(s.in), free(s.contents);
    }
    MPI_Finalize();
    return 0;
}
