// ranks: 2 3
// says: correct
// env: | WEFT_PROGRESS=handover
//
// MPI_THREAD_MULTIPLE: four threads a rank, each on a communicator of its own, send round a ring,
// reduce, and receive from anybody, while the main thread does the same on the world; then all
// threads of a rank share one communicator and take each other's messages apart by tag.
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 200 };

static MPI_Comm comms[THREADS];

static void ring(MPI_Comm comm, int salt)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < ROUNDS; i++) {
        int out[2] = {rank * 1000 + i, salt}, in[2] = {-1, -1};
        MPI_Request request;
        MPI_Status status;
        if (i % 2) {
            MPI_Sendrecv(out, 2, MPI_INT, right, i, in, 2, MPI_INT, left, i, comm, &status);
        } else {
            MPI_Irecv(in, 2, MPI_INT, MPI_ANY_SOURCE, i, comm, &request);
            MPI_Send(out, 2, MPI_INT, right, i, comm);
            MPI_Wait(&request, &status);
        }
        CHECK(in[0] == left * 1000 + i && in[1] == salt, "%d, %d", in[0], in[1]);
        CHECK(status.MPI_SOURCE == left && status.MPI_TAG == i);
    }
}

static void reductions(MPI_Comm comm, int salt)
{
    for (int i = 0; i < ROUNDS; i++) {
        long mine = rank + i * salt, sum = -1;
        MPI_Request request;
        if (i % 4) {
            MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
        } else {
            MPI_Iallreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        CHECK(sum == (long)size * (size - 1) / 2 + (long)size * i * salt, "%ld", sum);
    }
}

/* Rank 0's threads answer whoever comes; the others ask. */
static void service(MPI_Comm comm, int salt)
{
    MPI_Status status;
    int word;
    if (rank == 0) {
        for (int i = 0; i < ROUNDS * (size - 1); i++) {
            MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
            word = -word - salt;
            MPI_Send(&word, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, comm);
        }
        return;
    }
    for (int i = 0; i < ROUNDS; i++) {
        word = i;
        MPI_Send(&word, 1, MPI_INT, 0, i % 7, comm);
        MPI_Recv(&word, 1, MPI_INT, 0, i % 7, comm, MPI_STATUS_IGNORE);
        CHECK(word == -i - salt, "%d", word);
    }
}

/* All threads on the world, apart by tag alone; long and short messages mixed. */
static void shared(int thread)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    enum { LONGS = 5000 };
    long *out = malloc(LONGS * sizeof *out), *in = malloc(LONGS * sizeof *in);
    for (int i = 0; i < 40; i++) {
        int n = i % 5 == 0 ? LONGS : 1;
        MPI_Request request;
        for (int k = 0; k < n; k++) out[k] = rank + thread * 10 + i * 100 + k;
        MPI_Irecv(in, n, MPI_LONG, left, thread, MPI_COMM_WORLD, &request);
        MPI_Send(out, n, MPI_LONG, right, thread, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int k = 0; k < n; k++) CHECK(in[k] == left + thread * 10 + i * 100 + k);
    }
    free(out), free(in);
}

static void *work(void *argument)
{
    int thread = *(int *)argument, is_main = 1;
    MPI_Is_thread_main(&is_main);
    CHECK(!is_main);
    ring(comms[thread], thread + 1);
    reductions(comms[thread], thread + 1);
    service(comms[thread], thread + 1);
    shared(thread);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    int number[THREADS], provided, query;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Query_thread(&query);
    CHECK(provided == MPI_THREAD_MULTIPLE && query == provided, "%d", provided);
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        pthread_create(&thread[i], NULL, work, &number[i]);
    }
    reductions(MPI_COMM_WORLD, 100);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
    return end();
}
