/* A square grid of ranks: q by q, row by row, each dimension closed to a ring. */
#ifndef SQUARE_H
#define SQUARE_H
#include "bench.h"

struct square {
    int q, row, column;
};

/* Ends the job where the ranks are no square. */
static inline struct square square_open(const struct bench *b)
{
    int q = (int)(sqrt((double)b->ranks) + 0.5);
    bench_need_ranks(b, q * q == b->ranks, "a square of ranks (1, 4, 9, 16, ...)");
    return (struct square){q, b->rank / q, b->rank % q};
}

/* The rank so many places down and to the right, at most q up or to the left. */
static inline int square_rank(const struct square *s, int down, int right)
{
    return (s->row + down + s->q) % s->q * s->q + (s->column + right + s->q) % s->q;
}

#endif
