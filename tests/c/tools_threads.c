// ranks: 1 2
// says: correct
//
// A tool's thread that reads variables while the program's communicates: where the tool asks for
// MPI_THREAD_MULTIPLE before MPI_Init it gets it, whatever the program asks for; where MPI runs
// without locks it is told to take turns.
#include "tools.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int over;
static MPI_T_pvar_session session;
static MPI_T_pvar_handle received;

static void *read_on(void *reads)
{
    number last = 0;
    long n = 0;
    while (!over || n == 0) {
        number next = value(session, received);
        CHECK(next >= last, "%llu after %llu", next, last);
        last = next;
        n++;
    }
    *(long *)reads = n;
    return NULL;
}

static void ring(int rounds)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < rounds; i++) {
        int got = -1;
        MPI_Sendrecv(&i, 1, MPI_INT, to, 0, &got, 1, MPI_INT, from, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK(got == i);
    }
}

int main(int argc, char **argv)
{
    int provided = -1, level = -1;
    long reads = 0;
    pthread_t thread;
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    begin(&argc, &argv);
    MPI_Query_thread(&level);
    CHECK(level == MPI_THREAD_SINGLE, "the program's own level is what it asked for");
    OK(MPI_T_pvar_session_create(&session));
    received = counter(session, "weft.p2p.received");
    pthread_create(&thread, NULL, read_on, &reads);
    ring(20000);
    over = 1;
    pthread_join(thread, NULL);
    CHECK(reads > 0 && value(session, received) >= 20000);
    OK(MPI_T_finalize());
    return end();
}
