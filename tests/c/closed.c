// ranks: 1 2 4
/* Standard input, output and error are closed before MPI_Init, each and all: nothing of the library
   takes their numbers, so that what a program prints goes nowhere, and not into a socket of ours. */
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int is_closed(int fd) { return fcntl(fd, F_GETFD) < 0 && errno == EBADF; }

int main(int argc, char **argv)
{
    int kept[3], which = getpid() % 8;
    for (int fd = 0; fd < 3; fd++) kept[fd] = fcntl(fd, F_DUPFD, 100);
    /* Each rank another choice: one of them all. */
    const char *local = getenv("WEFT_LAUNCH");
    if (local && strstr(local, ",0,")) which = 7;
    for (int fd = 0; fd < 3; fd++)
        if (which >> fd & 1) close(fd);
    MPI_Init(&argc, &argv);
    int wrong = 0;
    for (int fd = 0; fd < 3; fd++) wrong |= (which >> fd & 1) && !is_closed(fd);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* What is made later: a helper, windows, communicators. */
    static char out[1 << 20], in[1 << 20];
    MPI_Request both[2];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Irecv(in, sizeof in, MPI_CHAR, left, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(out, sizeof out, MPI_CHAR, right, 0, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    int *memory;
    MPI_Win window;
    MPI_Win_allocate(4096, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_free(&window);
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_free(&copy);
    for (int fd = 0; fd < 3; fd++) wrong |= (which >> fd & 1) && !is_closed(fd);
    for (int fd = 0; fd < 3; fd++) dup2(kept[fd], fd);
    CHECK(!wrong, "a descriptor of 0 to 2 was taken, with %d closed", which);
    return end();
}
