/* Threads make communicators of groups that overlap at once, on one parent: each thread with a tag and a name of its own. */
// ranks: 3 4
// says: correct

#include "check.h"
#include <pthread.h>

#define THREADS 4
#define GROUPS 60

static MPI_Group all;

/* The data that the members of group `k` of `thread` give each other. */
static void speak(MPI_Comm comm, int count, const int *ranks, int thread, int k)
{
    int mine = 1000 * k + 10 * thread + rank, heard[64];
    MPI_Allgather(&mine, 1, MPI_INT, heard, 1, MPI_INT, comm);
    for (int i = 0; i < count; i++)
        CHECK(heard[i] == 1000 * k + 10 * thread + ranks[i], "thread %d, group %d: %d", thread, k, heard[i]);
}

static void *work(void *argument)
{
    int thread = (int)(long)argument;
    unsigned state = 3 + (unsigned)thread;
    char name[32];
    snprintf(name, sizeof name, "weft://thread/%d", thread);
    for (int k = 0; k < GROUPS; k++) {
        int ranks[64], count = 0, mine = -1;
        state = state * 1103515245 + 12345;
        for (int r = 0, turn = (int)(state >> 24); r < size; r++)
            if (state >> (16 + r) & 1) ranks[count++] = (r + turn) % size;
        for (int i = 0; i < count; i++)
            if (ranks[i] == rank) mine = i;
        if (mine < 0) continue;
        MPI_Group group;
        MPI_Comm comm;
        MPI_Group_incl(all, count, ranks, &group);
        if (k % 3 == 0 || count < 2) {
            MPI_Comm_create_group(MPI_COMM_WORLD, group, thread, &comm);
        } else if (k % 3 == 1) {
            MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        } else {
            /* The first one, and all others. */
            MPI_Group side, rest;
            MPI_Comm local, both;
            MPI_Group_excl(group, 1, (int[]){0}, &rest);
            MPI_Group_incl(group, 1, (int[]){0}, &side);
            MPI_Comm_create_group(MPI_COMM_WORLD, mine ? rest : side, thread, &local);
            MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, mine ? ranks[0] : ranks[1], thread, &both);
            MPI_Intercomm_merge(both, mine > 0, &comm);
            MPI_Comm_free(&both);
            MPI_Comm_free(&local);
            MPI_Group_free(&side);
            MPI_Group_free(&rest);
        }
        speak(comm, count, ranks, thread, k);
        MPI_Comm_free(&comm);
        MPI_Group_free(&group);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (long t = 0; t < THREADS; t++) CHECK(pthread_create(&threads[t], NULL, work, (void *)t) == 0);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    MPI_Group_free(&all);
    return end();
}
