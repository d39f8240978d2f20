// What ThreadSanitizer must find: the program breaks its promise of one thread at a time, for which the
// library goes without its lock. The calls only look things up, so that the race does no harm but is one.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static MPI_Info info;

static void *look(void *unused)
{
    int keys;
    for (int i = 0; i < 1000; i++) MPI_Info_get_nkeys(info, &keys);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    MPI_Init(&argc, &argv);
    MPI_Info_create(&info);
    pthread_create(&thread, NULL, look, NULL);
    look(NULL);
    pthread_join(thread, NULL);
    printf("looked\n");
    MPI_Abort(MPI_COMM_WORLD, 0);
}
