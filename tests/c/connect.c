// ranks: 2 3 4
// says: correct
//
// Parts of a job that meet by a port, a published name or a socket, as jobs do (MPI 5.0, section 11.9): the number of meetings and who
// is known already do not matter. Mistakes are errors.
#define _GNU_SOURCE
#include "check.h"
#include <sys/socket.h>
#include <unistd.h>

static MPI_Comm half;
static int server, me, mine;

/* Everybody says what it is to everybody of the other side. */
static void talk(MPI_Comm inter)
{
    int theirs, sum = -1, *all;
    MPI_Comm_remote_size(inter, &theirs);
    all = malloc(theirs * sizeof *all);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, inter);
    for (int i = 0; i < theirs; i++)
        CHECK(all[i] % 2 != rank % 2 && (i == 0 || all[i] > all[i - 1]));
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < theirs; i++)
        sum -= all[i];
    CHECK(sum == 0);
    free(all);
}

static void by_port(int publish)
{
    char port[MPI_MAX_PORT_NAME] = "", name[64];
    MPI_Comm inter;
    snprintf(name, sizeof name, "weft-connect-%d-%d", publish, (int)getppid());
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        if (publish) {
            MPI_Publish_name(name, MPI_INFO_NULL, port);
            FAILS(MPI_Publish_name(name, MPI_INFO_NULL, port), MPI_ERR_SERVICE);
        }
    }
    if (publish) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
            MPI_Lookup_name(name, MPI_INFO_NULL, port);
    } else
        MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int again = 0; again < 3; again++) {
        if (server)
            MPI_Comm_accept(me == 0 ? port : NULL, MPI_INFO_NULL, 0, half, &inter);
        else
            MPI_Comm_connect(me == 0 ? port : NULL, MPI_INFO_NULL, 0, half, &inter);
        talk(inter);
        MPI_Comm_disconnect(&inter);
        CHECK(inter == MPI_COMM_NULL);
    }
    if (rank == 0) {
        if (publish) {
            FAILS(MPI_Unpublish_name(name, MPI_INFO_NULL, "another port"), MPI_ERR_SERVICE);
            MPI_Unpublish_name(name, MPI_INFO_NULL, port);
            FAILS(MPI_Unpublish_name(name, MPI_INFO_NULL, port), MPI_ERR_SERVICE);
        }
        MPI_Close_port(port);
        FAILS(MPI_Close_port(port), MPI_ERR_PORT);
        FAILS(MPI_Lookup_name(name, MPI_INFO_NULL, port), MPI_ERR_NAME);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!server)
        FAILS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter), MPI_ERR_PORT);
}

static void mistakes(void)
{
    MPI_Comm inter = MPI_COMM_NULL;
    char port[MPI_MAX_PORT_NAME];
    FAILS(MPI_Comm_connect("nowhere", MPI_INFO_NULL, 0, half, &inter), MPI_ERR_PORT);
    FAILS(MPI_Comm_accept("nowhere", MPI_INFO_NULL, 0, half, &inter), MPI_ERR_PORT);
    FAILS(MPI_Comm_connect("nowhere", MPI_INFO_NULL, mine, half, &inter), MPI_ERR_ROOT);
    FAILS(MPI_Close_port("nowhere"), MPI_ERR_PORT);
    FAILS(MPI_Lookup_name("no such service", MPI_INFO_NULL, port), MPI_ERR_NAME);
    FAILS(MPI_Comm_join(-1, &inter), MPI_ERR_ARG);
    FAILS(MPI_Open_port(MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK(inter == MPI_COMM_NULL);
}

/* Each with itself through two sockets would wait for itself: a child is the other end. */
static void nobody(void)
{
    int ends[2];
    MPI_Comm inter;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    close(ends[1]);
    FAILS(MPI_Comm_join(ends[0], &inter), MPI_ERR_ARG);
    close(ends[0]);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    server = rank % 2 == 0;
    MPI_Comm_split(MPI_COMM_WORLD, server, rank, &half);
    MPI_Comm_rank(half, &me);
    MPI_Comm_size(half, &mine);
    by_port(0);
    by_port(1);
    mistakes();
    nobody();
    return end();
}
