/* halo_threads: the hybrid pattern of molecular dynamics. Each of four threads a rank owns a part of the cells and a communicator. In
 * a step a thread exchanges a strip with the same thread of both neighbours, and works on its cells meanwhile. The figure is the
 * time of a step of all threads. The strips' first and last words are checked in every step. */
#define BENCH_THREAD_LEVEL MPI_THREAD_MULTIPLE
#include "bench.h"
#include <pthread.h>

enum { THREADS = 4, CELLS = 256 };

struct part {
    const struct bench *b;
    MPI_Comm comm;
    int words;
    long steps;
    uint64_t *out, *in[2];
    double cells[CELLS];
};

static void *run(void *argument)
{
    struct part *p = argument;
    int left = (p->b->rank + p->b->ranks - 1) % p->b->ranks, right = (p->b->rank + 1) % p->b->ranks;
    for (long step = 0; step < p->steps; step++) {
        MPI_Request requests[4];
        MPI_Irecv(p->in[0], p->words, MPI_UINT64_T, left, 0, p->comm, &requests[0]);
        MPI_Irecv(p->in[1], p->words, MPI_UINT64_T, right, 1, p->comm, &requests[1]);
        p->out[0] = p->out[p->words - 1] = (uint64_t)step;
        MPI_Isend(p->out, p->words, MPI_UINT64_T, right, 0, p->comm, &requests[2]);
        MPI_Isend(p->out, p->words, MPI_UINT64_T, left, 1, p->comm, &requests[3]);
        for (int i = 0; i < CELLS; i++) p->cells[i] = 0.5 * p->cells[i] + (double)i;
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int side = 0; side < 2; side++)
            if (p->in[side][0] != (uint64_t)step || p->in[side][p->words - 1] != (uint64_t)step)
                bench_fail(p->b, "wrong strip in step", step);
    }
    return NULL;
}

/* Steps of all threads; `state` are the parts. */
static void steps(void *state, long iterations)
{
    struct part *parts = state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        parts[i].steps = iterations;
        if (pthread_create(&threads[i], NULL, run, &parts[i])) bench_fail(parts->b, "no thread", i);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    struct bench b;
    static struct part parts[THREADS];
    bench_begin(&b, "halo_threads", "8,4K,64K", &argc, &argv);
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &parts[i].comm);
    for (int s = 0; s < b.size_count; s++) {
        size_t bytes = b.sizes[s] < 8 ? 8 : b.sizes[s] / 8 * 8;
        for (int i = 0; i < THREADS; i++) {
            parts[i].b = &b, parts[i].words = (int)(bytes / 8), parts[i].out = bench_buffer(&b, bytes);
            for (int side = 0; side < 2; side++) parts[i].in[side] = bench_buffer(&b, bytes);
        }
        struct timing t = bench_measure(&b, steps, parts);
        bench_report(&b, b.sizes[s], t, 1e6, "us");
        for (int i = 0; i < THREADS; i++) free(parts[i].out), free(parts[i].in[0]), free(parts[i].in[1]);
    }
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&parts[i].comm);
    MPI_Finalize();
    return 0;
}
