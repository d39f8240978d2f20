// ranks: 2 3 4
// says: correct
// env: | WEFT_FABRIC=shm+ofi | WEFT_FABRIC=ofi
//
// Parts of a job that meet by a port, a published name or a socket, as jobs do (MPI 5.0, section 11.9): the number of meetings and who
// is known already do not matter. Mistakes are errors. With an argument they are on several hosts: by a port alone.
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
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
    char port[MPI_MAX_PORT_NAME] = "", name[64], session[] = "/tmp/weft-session-XXXXXX", folder[64];
    MPI_Comm inter;
    int number = getpid();
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "weft-connect-%d-%d", publish, number);
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        if (publish) {
            /* The publisher has a folder of its session; the rank that looks for the name has none. */
            if (mkdtemp(session))
                setenv("XDG_RUNTIME_DIR", session, 1);
            MPI_Publish_name(name, MPI_INFO_NULL, port);
            FAILS(MPI_Publish_name(name, MPI_INFO_NULL, port), MPI_ERR_SERVICE);
        }
    }
    if (publish) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            unsetenv("XDG_RUNTIME_DIR");
            CHECK(MPI_Lookup_name(name, MPI_INFO_NULL, port) == MPI_SUCCESS);
        }
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
        const char *made[] = {"/weft/names", "/weft", ""};
        for (int i = 0; publish && i < 3; i++) {
            snprintf(folder, sizeof folder, "%s%s", session, made[i]);
            CHECK(rmdir(folder) == 0);
        }
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

/* Two processes that a socket connects. */
static void by_socket(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t len;
    MPI_Comm inter;
    if (rank > 1)
        return;
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "weft-join-%d", (int)getppid());
    len = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name.sun_path + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), one = 1;
    if (rank == 0) {
        CHECK(bind(fd, (struct sockaddr *)&name, len) == 0 && listen(fd, 1) == 0);
        MPI_Send(&one, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        int other = accept(fd, NULL, NULL);
        close(fd);
        fd = other;
    } else {
        MPI_Recv(&one, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(connect(fd, (struct sockaddr *)&name, len) == 0);
    }
    for (int again = 0; again < 4; again++) {
        int size_ = -1, theirs = -1, flags = fcntl(fd, F_GETFL);
        /* The socket is nonblocking at one end, at the other, at both or at none. */
        fcntl(fd, F_SETFL, flags | ((again >> rank & 1) ? O_NONBLOCK : 0));
        MPI_Comm_join(fd, &inter);
        CHECK(((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) == (again >> rank & 1));
        fcntl(fd, F_SETFL, flags);
        MPI_Comm_remote_size(inter, &size_);
        CHECK(size_ == 1);
        MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &theirs, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
        CHECK(theirs == 1 - rank);
        MPI_Comm_disconnect(&inter);
        /* Nothing of it is left in the socket. */
        CHECK(write(fd, &rank, sizeof rank) == sizeof rank && read(fd, &theirs, sizeof theirs) == sizeof theirs);
        CHECK(theirs == 1 - rank);
    }
    close(fd);
}

/* At the other end nobody joins. */
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
    if (argc == 1) {
        by_port(1);
        by_socket();
    }
    mistakes();
    nobody();
    return end();
}
