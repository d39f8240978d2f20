/* Computing that takes as long as is asked for: what the overlap_ programs hide transfers behind. */
#ifndef COMPUTE_H
#define COMPUTE_H
#include "bench.h"

/* In registers alone: it takes no memory bandwidth from the transfer, and a compiler cannot leave it out. */
static inline void compute(long turns)
{
    static volatile uint64_t sink;
    uint64_t x = sink + 88172645463325252;
    for (long i = 0; i < turns; i++) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    sink = x;
}

/* Turns that take `seconds`, from the quickest of some tries: a rank that was interrupted is no measure. */
static inline long turns_in(double seconds)
{
    double best = INFINITY;
    for (int i = 0; i < 20; i++) {
        double begin = bench_now();
        compute(100000);
        best = fmin(best, bench_now() - begin);
    }
    return (long)fmin(1e9, ceil(seconds * 100000 / fmax(best, 1e-9)));
}

#endif
