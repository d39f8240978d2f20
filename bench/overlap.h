/* Application availability, in per cent: what overlap_receiver and overlap_sender have in common. It is what the host
 * processor overhead test of Sandia's micro-benchmarks (SMB) defines:
 *
 *   rank 0   post a message | compute | MPI_Wait           rank 1   the other end of it, blocked in MPI_Wait
 *
 *   base: an iteration without computing      iteration: one with as much computing as makes it twice as long as base
 *   overhead = iteration - computing          available = 100 * (1 - overhead / base)
 *
 * 100: the message costs the program nothing; 0: its whole time. At twice the base computing lasts at least as long as the
 * transfer, whether or not they overlap: there was room to hide all of it. The share is of the library's own base, and a slow
 * one hides more easily: the overhead itself is printed beside it. */
#ifndef OVERLAP_H
#define OVERLAP_H
#include "compute.h"

/* The three are timed in turns, and a figure is the median of so many: what disturbs the machine for long disturbs all. */
enum { ROUNDS = 7, WARM = 2 };
enum { MESSAGE = 1, READY = 2 }; /* tags */

struct overlap {
    struct bench *b;
    long turns; /* of computing in an iteration */
    size_t bytes;
    char *data;
};

/* Defined by each program. Rank 0: what comes before the clock starts; what is posted. Rank 1: all of an iteration. */
static void prepare(struct overlap *o);
static MPI_Request post(struct overlap *o);
static void serve(struct overlap *o);

/* Seconds an iteration; 0 but on rank 0. */
static inline double overlap_iterations(struct overlap *o, long count)
{
    double spent = 0;
    for (long i = 0; i < count; i++) {
        if (o->b->rank != 0) {
            serve(o);
            continue;
        }
        prepare(o);
        double begin = bench_now();
        MPI_Request request = post(o);
        if (o->turns) compute(o->turns);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        spent += bench_now() - begin;
    }
    return spent / (double)count;
}

/* Seconds an iteration, the same on both ranks: of as many as fit in a share of the time if one takes `about` seconds. */
static inline double overlap_measure(struct overlap *o, long turns, double about)
{
    const struct bench *b = o->b;
    long count = b->iterations ? b->iterations / ROUNDS : b->batch ? b->batch : (long)(b->seconds / (3 * ROUNDS) / about);
    count = count < 1 ? 1 : count;
    MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    o->turns = turns;
    overlap_iterations(o, WARM);
    double seconds = overlap_iterations(o, count);
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return seconds;
}

/* One iteration without computing and one with, with new contents. A buffer is overwritten as soon as its MPI_Wait is over. */
static inline void overlap_verify(struct overlap *o, int source, long turns, unsigned seed)
{
    for (int computing = 0; computing < 2; computing++, seed += 50) {
        if (o->b->rank == source) bench_fill(o->data, o->bytes, seed);
        else memset(o->data, 0, o->bytes);
        o->turns = computing ? turns : 0;
        overlap_iterations(o, 1);
        if (o->b->rank == source) memset(o->data, 0, o->bytes);
        else bench_check(o->b, o->data, o->bytes, seed);
    }
}

/* Turns of computing that make an iteration twice as long as `base` seconds. It is the quicker of two tries that counts: one
 * that was interrupted would end the search too early. */
static inline long overlap_search(struct overlap *o, double base)
{
    double second = (double)turns_in(1);
    for (double work = base / 2;; work *= 1.25) {
        long turns = (long)(work * second);
        double one = overlap_measure(o, turns, base + work), other = overlap_measure(o, turns, base + work);
        if (fmin(one, other) >= 2 * base) return turns;
    }
}

/* Seconds that the computing of an iteration takes by itself; 0 but on rank 0. */
static inline double overlap_compute(const struct overlap *o, long turns, double about)
{
    long count = (long)fmax(1, o->b->seconds / (3 * ROUNDS) / about);
    double begin = bench_now();
    if (o->b->rank != 0) return 0;
    for (long i = 0; i < count; i++) compute(turns);
    return (bench_now() - begin) / (double)count;
}

static inline int overlap_main(const char *name, int source, int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, name, "8K,64K,256K,1M,4M", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    for (int i = 0; i < b.size_count; i++) {
        struct overlap o = {.b = &b, .bytes = b.sizes[i], .data = bench_buffer(&b, b.sizes[i])};
        overlap_verify(&o, source, 1000, 1);
        double tries[ROUNDS], about = b.seconds; /* the first ones meet cold pages */
        for (int k = 0; k < ROUNDS; k++) tries[k] = about = overlap_measure(&o, 0, about);
        about = bench_median(tries, ROUNDS);
        long turns = overlap_search(&o, about);
        double base[ROUNDS], alone[ROUNDS], both[ROUNDS], overhead[ROUNDS], available[ROUNDS];
        for (int r = 0; r < ROUNDS; r++) {
            base[r] = overlap_measure(&o, 0, about), alone[r] = overlap_compute(&o, turns, 2 * about);
            both[r] = overlap_measure(&o, turns, 2 * about);
            overhead[r] = both[r] - alone[r], available[r] = 100 * (1 - overhead[r] / base[r]);
            overlap_verify(&o, source, turns, 2 + (unsigned)r);
        }
        if (b.rank == 0) {
            double share = fmax(0, fmin(100, bench_median(available, ROUNDS)));
            printf("{\"size\":%zu,\"value\":%.4g,\"unit\":\"%% available\",\"base_us\":%.6g,", o.bytes, share,
                   1e6 * bench_median(base, ROUNDS));
            printf("\"compute_us\":%.6g,\"iteration_us\":%.6g}\n", 1e6 * bench_median(alone, ROUNDS),
                   1e6 * bench_median(both, ROUNDS));
        }
        bench_figure(&b, o.bytes, 1e6 * fmax(0, bench_median(overhead, ROUNDS)), "us overhead");
        free(o.data);
    }
    MPI_Finalize();
    return 0;
}

#endif
