/* The time that a program of many messages spends in MPI_Waitall: what overlap is to take away. */
#ifndef WAITS_H
#define WAITS_H
#include "bench.h"

enum { WAITS_KEPT = 4096 };

struct waits {
    double spent;               /* since the batch began, in seconds */
    double batches[WAITS_KEPT]; /* the last ones, seconds an operation */
    double all;                 /* seconds of all batches */
    long count, operations;
};

static inline void waits_all(struct waits *w, int count, MPI_Request *requests)
{
    double begin = bench_now();
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    w->spent += bench_now() - begin;
}

/* Ends a batch of so many operations. */
static inline void waits_batch(struct waits *w, long iterations)
{
    w->batches[w->count++ % WAITS_KEPT] = w->spent / (double)iterations;
    w->all += w->spent, w->operations += iterations;
    w->spent = 0;
}

static inline void waits_clear(struct waits *w)
{
    w->spent = w->all = 0;
    w->count = w->operations = 0;
}

/* Microseconds an operation, on rank 0, since waits_clear: of a rank the median over batches, or the mean where that is the
 * figure, or with --warm the last batch, the only one that is timed; of the ranks the mean. */
static inline double waits_us(const struct bench *b, struct waits *w)
{
    double mine = w->operations ? w->all / (double)w->operations : 0, sum;
    if (w->count && b->warm) mine = w->batches[(w->count - 1) % WAITS_KEPT];
    else if (w->count && !b->mean) mine = bench_median(w->batches, w->count < WAITS_KEPT ? w->count : WAITS_KEPT);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return b->rank == 0 ? 1e6 * sum / b->ranks : 0;
}

#endif
