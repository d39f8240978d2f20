// ranks: 2
// says: correct
// env: WEFT_COPY_MODEL=generic WEFT_CACHES=near | WEFT_COPY_MODEL=generic WEFT_CACHES=near WEFT_LANES=1
//
// Threads that communicate by lanes, more of them than there are processors: long messages are read by their receiver, which is one
// copy, and not copied in and out of shared memory by two processors. With one thread a rank and processors enough, it is the other way.
#include "check.h"
#include "tools.h"
#include <pthread.h>
#include <unistd.h>

enum { MOST = 1024, LONG = 48 << 10, TURNS = 20, ROUNDS = 5 };

static MPI_Comm comms[MOST];
static char out[LONG], in[MOST][LONG];
static pthread_barrier_t met;
static int threads;

/* Exchanges a long message in each turn. All threads are there before the first message that counts, and until the last. */
static void *exchange(void *number)
{
    int i = (int)(long)number, peer = 1 - rank, word = rank;
    MPI_Sendrecv_replace(&word, 1, MPI_INT, peer, 1, peer, 1, comms[i], MPI_STATUS_IGNORE);
    MPI_Request both[2];
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Irecv(in[i], LONG, MPI_CHAR, peer, 0, comms[i], &both[0]);
        MPI_Isend(out, LONG, MPI_CHAR, peer, 0, comms[i], &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        CHECK(in[i][LONG - 1] == (char)(peer + 1));
        if (turn == 0) pthread_barrier_wait(&met);
    }
    pthread_barrier_wait(&met);
    return NULL;
}

int main(int argc, char **argv)
{
    int level;
    pthread_t thread[MOST];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(out, rank + 1, sizeof out);
    /* Processors of a rank, and one thread more. */
    long processors = sysconf(_SC_NPROCESSORS_ONLN) / size;
    threads = (int)(processors < 1 ? 1 : processors) + 1;
    CHECK(threads <= MOST, "%d threads; at most %d", threads, MOST);
    if (threads > MOST) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < threads; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    tool_begin();
    MPI_T_pvar_session session;
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle staged = counter(session, "weft.p2p.shelved"), read = counter(session, "weft.p2p.received_by_read");
    pthread_barrier_init(&met, NULL, (unsigned)threads);
    number before[2] = {value(session, staged), value(session, read)};
    /* The system may give later threads the stacks of threads that have ended. */
    for (int round = 0; round < ROUNDS; round++) {
        for (long i = 0; i < threads; i++) CHECK(!pthread_create(&thread[i], NULL, exchange, (void *)i));
        for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    }
    /* The first message of a thread may go while other threads have not come yet. */
    int by_staging = (int)(value(session, staged) - before[0]), by_read = (int)(value(session, read) - before[1]);
    CHECK(by_staging <= ROUNDS * threads && by_read >= ROUNDS * threads * (TURNS - 1), "%d staged, %d read of %d", by_staging, by_read,
          ROUNDS * threads * TURNS);
    MPI_T_finalize();
    for (int i = 0; i < threads; i++) MPI_Comm_free(&comms[i]);
    return end();
}
