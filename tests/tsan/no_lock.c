// What ThreadSanitizer must find: the program breaks its promise of one thread at a time, for which the
// library goes without its lock. The calls only look things up, so that the race does no harm but is one.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static MPI_Comm comm;

static void *look(void *unused)
{
    int size;
    for (int i = 0; i < 1000; i++) MPI_Comm_size(comm, &size);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    pthread_create(&thread, NULL, look, NULL);
    look(NULL);
    pthread_join(thread, NULL);
    printf("looked\n");
    MPI_Abort(MPI_COMM_WORLD, 0);
}
