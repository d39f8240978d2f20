// ranks: 2
// env: | WEFT_PROGRESS=handover | WEFT_CMA=0
// says: correct
//
// What partitioned communication is for: threads fill and mark the partitions of one message while
// another waits for its end, and threads take the receiver's partitions as they arrive. In later
// rounds a thread marks its last partition only when the other side's threads have its first.
#include "check.h"
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 4, EACH = 3, SENT = THREADS * EACH, TAKEN = THREADS * 2, ROUNDS = 60 };

static int ints; /* of the whole message: a multiple of SENT and TAKEN */
static int *data;
static MPI_Request request;
static int round_;

static int value(int at) { return at * 7 + round_ * 13; }

static void *fill(void *argument)
{
    int thread = (int)(long)argument, each = ints / SENT;
    for (int k = 0; k < EACH; k++) {
        int p = k * THREADS + (thread + round_) % THREADS;
        if (k == EACH - 1 && round_ % 2)
            MPI_Recv(NULL, 0, MPI_INT, 1, thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (k == EACH - 1 && round_ % 5 == 0) usleep(2000); /* the waiting thread goes to sleep */
        for (int i = p * each; i < (p + 1) * each; i++) data[i] = value(i);
        MPI_Pready(p, request);
    }
    return NULL;
}

static void *take(void *argument)
{
    int thread = (int)(long)argument, each = ints / TAKEN;
    for (int k = 0; k < 2; k++) {
        int p = k * THREADS + thread, flag = 0;
        while (MPI_Parrived(request, p, &flag), !flag) {}
        for (int i = p * each; i < (p + 1) * each; i++)
            CHECK(data[i] == value(i), "round %d, partition %d: %d", round_, p, i);
        if (k == 0 && round_ % 2) MPI_Send(NULL, 0, MPI_INT, 0, thread, MPI_COMM_WORLD);
    }
    return NULL;
}

static void play(int n)
{
    ints = n;
    data = calloc(ints, sizeof *data);
    if (rank == 0)
        MPI_Psend_init(data, SENT, ints / SENT, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(data, TAKEN, ints / TAKEN, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (round_ = 0; round_ < ROUNDS; round_++) {
        pthread_t threads[THREADS];
        MPI_Status status;
        if (rank == 1) memset(data, 0xff, ints * sizeof *data);
        MPI_Start(&request);
        for (long t = 0; t < THREADS; t++)
            pthread_create(&threads[t], NULL, rank == 0 ? fill : take, (void *)t);
        /* The receiver's threads look at partitions until the request is over and beyond. */
        MPI_Wait(&request, &status);
        for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
        for (int i = 0; i < ints; i++) CHECK(data[i] == value(i), "round %d: %d", round_, i);
    }
    MPI_Request_free(&request);
    free(data);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    play(48);
    play(48 * 1000);
    return end();
}
