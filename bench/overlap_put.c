/* overlap_put: how much of the time of a put and its flush is hidden by computing between the two, in per cent.
 *
 *   put:  MPI_Put, MPI_Win_flush     computing: about half as long again     both:  MPI_Put, computing, MPI_Win_flush
 *
 *   hidden = (put + computing - both) / put       100: the put costs nothing; 0: its whole time is added
 *
 * Rank 0 does all that; rank 1, the target, waits in a collective operation. */
#include "compute.h"

/* The three are timed in turns, and a figure is the median of so many: what disturbs the machine for long disturbs all. */
enum { ROUNDS = 5 };

struct state {
    struct bench *b;
    int put, compute;   /* what an operation has */
    long turns;         /* of computing */
    size_t bytes;
    char *data, *memory;
    MPI_Win win;
};

static void operations(void *opaque, long iterations)
{
    struct state *s = opaque;
    int count = (int)s->bytes;
    if (s->b->rank != 0) return;
    for (long i = 0; i < iterations; i++) {
        if (s->put) MPI_Put(s->data, count, MPI_CHAR, 1, 0, count, MPI_CHAR, s->win);
        if (s->compute) compute(s->turns);
        if (s->put) MPI_Win_flush(1, s->win);
    }
}

/* One put with computing, with new contents. */
static void verify(struct state *s, unsigned seed)
{
    s->put = s->compute = 1;
    if (s->b->rank == 0) bench_fill(s->data, s->bytes, seed);
    else memset(s->memory, 0, s->bytes);
    MPI_Win_sync(s->win);
    MPI_Barrier(MPI_COMM_WORLD);
    operations(s, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(s->win);
    if (s->b->rank == 1) bench_check(s->b, s->memory, s->bytes, seed);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Seconds an operation; on rank 0. */
static double measure(struct state *s, int put, int computing)
{
    s->put = put, s->compute = computing;
    return bench_time(s->b, bench_measure(s->b, operations, s));
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "overlap_put", "8,4K,64K,1M", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    b.seconds /= 3 * ROUNDS;
    for (int i = 0; i < b.size_count; i++) {
        struct state s = {.b = &b, .bytes = b.sizes[i], .data = bench_buffer(&b, b.sizes[i])};
        MPI_Win_allocate((MPI_Aint)s.bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s.memory, &s.win);
        MPI_Win_lock_all(0, s.win);
        verify(&s, 1);
        double put[ROUNDS], computing[ROUNDS], both[ROUNDS], hidden[ROUNDS];
        for (int r = 0; r < ROUNDS; r++) {
            put[r] = measure(&s, 1, 0);
            if (r == 0 && b.rank == 0) s.turns = turns_in(1.5 * put[0]);
            computing[r] = measure(&s, 0, 1), both[r] = measure(&s, 1, 1);
            hidden[r] = 100 * (put[r] + computing[r] - both[r]) / put[r];
        }
        verify(&s, 2);
        if (b.rank == 0) {
            double share = fmax(0, fmin(100, bench_median(hidden, ROUNDS)));
            printf("{\"size\":%zu,\"value\":%.4g,\"unit\":\"%% hidden\",\"put_us\":%.6g,", s.bytes, share,
                   1e6 * bench_median(put, ROUNDS));
            printf("\"compute_us\":%.6g,\"both_us\":%.6g}\n", 1e6 * bench_median(computing, ROUNDS),
                   1e6 * bench_median(both, ROUNDS));
            fflush(stdout);
        }
        MPI_Win_unlock_all(s.win);
        MPI_Win_free(&s.win);
        free(s.data);
    }
    MPI_Finalize();
    return 0;
}
