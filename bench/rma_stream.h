/* Windows of puts and gets, each ended by one flush, within MPI_Win_lock_all: what put_window, get_window,
 * put_bidirectional and put_get_interleaved have in common. Two ranks, each the other's target.
 *
 *   the memory at a target:   put 0 | put 1 | ... | got 0 | got 1 | ...      a place for each, from page to page;
 *                                                                   below a page, from line to line
 *
 * Puts and gets take turns: put 0, get 0, put 1, ... Each has a place of its own at the target, because the standard leaves
 * open what two operations under way at one place do; puts read one buffer, with --separate each its own. */
#ifndef RMA_STREAM_H
#define RMA_STREAM_H
#include "bench.h"

struct rma_stream {
    struct bench *b;
    int origin;         /* this rank puts and gets */
    int target;         /* this rank is put to and got from */
    int puts, gets;     /* in a window */
    size_t bytes, place, stride; /* an operation; from one place to the next; from one put's source to the next (0: the same) */
    char *out, *in, *memory;
    MPI_Win win;
};

static inline void rma_stream_windows(void *opaque, long iterations)
{
    struct rma_stream *s = opaque;
    int count = (int)s->bytes, peer = 1 - s->b->rank;
    if (!s->origin) return;
    for (long i = 0; i < iterations; i++) {
        for (int w = 0; w < s->puts || w < s->gets; w++) {
            size_t at = (size_t)w * s->place, got = (size_t)(s->puts + w) * s->place;
            if (w < s->puts)
                MPI_Put(s->out + (size_t)w * s->stride, count, MPI_CHAR, peer, (MPI_Aint)at, count, MPI_CHAR, s->win);
            if (w < s->gets) MPI_Get(s->in + at, count, MPI_CHAR, peer, (MPI_Aint)got, count, MPI_CHAR, s->win);
        }
        MPI_Win_flush(peer, s->win);
    }
}

/* The contents of put or place `w` of `rank`. */
static inline unsigned rma_stream_seed(unsigned round, int rank, int w)
{
    return round * 1000 + (unsigned)rank * 300 + (unsigned)w;
}

static inline void rma_stream_check(struct rma_stream *s, unsigned round)
{
    int rank = s->b->rank, peer = 1 - rank;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(s->win);
    for (int w = 0; s->target && w < s->puts; w++)
        bench_check(s->b, s->memory + (size_t)w * s->place, s->bytes, rma_stream_seed(round, peer, s->stride ? w : 0));
    for (int w = 0; s->origin && w < s->gets; w++)
        bench_check(s->b, s->in + (size_t)w * s->place, s->bytes, rma_stream_seed(round, peer, s->puts + w));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* One window over cleared memory, with new contents. */
static inline void rma_stream_verify(struct rma_stream *s, unsigned round)
{
    for (int w = 0; w < (s->stride ? s->puts : 1); w++)
        bench_fill(s->out + (size_t)w * s->stride, s->bytes, rma_stream_seed(round, s->b->rank, w));
    memset(s->memory, 0, (size_t)s->puts * s->place);
    memset(s->in, 0, (size_t)s->gets * s->place);
    for (int w = s->puts; w < s->puts + s->gets; w++)
        bench_fill(s->memory + (size_t)w * s->place, s->bytes, rma_stream_seed(round, s->b->rank, w));
    MPI_Win_sync(s->win);
    MPI_Barrier(MPI_COMM_WORLD);
    rma_stream_windows(s, 1);
    rma_stream_check(s, round);
}

/* Times windows of so many puts and gets of `bytes`, by rank 0 or by `both`. */
static inline struct timing rma_stream_measure(struct bench *b, size_t bytes, int puts, int gets, int both)
{
    struct rma_stream s = {.b = b, .puts = puts, .gets = gets, .bytes = bytes};
    s.origin = both || b->rank == 0, s.target = both || b->rank == 1;
    /* Small ones lie side by side: at the same place of 64 pages they would fall into one set of the first cache. */
    size_t unit = bytes < BENCH_PAGE ? 64 : BENCH_PAGE;
    s.place = (bytes + unit - 1) / unit * unit;
    s.stride = b->separate ? s.place : 0;
    s.out = bench_buffer(b, b->separate ? s.place * (size_t)puts : bytes);
    s.in = bench_buffer(b, s.place * (size_t)gets);
    MPI_Aint room = (MPI_Aint)(s.place * (size_t)(puts + gets));
    MPI_Win_allocate(room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s.memory, &s.win);
    MPI_Win_lock_all(0, s.win);
    rma_stream_verify(&s, 1);
    struct timing t = bench_measure(b, rma_stream_windows, &s);
    rma_stream_check(&s, 1);
    rma_stream_verify(&s, 2);
    MPI_Win_unlock_all(s.win);
    MPI_Win_free(&s.win);
    free(s.out), free(s.in);
    return t;
}

#endif
