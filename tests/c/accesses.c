// ranks: 1
// args: accumulate 64 10
// says: correct
//
// accesses WHAT BYTES TIMES: so many puts, accumulates of MPI_CHAR or of MPI_DOUBLE, or fetches of one number, each with its
// flush, by a rank to itself. For tools that count instructions (xtask/src/test/accesses.rs): nobody waits in it.
#include "check.h"
#include <string.h>

enum { MOST = 1 << 20 };
static char own[MOST], *memory;

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 4 && size == 1, "accesses WHAT BYTES TIMES on 1 rank");
    int bytes = atoi(argv[2]), times = atoi(argv[3]);
    long was, expected = 0;
    CHECK(strchr("padf", *argv[1]) && bytes > 0 && bytes <= MOST && times >= 0);
    MPI_Win win;
    MPI_Win_allocate(MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, MOST);
    if (*argv[1] == 'd') for (int i = 0; i < bytes / 8; i++) ((double *)own)[i] = 1;
    else own[0] = own[bytes - 1] = 1;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < times; i++) {
        if (*argv[1] == 'p') MPI_Put(own, bytes, MPI_CHAR, 0, 0, bytes, MPI_CHAR, win);
        if (*argv[1] == 'a') MPI_Accumulate(own, bytes, MPI_CHAR, 0, 0, bytes, MPI_CHAR, MPI_SUM, win);
        if (*argv[1] == 'd') MPI_Accumulate(own, bytes / 8, MPI_DOUBLE, 0, 0, bytes / 8, MPI_DOUBLE, MPI_SUM, win);
        if (*argv[1] == 'f') {
            MPI_Fetch_and_op(own, &was, MPI_LONG, 0, 0, MPI_SUM, win);
            CHECK(was == expected, "%ld, not %ld", was, expected);
            memcpy(&was, own, sizeof was);
            expected += was;
        }
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    if (*argv[1] == 'a') CHECK(memory[bytes - 1] == (char)times && memory[0] == (char)times);
    if (*argv[1] == 'd') CHECK(((double *)memory)[bytes / 8 - 1] == times);
    if (*argv[1] == 'p') CHECK(memory[bytes - 1] == (times > 0));
    MPI_Win_free(&win);
    return end();
}
