/* One put or get, and the synchronization that ends it, by rank 0 at rank 1: microseconds each. Which of them, and which
 * synchronization, the program says that includes this file: OPERATION is PUT or GET, SYNC is FLUSH, LOCK, PSCW or FENCE.
 *
 *   FLUSH   within MPI_Win_lock_all: the operation, MPI_Win_flush
 *   LOCK    MPI_Win_lock (exclusive), the operation, MPI_Win_unlock
 *   PSCW    start, the operation, complete; the target: post, wait
 *   FENCE   the operation by rank 0, MPI_Win_fence by both
 *
 * Memory is the library's own (MPI_Win_allocate). */
#include "bench.h"

enum { PUT, GET };
enum { FLUSH, LOCK, PSCW, FENCE };

struct state {
    int rank;
    size_t bytes;
    void *data, *memory;
    MPI_Win win;
    MPI_Group other;
};

static void operate(struct state *s)
{
    int count = (int)s->bytes;
    if (OPERATION == PUT) MPI_Put(s->data, count, MPI_CHAR, 1, 0, count, MPI_CHAR, s->win);
    else MPI_Get(s->data, count, MPI_CHAR, 1, 0, count, MPI_CHAR, s->win);
}

static void epochs(void *opaque, long iterations)
{
    struct state *s = opaque;
    for (long i = 0; i < iterations; i++) {
        if (SYNC == FENCE) {
            if (s->rank == 0) operate(s);
            MPI_Win_fence(0, s->win);
        } else if (s->rank == 1) {
            if (SYNC != PSCW) return;
            MPI_Win_post(s->other, 0, s->win);
            MPI_Win_wait(s->win);
        } else {
            if (SYNC == LOCK) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, s->win);
            if (SYNC == PSCW) MPI_Win_start(s->other, 0, s->win);
            operate(s);
            if (SYNC == FLUSH) MPI_Win_flush(1, s->win);
            if (SYNC == LOCK) MPI_Win_unlock(1, s->win);
            if (SYNC == PSCW) MPI_Win_complete(s->win);
        }
    }
}

/* One epoch, with new contents. */
static void verify(struct bench *b, struct state *s, unsigned seed)
{
    void *from = OPERATION == PUT ? s->data : s->memory, *to = OPERATION == PUT ? s->memory : s->data;
    int source = OPERATION == PUT ? 0 : 1;
    if (s->rank == source) bench_fill(from, s->bytes, seed);
    else memset(to, 0, s->bytes);
    if (SYNC == FLUSH) MPI_Win_sync(s->win);
    if (SYNC == FENCE) MPI_Win_fence(0, s->win);
    MPI_Barrier(MPI_COMM_WORLD);
    epochs(s, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (SYNC == FLUSH) MPI_Win_sync(s->win);
    if (s->rank != source) bench_check(b, to, s->bytes, seed);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, NAME, "8,1K,64K,1M", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int i = 0; i < b.size_count; i++) {
        struct state s = {b.rank, b.sizes[i], bench_buffer(&b, b.sizes[i]), NULL, MPI_WIN_NULL, MPI_GROUP_NULL};
        int other = 1 - b.rank;
        MPI_Win_allocate((MPI_Aint)s.bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s.memory, &s.win);
        MPI_Group_incl(all, 1, &other, &s.other);
        if (SYNC == FENCE) MPI_Win_fence(0, s.win);
        if (SYNC == FLUSH) MPI_Win_lock_all(0, s.win);
        verify(&b, &s, 10);
        struct timing t = bench_measure(&b, epochs, &s);
        verify(&b, &s, 20);
        bench_report(&b, s.bytes, t, 1e6, "us");
        if (SYNC == FENCE) MPI_Win_fence(0, s.win);
        if (SYNC == FLUSH) MPI_Win_unlock_all(s.win);
        MPI_Group_free(&s.other);
        MPI_Win_free(&s.win);
        free(s.data);
    }
    MPI_Group_free(&all);
    MPI_Finalize();
    return 0;
}
