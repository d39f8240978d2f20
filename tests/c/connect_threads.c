// ranks: 1 3
// says: correct
//
// Threads that spawn and connect at the same time, on communicators of their own: none waits for another one's partner.
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>

enum { THREADS = 3, TIMES = 4 };

static char *self;
static MPI_Comm own[THREADS];

static void *start(void *which)
{
    int me = (int)(long)which;
    char *argv[] = {"child", NULL};
    for (int i = 0; i < TIMES; i++) {
        MPI_Comm inter, all;
        int sum = -1, one = 1;
        MPI_Comm_spawn(self, argv, 1 + me % 2, MPI_INFO_NULL, (me + i) % size, own[me], &inter, MPI_ERRCODES_IGNORE);
        MPI_Intercomm_merge(inter, 0, &all);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
        CHECK(sum == size + 1 + me % 2, "%d", sum);
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&inter);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Comm parent;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm all;
        int sum, one = 1;
        MPI_Intercomm_merge(parent, 1, &all);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&parent);
        return end();
    }
    self = argv[0];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, start, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&own[i]);
    return end();
}
