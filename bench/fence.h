/* MPI_Win_fence with PUTS puts of each rank before it, microseconds for all of them: what fence_empty (0), fence_put (1) and
 * fence_neighbors (8) have in common; the tests are those of Santhanaraman et al., 2009.
 *
 *   8 neighbours of rank r:   r-4 r-3 r-2 r-1  r  r+1 r+2 r+3 r+4, modulo the number of ranks;   1: r+1
 *
 * With few ranks some neighbours are one rank, or r itself. Put k lands at place k of its target, where no other does. */
#include "bench.h"

enum { PLACES = PUTS > 0 ? PUTS : 1 };

static const int fence_steps[8] = {1, -1, 2, -2, 3, -3, 4, -4};

struct state {
    struct bench *b;
    size_t bytes;
    char *data, *memory;
    MPI_Win win;
};

/* `ranks` is added first: the remainder of a negative number is none of a rank's. */
static inline int fence_neighbor(const struct bench *b, int step) { return (b->rank + 4 * b->ranks + step) % b->ranks; }

static inline void epoch(struct state *s, int puts)
{
    int count = (int)s->bytes;
    for (int k = 0; k < puts; k++) {
        MPI_Aint at = (MPI_Aint)((size_t)k * s->bytes);
        MPI_Put(s->data, count, MPI_CHAR, fence_neighbor(s->b, fence_steps[k]), at, count, MPI_CHAR, s->win);
    }
    MPI_Win_fence(0, s->win);
}

static void fences(void *opaque, long iterations)
{
    for (long i = 0; i < iterations; i++) epoch(opaque, PUTS);
}

static void check(struct state *s, unsigned round)
{
    for (int k = 0; k < PLACES; k++) {
        unsigned source = (unsigned)fence_neighbor(s->b, -fence_steps[k]);
        bench_check(s->b, s->memory + (size_t)k * s->bytes, s->bytes, round * 1000 + source);
    }
    MPI_Win_fence(0, s->win); /* who goes on puts again */
}

/* One epoch over cleared memory, with new contents. Where none are timed, it has a put all the same: the window works. */
static void verify(struct state *s, unsigned round)
{
    memset(s->memory, 0, PLACES * s->bytes);
    bench_fill(s->data, s->bytes, round * 1000 + (unsigned)s->b->rank);
    MPI_Win_fence(0, s->win);
    epoch(s, PLACES);
    check(s, round);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, NAME, PUTS ? "8,1K,64K" : "0", &argc, &argv);
    bench_need_ranks(&b, b.ranks >= 2, "at least 2 ranks");
    for (int i = 0; i < b.size_count; i++) {
        struct state s = {&b, PUTS ? b.sizes[i] : 8, NULL, NULL, MPI_WIN_NULL};
        s.data = bench_buffer(&b, s.bytes);
        MPI_Win_allocate((MPI_Aint)(PLACES * s.bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s.memory, &s.win);
        MPI_Win_fence(0, s.win);
        verify(&s, 1);
        struct timing t = bench_measure(&b, fences, &s);
        check(&s, 1);
        verify(&s, 2);
        bench_report(&b, PUTS ? s.bytes : 0, t, 1e6, "us");
        MPI_Win_free(&s.win);
        free(s.data);
    }
    MPI_Finalize();
    return 0;
}
