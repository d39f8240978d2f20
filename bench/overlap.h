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

/* The three are timed in turns, in short batches, and base and overhead are medians of as many rounds as fit in the time:
 * what disturbs the machine for long disturbs all. */
enum { LEAST_ROUNDS = 7, MOST_ROUNDS = 99, TRIES = 7, WARM = 2 };
/* Seconds of an iteration that no cold page or cache would change. */
static const double SLOW = 0.1;
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

/* The iterations that fit in a batch if one takes `about` seconds. */
static inline long overlap_batch(const struct bench *b, double about)
{
    return b->batch ? b->batch : (long)fmin(1e6, fmax(1, b->batch_seconds / about));
}

/* Seconds an iteration, the same on both ranks: of a batch of as many as rank 0 says. */
static inline double overlap_measure(struct overlap *o, long turns, double about)
{
    long count = overlap_batch(o->b, about);
    MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    o->turns = turns;
    if (about < SLOW) overlap_iterations(o, WARM);
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
    long count = overlap_batch(o->b, about);
    double begin = bench_now();
    if (o->b->rank != 0) return 0;
    for (long i = 0; i < count; i++) compute(turns);
    return (bench_now() - begin) / (double)count;
}

/* Rounds for a size, the same on both ranks, as `about` is. */
static inline int overlap_rounds(const struct bench *b, double about)
{
    double batch = (double)overlap_batch(b, about) * about;
    double rounds = b->iterations ? (double)b->iterations / (double)overlap_batch(b, about) : b->seconds / (3 * batch);
    return (int)fmin(MOST_ROUNDS, fmax(LEAST_ROUNDS, rounds));
}

static inline int overlap_main(const char *name, int source, int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, name, "8K,64K,256K,1M,4M", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    for (int i = 0; i < b.size_count; i++) {
        struct overlap o = {.b = &b, .bytes = b.sizes[i], .data = bench_buffer(&b, b.sizes[i])};
        overlap_verify(&o, source, 1000, 1);
        double tries[TRIES], about = b.seconds; /* the first ones meet cold pages */
        int count = 0;
        while (count < (about < SLOW ? TRIES : 3)) tries[count++] = about = overlap_measure(&o, 0, about);
        about = bench_median(tries, count);
        long turns = overlap_search(&o, about);
        int rounds = overlap_rounds(&b, about);
        double base[MOST_ROUNDS], alone[MOST_ROUNDS], both[MOST_ROUNDS], overhead[MOST_ROUNDS];
        for (int r = 0; r < rounds; r++) {
            base[r] = overlap_measure(&o, 0, about), alone[r] = overlap_compute(&o, turns, 2 * about);
            both[r] = overlap_measure(&o, turns, 2 * about);
            overhead[r] = both[r] - alone[r];
            if (r % 8 == 0) overlap_verify(&o, source, turns, 2 + (unsigned)r);
        }
        overlap_verify(&o, source, turns, 2 + MOST_ROUNDS);
        if (b.rank == 0) {
            double price = fmax(0, bench_median(overhead, rounds)), whole = bench_median(base, rounds);
            printf("{\"size\":%zu,\"value\":%.4g,\"unit\":\"%% available\",\"base_us\":%.6g,", o.bytes,
                   fmax(0, 100 * (1 - price / whole)), 1e6 * whole);
            printf("\"compute_us\":%.6g,\"iteration_us\":%.6g,\"rounds\":%d}\n", 1e6 * bench_median(alone, rounds),
                   1e6 * bench_median(both, rounds), rounds);
            bench_figure(&b, o.bytes, 1e6 * price, "us overhead");
        }
        free(o.data);
    }
    MPI_Finalize();
    return 0;
}

#endif
