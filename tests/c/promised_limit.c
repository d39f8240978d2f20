// Under a limit on memory that holds one window but not two: the second one is refused, and what was promised can be
// used. Run by itself it only counts down from what there is.
//
// ranks: 1 2
// alone: it counts down from what the machine has
// says: correct
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    // Windows of so many MiB, until no more are promised.
    MPI_Aint each = (argc > 1 ? atol(argv[1]) : 1024) << 20;
    int limit = argc > 2 ? atoi(argv[2]) : 8, count = 0;
    MPI_Win wins[1000];
    char *bases[1000];
    CHECK(limit < 1000);
    for (; count < limit; count++) {
        int failed = MPI_Win_allocate(each, 1, MPI_INFO_NULL, MPI_COMM_SELF, &bases[count], &wins[count]);
        if (failed) {
            CHECK(class_of(failed) == MPI_ERR_NO_MEM);
            void *other;
            FAILS(MPI_Alloc_mem(each, MPI_INFO_NULL, &other), MPI_ERR_NO_MEM);
            break;
        }
    }
    int all = 0, least;
    MPI_Reduce(&count, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&count, &least, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d windows, the limit is %d\n", all, limit * size);
    // What was promised is there.
    if (argc > 1) {
        for (int i = 0; i < count; i++)
            memset(bases[i], 1, each);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    while (count-- > 0)
        MPI_Win_free(&wins[count]);
    // And again, once they are given back.
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && all > 0) {
        CHECK(!MPI_Win_allocate(each, 1, MPI_INFO_NULL, MPI_COMM_SELF, &bases[0], &wins[0]));
        MPI_Win_free(&wins[0]);
    }
    return end();
}
