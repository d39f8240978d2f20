// ranks: 2 4
// says: correct
//
// Atomic mode: what ranks write to one place at once is one rank's as a whole, and a read finds one rank's as a whole, by blocking
// accesses and by several nonblocking ones of a process; and nobody waits for a rank that computes.
#include "files.h"
#include <stdlib.h>

#define OK(call) CHECK((call) == MPI_SUCCESS)

/* Long enough that the system, by itself, lets others in between. */
enum { BYTES = 1 << 20, ROUNDS = 12, AT_ONCE = 3 };

static unsigned char mine[AT_ONCE][BYTES], there[BYTES];

/* All bytes that were read are one that some rank wrote. */
static void whole(const char *by, int round)
{
    for (int i = 1; i < BYTES; i++) CHECK(there[i] == there[0], "%s, round %d: byte %d of another write", by, round, i);
    CHECK(there[0] >= 1 && there[0] <= AT_ONCE * size, "%s, round %d: %d, which nobody wrote", by, round, there[0]);
}

static void blocking(MPI_File file)
{
    for (int round = 0; round < ROUNDS; round++) {
        if ((round + rank) % 2) {
            OK(MPI_File_write_at(file, 0, mine[round % AT_ONCE], BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
            continue;
        }
        OK(MPI_File_read_at(file, 0, there, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        whole("blocking", round);
    }
    for (int round = 0; round < ROUNDS; round++) {
        OK(MPI_File_write_at_all(file, 0, mine[round % AT_ONCE], BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, there, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        whole("together", round);
    }
}

static void nonblocking(MPI_File file)
{
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[AT_ONCE + 1];
        for (int i = 0; i < AT_ONCE; i++) OK(MPI_File_iwrite_at(file, 0, mine[i], BYTES, MPI_BYTE, &requests[i]));
        OK(MPI_File_iread_at(file, 0, there, BYTES, MPI_BYTE, &requests[AT_ONCE]));
        MPI_Waitall(AT_ONCE + 1, requests, MPI_STATUSES_IGNORE);
        whole("nonblocking", round);
    }
}

/* Rank 0 has begun to write, and makes no call of MPI for three seconds. */
static void computing(MPI_File file)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Request request;
        OK(MPI_File_iwrite_at(file, 0, mine[0], BYTES, MPI_BYTE, &request));
        sleep(3);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        double begin = MPI_Wtime();
        usleep(100000);
        OK(MPI_File_write_at(file, 0, mine[1], BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(MPI_Wtime() - begin < 2.5, "it waited for a rank that computes: %g s", MPI_Wtime() - begin);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    name_file("atomic");
    for (int i = 0; i < AT_ONCE; i++) memset(mine[i], 1 + AT_ONCE * rank + i, BYTES);
    MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    if (rank == 0) OK(MPI_File_write_at(file, 0, mine[0], BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    all_written(file);
    OK(MPI_File_set_atomicity(file, 1));
    blocking(file);
    nonblocking(file);
    const char *progress = getenv("WEFT_PROGRESS");
    if (!progress || strcmp(progress, "none")) computing(file);
    /* Off and on again: the same lock. */
    OK(MPI_File_set_atomicity(file, 0));
    OK(MPI_File_set_atomicity(file, 1));
    blocking(file);
    close_file(&file);
    return end();
}
