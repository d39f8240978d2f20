// ranks: 2
// says: correct
// env: WEFT_COPY_MODEL=generic WEFT_CACHES=near | WEFT_COPY_MODEL=generic WEFT_CACHES=near WEFT_LANES=1
//
// Long messages that cross are read by their receiver, with one copy, from one thread and from four. In a ping-pong they are staged, also if
// the receives are posted before the sends: there the two copies overlap.
#include "check.h"
#include "tools.h"
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 4, LONG = 48 << 10, TURNS = 20 };

static MPI_Comm comms[THREADS];
static char out[LONG], in[THREADS][LONG];
static MPI_T_pvar_session session;
static MPI_T_pvar_handle staged;

static void received(int i)
{
    CHECK(in[i][0] == (char)(2 - rank) && in[i][LONG - 1] == (char)(2 - rank));
    in[i][0] = in[i][LONG - 1] = 0;
}

/* Sends and receives at the same time. The short messages make sure of that: no long message is received before both are sent. */
static void *exchange(void *number)
{
    int i = (int)(long)number, peer = 1 - rank, word = rank;
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Request send;
        MPI_Isend(out, LONG, MPI_CHAR, peer, 0, comms[i], &send);
        MPI_Sendrecv_replace(&word, 1, MPI_INT, peer, 1, peer, 1, comms[i], MPI_STATUS_IGNORE);
        MPI_Recv(in[i], LONG, MPI_CHAR, peer, 0, comms[i], MPI_STATUS_IGNORE);
        received(i);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
    return NULL;
}

static void ping_pong(void)
{
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Request receive;
        MPI_Irecv(in[0], LONG, MPI_CHAR, 1 - rank, 0, comms[0], &receive);
        if (rank == 0) MPI_Send(out, LONG, MPI_CHAR, 1, 0, comms[0]);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        received(0);
        if (rank == 1) MPI_Send(out, LONG, MPI_CHAR, 0, 0, comms[0]);
    }
}

/* Number of messages staged since the last call. */
static int news(void)
{
    static number before;
    number now = value(session, staged), since = now - before;
    before = now;
    return (int)since;
}

int main(int argc, char **argv)
{
    int level;
    pthread_t thread[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(out, rank + 1, sizeof out);
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    staged = counter(session, "weft.p2p.shelved");
    int by_staging = news();
    if (sysconf(_SC_NPROCESSORS_ONLN) >= size) {
        ping_pong();
        by_staging = news();
        CHECK(by_staging == TURNS, "%d staged of %d in a ping-pong", by_staging, TURNS);
    }
    exchange((void *)0L);
    by_staging = news();
    CHECK(by_staging <= 1, "%d staged of %d by one thread; only the first may be", by_staging, TURNS);
    for (long i = 0; i < THREADS; i++) CHECK(!pthread_create(&thread[i], NULL, exchange, (void *)i));
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    by_staging = news();
    CHECK(by_staging < THREADS, "%d staged of %d; only the first of a new lane may be", by_staging, THREADS * TURNS);
    MPI_T_finalize();
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
    return end();
}
