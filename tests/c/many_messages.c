// ranks: 2
// args: 65536 64 3
// says: correct
//
// many_messages BYTES WINDOW ROUNDS: in each round, rank 0 sends WINDOW messages at once, and rank 1 receives them and answers
// with 4 bytes. For tools that count the cost of a message (xtask/src/test/network/counts.rs): the counted part lies between two
// calls of getpgid for a process that does not exist.
#include "check.h"
#include <sys/syscall.h>
#include <unistd.h>

enum { NOBODY = 0x7eef7eef }; /* no process has such a number */

static char *all;
static MPI_Request *requests;

static void window(int bytes, int count, int round)
{
    for (int i = 0; i < count; i++) {
        char *at = all + (size_t)i * (size_t)bytes;
        if (rank == 0) {
            memset(at, round + i, (size_t)bytes);
            MPI_Isend(at, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Irecv(at, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    int word = round;
    if (rank == 0) {
        MPI_Recv(&word, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(word == round);
        return;
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < bytes; k += 61)
            CHECK(all[(size_t)i * (size_t)bytes + (size_t)k] == (char)(round + i), "message %d, byte %d", i, k);
    MPI_Send(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 4 && size == 2, "many_messages BYTES WINDOW ROUNDS on 2 ranks");
    int bytes = atoi(argv[1]), count = atoi(argv[2]), rounds = atoi(argv[3]);
    CHECK(bytes > 0 && count > 0 && rounds >= 0);
    all = malloc((size_t)bytes * (size_t)count);
    requests = malloc((size_t)count * sizeof *requests);
    for (int i = 0; i < 2; i++) window(bytes, count, i); /* connections */
    MPI_Barrier(MPI_COMM_WORLD);
    syscall(SYS_getpgid, NOBODY);
    for (int i = 0; i < rounds; i++) window(bytes, count, i);
    syscall(SYS_getpgid, NOBODY);
    free(requests);
    free(all);
    return end();
}
