/* One MPI_Accumulate (sum) and the flush that ends it, by rank 0 at rank 1 within MPI_Win_lock_all: microseconds each. The
 * program that includes this file says of which elements: ELEMENT is a C type, TYPE the datatype, NAME the program.
 *
 * Memory is the library's own (MPI_Win_allocate). Sizes are rounded up to whole elements. */
#include "bench.h"

struct state {
    int rank, count;
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
}

/* Twice of it fits a char: an overflow wraps in one library and saturates in another. */
static ELEMENT element(int i) { return (ELEMENT)(i % 60 + 1); }

/* Adds numbers that differ from place to place: the target then holds so many `times` as much. */
static void verify(struct bench *b, struct state *s, int times)
{
    for (int i = 0; i < s->count; i++) s->data[i] = element(i);
    MPI_Barrier(MPI_COMM_WORLD);
    accumulates(s, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(s->win);
    for (int i = 0; s->rank == 1 && i < s->count; i++)
        if (s->memory[i] != (ELEMENT)(times * element(i))) bench_fail(b, "wrong sum in element", i);
    /* What is timed adds nothing, however often. */
    memset(s->data, 0, (size_t)s->count * sizeof(ELEMENT));
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
        memset(s.memory, 0, bytes);
        MPI_Win_lock_all(0, s.win);
        MPI_Win_sync(s.win);
        verify(&b, &s, 1);
        struct timing t = bench_measure(&b, accumulates, &s);
        verify(&b, &s, 2);
        bench_report(&b, bytes, t, 1e6, "us");
        MPI_Win_unlock_all(s.win);
        MPI_Win_free(&s.win);
        free(s.data);
    }
    MPI_Finalize();
    return 0;
}
