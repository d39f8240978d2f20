// ranks: 2 3 4
// env: WEFT_NODES=1 | WEFT_NODES=2 | WEFT_FABRIC=ofi
// says: correct
//
// Shared memory of ranks on different nodes (MPI 5.0, section 12.2.3): each rank gets MPI_ERR_RMA_SHARED, for
// every kind of window of shared memory, and all ranks go on. The ranks of one node make a window.
#include "check.h"

static MPI_Info noncontiguous(int yes)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", yes ? "true" : "false");
    return info;
}

static void refused(MPI_Comm comm, MPI_Aint len, int yes)
{
    void *base = NULL;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Info info = noncontiguous(yes);
    FAILS(MPI_Win_allocate_shared(len, 8, info, comm, &base, &win), MPI_ERR_RMA_SHARED);
    FAILS(MPI_Win_allocate_shared_c(len, 8, info, comm, &base, &win), MPI_ERR_RMA_SHARED);
    CHECK(win == MPI_WIN_NULL);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    int sum = 0, one = 1, ranks;
    long *mine;
    MPI_Comm node, others;
    MPI_Win win;
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &ranks);
    const int by_network = getenv("WEFT_FABRIC") != NULL;
    if (by_network || ranks < size) {
        for (int yes = 0; yes < 2; yes++) {
            refused(MPI_COMM_WORLD, 64, yes);
            refused(MPI_COMM_WORLD, 0, yes);
            refused(MPI_COMM_WORLD, rank == size - 1 ? 64 : 0, yes);
        }
        /* The same ranks, in another order. */
        MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &others);
        refused(others, 64, 0);
        MPI_Comm_free(&others);
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size);
    if (by_network) {
        MPI_Comm_free(&node);
        MPI_Comm_dup(MPI_COMM_SELF, &node);
    }
    for (int yes = 0; yes < 2; yes++) {
        MPI_Info info = noncontiguous(yes);
        CHECK(MPI_Win_allocate_shared(64, 8, info, node, &mine, &win) == MPI_SUCCESS);
        mine[0] = rank;
        MPI_Win_free(&win);
        MPI_Info_free(&info);
    }
    MPI_Comm_free(&node);
    return end();
}
