// ranks: 1 2 4
// says: correct
//
// MPI by sessions alone: several threads begin some at once, process sets become groups, groups become
// communicators and intercommunicators; handlers; wrong arguments; a session after the last one ended.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank = -1, size;

#define CHECK(ok, ...)                                                              \
    do {                                                                            \
        if (!(ok)) {                                                                \
            fprintf(stderr, "%s:%d: rank %d: %s:", __FILE__, __LINE__, rank, #ok); \
            fprintf(stderr, " " __VA_ARGS__);                                       \
            fprintf(stderr, "\n");                                                  \
            exit(3);                                                                \
        }                                                                           \
    } while (0)

static int heard;

static void hear(MPI_Session *session, int *code, ...)
{
    (void)session, (void)code;
    heard++;
}

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static void *brief(void *unused)
{
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group group;
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    int n;
    MPI_Group_size(group, &n);
    CHECK(n == 1);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    CHECK(session == MPI_SESSION_NULL);
    return unused;
}

static void sets(MPI_Session session)
{
    int n, world = 0, self = 0;
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
    CHECK(n >= 2);
    for (int i = 0; i < n; i++) {
        int length = 0, again;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL);
        CHECK(length > 1 && length <= MPI_MAX_PSET_NAME_LEN);
        char name[MPI_MAX_PSET_NAME_LEN], cut[4];
        again = length;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &again, name);
        CHECK(again == length && (int)strlen(name) == length - 1, "%s", name);
        again = sizeof cut;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &again, cut);
        CHECK(again == length && strlen(cut) == 3 && !strncmp(cut, name, 3));
        world += !strcmp(name, "mpi://WORLD"), self += !strcmp(name, "mpi://SELF");
        MPI_Info info;
        MPI_Session_get_pset_info(session, name, &info);
        char words[32];
        int there, room = sizeof words, members;
        MPI_Info_get_string(info, "mpi_size", &room, words, &there);
        MPI_Group group;
        MPI_Group_from_session_pset(session, name, &group);
        MPI_Group_size(group, &members);
        CHECK(there && atoi(words) == members);
        MPI_Info_free(&info);
        MPI_Group_free(&group);
    }
    CHECK(world == 1 && self == 1);
}

static void communicators(MPI_Session session)
{
    MPI_Group all;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, "mpi://world", &all);
    MPI_Comm_create_from_group(all, "test://all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
    CHECK(handler == MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Send(&rank, 1, MPI_INT, size, 0, comm)) == MPI_ERR_RANK);

    MPI_Comm none;
    MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "test://none", MPI_INFO_NULL, MPI_ERRORS_RETURN, &none);
    CHECK(none == MPI_COMM_NULL);
    if (size > 1) {
        /* Even and odd ranks, and between them. */
        int range[2][1][3] = {{{0, size - 1, 2}}, {{1, size - 1, 2}}};
        MPI_Group side[2];
        for (int s = 0; s < 2; s++) MPI_Group_range_incl(all, 1, range[s], &side[s]);
        int mine = rank % 2, members, remote;
        MPI_Comm_create_from_group(side[mine], "test://side", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &none);
        MPI_Comm_size(none, &members);
        CHECK(members == (size + !mine) / 2);
        MPI_Barrier(none);
        MPI_Comm_free(&none);
        MPI_Intercomm_create_from_groups(side[mine], 0, side[!mine], 0, "test://between", MPI_INFO_NULL,
                                         MPI_ERRORS_ARE_FATAL, &none);
        MPI_Comm_remote_size(none, &remote);
        CHECK(remote == size - members);
        int one = 1, others;
        MPI_Allreduce(&one, &others, 1, MPI_INT, MPI_SUM, none);
        CHECK(others == remote);
        MPI_Comm_free(&none);
        CHECK(class_of(MPI_Comm_create_from_group(side[!mine], "x", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                                  &none)) == MPI_ERR_GROUP);
        for (int s = 0; s < 2; s++) MPI_Group_free(&side[s]);
    }
    char longer[2000];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    CHECK(class_of(MPI_Comm_create_from_group(all, longer, MPI_INFO_NULL, MPI_ERRORS_RETURN, &none)) ==
          MPI_ERR_ARG);
    MPI_Group_free(&all);
    MPI_Comm_disconnect(&comm);
    CHECK(comm == MPI_COMM_NULL);
}

int main(void)
{
    int flag;
    MPI_Initialized(&flag);
    CHECK(!flag);
    pthread_t threads[4];
    for (int t = 0; t < 4; t++) pthread_create(&threads[t], NULL, brief, NULL);
    for (int t = 0; t < 4; t++) pthread_join(threads[t], NULL);

    /* Info, handlers, wrong arguments. */
    MPI_Session session, other;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_FUNNELED");
    MPI_Errhandler handler, got;
    MPI_Session_create_errhandler(hear, &handler);
    MPI_Session_init(info, handler, &session);
    MPI_Info used;
    MPI_Session_get_info(session, &used);
    char words[64];
    int room = sizeof words;
    MPI_Info_get_string(used, "thread_level", &room, words, &flag);
    CHECK(flag && !strcmp(words, "MPI_THREAD_FUNNELED"));
    MPI_Info_free(&used);
    MPI_Session_get_errhandler(session, &got);
    CHECK(got == handler);
    MPI_Errhandler_free(&got);
    MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
    CHECK(heard == 1);
    MPI_Group group;
    CHECK(class_of(MPI_Group_from_session_pset(session, "mpi://nobody", &group)) == MPI_ERR_ARG);
    CHECK(heard == 2);
    MPI_Info_set(info, "thread_level", "plenty");
    CHECK(class_of(MPI_Session_init(info, handler, &other)) == MPI_ERR_INFO_VALUE);
    CHECK(heard == 3);
    MPI_Info_free(&info);
    MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    int n = 0;
    CHECK(class_of(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 99, &n, NULL)) == MPI_ERR_ARG);
    CHECK(heard == 3);
    CHECK(MPI_Session_fromint(MPI_Session_toint(session)) == session);
    CHECK(MPI_Session_fromint(MPI_Session_toint(MPI_SESSION_NULL)) == MPI_SESSION_NULL);

    sets(session);
    communicators(session);
    MPI_Session_finalize(&session);

    /* A child that is forked now leaves nothing in its parent's name. */
    pid_t child = fork();
    if (child == 0) exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);

    /* After the last one, another. */
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &other);
    CHECK(session != other);
    MPI_Session_finalize(&session);
    communicators(other);
    MPI_Initialized(&flag);
    CHECK(!flag);
    if (rank == 0) printf("correct\n");
    MPI_Session_finalize(&other);
    return 0;
}
