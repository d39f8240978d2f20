// ranks: 1 2
// args: 4000
// says: correct
// env: | WEFT_PROGRESS=handover
//
// What any thread may call at any time, whatever the level of thread support (MPI 5.0, sections 11.4.1
// and 11.6): here under MPI_THREAD_FUNNELED, while the main thread communicates.
#include "check.h"
#include <pthread.h>

static int rounds = 400;

static void *aside(void *main_too)
{
    for (int i = 0; i < rounds; i++) {
        int flag, version, subversion, n, class;
        char text[MPI_MAX_ERROR_STRING], back[16];
        MPI_Initialized(&flag);
        CHECK(flag);
        MPI_Get_version(&version, &subversion);
        CHECK(version == 5);
        MPI_Info info, copy;
        MPI_Info_create(&info);
        MPI_Info_set(info, "a", "word");
        MPI_Info_dup(info, &copy);
        MPI_Info_free(&info);
        n = sizeof back;
        MPI_Info_get_string(copy, "a", &n, back, &flag);
        CHECK(flag && !strcmp(back, "word"));
        MPI_Info_free(&copy);
        MPI_Error_string(MPI_ERR_RANK, text, &n);
        MPI_Error_class(MPI_ERR_TAG, &class);
        CHECK(n == (int)strlen(text) && n > 0 && class == MPI_ERR_TAG);
        if (i % 10 == 0) {
            MPI_Session session;
            MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
            MPI_Session_finalize(&session);
        }
        MPI_Is_thread_main(&flag);
        CHECK(!flag);
    }
    return main_too;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    int provided;
    if (argc > 1) rounds = atoi(argv[1]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    CHECK(provided == MPI_THREAD_FUNNELED, "%d", provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int t = 0; t < 2; t++) pthread_create(&threads[t], NULL, aside, NULL);
    for (int i = 0; i < rounds; i++) {
        MPI_Comm comm;
        MPI_Info info;
        int got = -1, to = (rank + 1) % size, from = (rank + size - 1) % size;
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
        MPI_Info_free(&info);
        MPI_Sendrecv(&i, 1, MPI_INT, to, 0, &got, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
        CHECK(got == i);
        MPI_Comm_free(&comm);
    }
    for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
    return end();
}
