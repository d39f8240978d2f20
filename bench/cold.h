/* The first calls of an operation at each size, microseconds a call, at the slowest rank. The calls of the first size follow
 * MPI_Init, those of another size follow a change of size. --iterations is the number of calls. Nothing is warmed up: that is
 * the point. OPERATION, one of the functions below, and NAME are set by the program that includes this file.
 *
 * The program's own buffers have been written before, as in a program that has data, so page faults are the library's. */
#include "bench.h"

struct state {
    int rank, ranks, count;
    char *out, *in;
    MPI_Win win;
};

static inline void ping_pong(struct state *s)
{
    if (s->rank > 1) return;
    int peer = 1 - s->rank;
    if (s->rank == 0) MPI_Send(s->out, s->count, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
    MPI_Recv(s->in, s->count, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (s->rank == 1) MPI_Send(s->out, s->count, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
}

/* A window of 64 messages, and an answer. */
static inline void window(struct state *s)
{
    enum { MESSAGES = 64 };
    MPI_Request requests[MESSAGES];
    if (s->rank > 1) return;
    int peer = 1 - s->rank;
    for (int i = 0; i < MESSAGES; i++)
        if (s->rank == 0) MPI_Isend(s->out, s->count, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &requests[i]);
        else MPI_Irecv(s->in, s->count, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    char answer = 0;
    if (s->rank == 0) MPI_Recv(&answer, 1, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(&answer, 1, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
}

static inline void bcast(struct state *s) { MPI_Bcast(s->out, s->count, MPI_CHAR, 0, MPI_COMM_WORLD); }

static inline void reduce(struct state *s)
{
    MPI_Reduce(s->out, s->in, s->count / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static inline void allreduce(struct state *s)
{
    MPI_Allreduce(s->out, s->in, s->count / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static inline void allgather(struct state *s)
{
    MPI_Allgather(s->out, s->count, MPI_CHAR, s->in, s->count, MPI_CHAR, MPI_COMM_WORLD);
}

static inline void alltoall(struct state *s)
{
    MPI_Alltoall(s->out, s->count, MPI_CHAR, s->in, s->count, MPI_CHAR, MPI_COMM_WORLD);
}

/* One put by rank 0 at rank 1, and its flush. */
static inline void put(struct state *s)
{
    if (s->rank != 0) return;
    MPI_Put(s->out, s->count, MPI_CHAR, 1, 0, s->count, MPI_CHAR, s->win);
    MPI_Win_flush(1, s->win);
}

/* Sets `t` on rank 0 to the mean time of a call at the slowest rank. */
static inline void first_calls(struct bench *b, struct state *s, struct timing *t)
{
    long calls = b->iterations ? b->iterations : 1;
    double *all = calloc((size_t)b->ranks, sizeof *all);
    if (!all) bench_fail(b, "out of memory for samples", b->ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = bench_now();
    for (long i = 0; i < calls; i++) OPERATION(s);
    double mine = (bench_now() - begin) / (double)calls;
    MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    t->batches = 1, t->batch = calls;
    t->rank_median = bench_median(all, b->ranks), t->rank_min = all[0], t->rank_max = all[b->ranks - 1];
    for (int r = 0; r < b->ranks; r++) t->rank_mean += all[r] / b->ranks;
    t->batch_min = t->batch_median = t->mean = t->rank_max;
    free(all);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, NAME, "4K,16K,64K,256K,1M", &argc, &argv);
    bench_need_ranks(&b, b.ranks > 1, "at least 2 ranks");
    size_t most = 0;
    for (int i = 0; i < b.size_count; i++) most = b.sizes[i] > most ? b.sizes[i] : most;
    size_t room = most * (size_t)b.ranks;
    struct state s = {b.rank, b.ranks, 0, bench_buffer(&b, room), bench_buffer(&b, room), MPI_WIN_NULL};
    char *memory;
    MPI_Win_allocate((MPI_Aint)most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &s.win);
    MPI_Win_lock_all(0, s.win);
    for (int i = 0; i < b.size_count; i++) {
        struct timing t = {0};
        s.count = (int)b.sizes[i];
        first_calls(&b, &s, &t);
        bench_report(&b, b.sizes[i], t, 1e6, "us");
    }
    MPI_Win_unlock_all(s.win);
    MPI_Win_free(&s.win);
    free(s.out), free(s.in);
    MPI_Finalize();
    return 0;
}
