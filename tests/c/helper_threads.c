// ranks: 2
// says: correct
// env: WEFT_PROGRESS=handover | WEFT_PROGRESS=handover WEFT_CMA=0
//
// helper.c under MPI_THREAD_MULTIPLE, where the helper takes the library's lock: one thread of each
// rank computes, another one is blocked in MPI_Recv meanwhile, on a communicator of its own.
#define _GNU_SOURCE
#include "helper.h"

static MPI_Comm aside;

static void *blocked(void *unused)
{
    int number = 0;
    MPI_Recv(&number, 1, MPI_INT, !rank, 0, aside, MPI_STATUS_IGNORE);
    CHECK(number == 7);
    return unused;
}

int main(int argc, char **argv)
{
    int level, seven = 7, rounds = argc > 1 ? atoi(argv[1]) : 20;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &aside);
    share();
    for (int round = 0; round < rounds; round++) {
        pthread_create(&thread, NULL, blocked, NULL);
        large_to_posted();
        synchronous();
        to_the_sender();
        broadcast();
        operators();
        MPI_Send(&seven, 1, MPI_INT, !rank, 0, aside);
        pthread_join(thread, NULL);
    }
    MPI_Comm_free(&aside);
    return finish();
}
