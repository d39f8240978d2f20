// ranks: 1 2
// says: correct
//
// Children that end within MPI_Init, by an exit code or a signal: the first or the second child, before each of its words to the
// port of its parents in turn. Each time MPI_Comm_spawn raises an error of class MPI_ERR_SPAWN at all parents, the root's error
// reports how the children ended, and the parents go on. No parent may wait for a dead child: WEFT_CONNECT_TIMEOUT is an hour.
// The child runs this program, too, whose write(2) and send(2) count the words.
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Number of words to a port until this process ends, and the signal that ends it; 0: it exits with a code. */
static int left, how;

static void count(int fd)
{
    struct sockaddr_un at;
    socklen_t length = sizeof at;
    memset(&at, 0, sizeof at);
    if (left == 0 || getpeername(fd, (void *)&at, &length) != 0 || at.sun_family != AF_UNIX)
        return;
    if (strncmp(at.sun_path + 1, "weft-port-", 10) != 0 || --left > 0)
        return;
    if (how == 0)
        _exit(7);
    kill(getpid(), how);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
    count(fd);
    return syscall(SYS_write, fd, from, bytes);
}

ssize_t send(int fd, const void *from, size_t bytes, int flags)
{
    count(fd);
    return syscall(SYS_sendto, fd, from, bytes, flags, NULL, 0);
}

__attribute__((constructor)) static void begins(void)
{
    const char *plan = getenv("SPAWN_DIES");
    if (plan)
        sscanf(plan, "%d %d", &left, &how);
}

/* Spawns two children, of which the one at `place` ends at a moment. Returns whether the spawn has succeeded. */
static int lived(char *self, int place, int moment, int way)
{
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    char line[64], text[MPI_MAX_ERROR_STRING], *commands[] = {self, self};
    int codes[2] = {-1, -1}, ones[2] = {1, 1}, length, error;
    snprintf(line, sizeof line, "SPAWN_DIES=%d %d", moment, way);
    MPI_Info_create(&infos[place]);
    MPI_Info_set(infos[place], "env", line);
    error = MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, ones, infos, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Info_free(&infos[place]);
    if (error == MPI_SUCCESS) {
        CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
        MPI_Comm_disconnect(&inter);
        return 1;
    }
    MPI_Error_string(error, text, &length);
    CHECK(class_of(error) == MPI_ERR_SPAWN && inter == MPI_COMM_NULL, "child %d, moment %d: %s", place, moment, text);
    CHECK(class_of(codes[0]) == MPI_ERR_SPAWN && class_of(codes[1]) == MPI_ERR_SPAWN);
    const char *words = way == 0 ? "exit code 7 " : way == SIGSEGV ? "SIGSEGV" : "SIGKILL";
    CHECK(rank != 0 || strstr(text, words), "child %d, moment %d: %s", place, moment, text);
    return 0;
}

int main(int argc, char **argv)
{
    const int ways[] = {0, SIGKILL, SIGSEGV};
    MPI_Comm parent;
    setenv("WEFT_CONNECT_TIMEOUT", "3600", 1);
    begin(&argc, &argv);
    left = 0;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int place = 0; place < 2; place++) {
        int moment = 1, sum;
        while (!lived(argv[0], place, moment, ways[moment % 3])) {
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            CHECK(sum == size * (size - 1) / 2);
            moment++;
        }
        /* These are the words of the greeting and of the session. */
        CHECK(moment > 4, "child %d was ended at %d moments", place, moment - 1);
    }
    return end();
}
