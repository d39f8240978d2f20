// ranks: 2
// args: compute 20
// says: correct
//
// woken WHAT TIMES: rank 0 puts 8 bytes so many times, each with a flush and a pause. Meanwhile rank 1 computes, waits in MPI_Barrier
// or waits in MPI_Recv (compute, barrier, recv). It prints how often its helper has slept, if it has a helper: once for each time
// that it was woken. For xtask/src/test/network/counts.rs.
#define _GNU_SOURCE
#include "helper.h"

enum { PAUSE = 2000 /* microseconds */ };

int main(int argc, char **argv)
{
    MPI_Win win;
    long *memory, word = 0;
    begin(&argc, &argv);
    CHECK(argc == 3 && size == 2, "woken WHAT TIMES on 2 ranks");
    const char *what = argv[1];
    int times = atoi(argv[2]);
    CHECK(strchr("cbr", *what) && times > 0);
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    *memory = 0;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 3; i++) MPI_Barrier(MPI_COMM_WORLD); /* connections */
    long before = helper_slept();
    if (rank == 0) {
        for (long i = 1; i <= times; i++) {
            usleep(PAUSE);
            MPI_Put(&i, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
            MPI_Win_flush(1, win);
        }
        if (*what == 'r') MPI_Send(&word, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD);
    } else if (*what == 'c') {
        while (__atomic_load_n(memory, __ATOMIC_ACQUIRE) != times) { }
    } else if (*what == 'r') {
        MPI_Recv(&word, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (*what == 'b') MPI_Barrier(MPI_COMM_WORLD);
    long slept = helper_slept();
    if (slept >= 0) slept -= before < 0 ? 0 : before; /* A helper may begin late. */
    else if (*what != 'c') slept = 0;                 /* A target that waits in MPI may need none. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) CHECK(*memory == times, "%ld", *memory);
    if (rank == 1) printf("%s: the helper slept %ld times in %d puts\n", what, slept, times);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return end();
}
