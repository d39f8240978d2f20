/* One MPI_Accumulate (sum) and the flush that ends it, by rank 0 at rank 1 within MPI_Win_lock_all: microseconds each. The
 * program that includes this file says of which elements: ELEMENT is a C type, TYPE the datatype, NAME the program.
 *
 * Memory is the library's own (MPI_Win_allocate). Sizes are rounded up to whole elements. */
#include "bench.h"

struct state {
    int rank, count;
    long done;
    ELEMENT *data, *memory;
    MPI_Win win;
};

static void accumulates(void *opaque, long iterations)
{
    struct state *s = opaque;
    if (s->rank != 0) return;
    for (long i = 0; i < iterations; i++) {
        MPI_Accumulate(s->data, s->count, TYPE, 1, 0, s->count, TYPE, MPI_SUM, s->win);
        MPI_Win_flush(1, s->win);
    }
    s->done += iterations;
}

/* Whole numbers, whose sums are exact, or wrap as unsigned ones do. */
static ELEMENT element(long done, int i) { return (ELEMENT)(done * (i % 100 + 1)); }

/* The target holds what all operations so far add up to. */
static void check(struct bench *b, struct state *s)
{
    MPI_Bcast(&s->done, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    MPI_Win_sync(s->win);
    for (int i = 0; s->rank == 1 && i < s->count; i++)
        if (s->memory[i] != element(s->done, i)) bench_fail(b, "wrong sum in element", i);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, NAME, "8,1K,64K,1M", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    for (int i = 0; i < b.size_count; i++) {
        size_t whole = sizeof(ELEMENT), bytes = (b.sizes[i] + whole - 1) / whole * whole;
        struct state s = {.rank = b.rank, .count = (int)(bytes / whole), .data = bench_buffer(&b, bytes)};
        MPI_Win_allocate((MPI_Aint)bytes, (int)whole, MPI_INFO_NULL, MPI_COMM_WORLD, &s.memory, &s.win);
        for (int e = 0; e < s.count; e++) s.data[e] = element(1, e), s.memory[e] = 0;
        MPI_Win_lock_all(0, s.win);
        MPI_Win_sync(s.win);
        MPI_Barrier(MPI_COMM_WORLD);
        accumulates(&s, 1);
        check(&b, &s);
        struct timing t = bench_measure(&b, accumulates, &s);
        check(&b, &s);
        bench_report(&b, bytes, t, 1e6, "us");
        MPI_Win_unlock_all(s.win);
        MPI_Win_free(&s.win);
        free(s.data);
    }
    MPI_Finalize();
    return 0;
}
