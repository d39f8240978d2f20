// ranks: 2
// args: 0
// says: correct
//
// first_message MILLISECONDS: prints "running" and waits for the given time. Only then do the two ranks send their first
// messages. For tests that take the network away meanwhile (xtask/src/test/network/first.rs).
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 2 && size == 2, "first_message MILLISECONDS on 2 ranks");
    if (rank == 0) puts("running");
    fflush(stdout);
    usleep((useconds_t)atoi(argv[1]) * 1000);
    int own[100], come[100];
    for (int i = 0; i < 100; i++) own[i] = i * (rank + 2);
    MPI_Sendrecv(own, 100, MPI_INT, 1 - rank, 5, come, 100, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 100; i++) CHECK(come[i] == i * (3 - rank), "element %d", i);
    if (rank == 0) {
        /* Messages go both ways first, then only one way. */
        MPI_Send(own, 100, MPI_INT, 1, 6, MPI_COMM_WORLD);
    } else {
        MPI_Recv(come, 100, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(come[99] == 198);
    }
    return end();
}
