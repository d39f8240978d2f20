// ranks: 1 2 3
// env: | WEFT_BCAST=MPI-FLAT WEFT_SCATTER=MPI-FLAT | WEFT_BCAST=BINOMIAL WEFT_SCATTER=FLAT | WEFT_BCAST=MPI-K-NOMIAL WEFT_SCATTER=MPI-BINOMIAL
// says: correct
//
// Bad collective calls: wrong arguments, and ranks that do not agree about the length. The latter
// where algorithms are asked for by name: what is chosen by length may be another one on each of such ranks.
#include "bad.h"
#include <stdlib.h>

#define W MPI_COMM_WORLD

static void arguments(void)
{
    int a[64] = {0}, b[64], minus[16], zeros[16] = {0}, ones[16];
    MPI_Datatype loose;
    MPI_Op op, freed;
    MPI_Request request = MPI_REQUEST_NULL;
    for (int i = 0; i < 16; i++) ones[i] = 1, minus[i] = i == size - 1 ? -4 : 1;
    MPI_Type_contiguous(2, MPI_INT, &loose);
    MPI_Op_create((MPI_User_function *)works, 1, &op);
    freed = op;
    MPI_Op_free(&op);
    BAD(TYPE, "MPI_Bcast|MPI_COMM_WORLD|datatype|MPI_Type_commit", MPI_Bcast(a, 1, loose, 0, W));
    BAD(TYPE, "MPI_Igather|sendtype|MPI_Type_commit",
        MPI_Igather(a, 1, loose, b, 2, MPI_INT, 0, W, &request));
    CHECK(request == MPI_REQUEST_NULL);
    BAD(OP, "MPI_Allreduce|op = 0x|freed", MPI_Allreduce(a, b, 1, MPI_INT, freed, W));
    BAD(OP, "MPI_Scan|op", MPI_Scan(a, b, 1, MPI_INT, MPI_OP_NULL, W));
    BAD(OP, "MPI_Reduce_local|op", MPI_Reduce_local(a, b, 1, MPI_INT, freed));
    BAD(OP, "MPI_Reduce_init|op",
        MPI_Reduce_init(a, b, 1, MPI_INT, freed, 0, W, MPI_INFO_NULL, &request));
    BAD(OP, "MPI_Allreduce|MPI_BAND|MPI_DOUBLE",
        MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, W));
    BAD(COUNT, "MPI_Allreduce|count = -1", MPI_Allreduce(a, b, -1, MPI_INT, MPI_SUM, W));
    BAD(COUNT, "MPI_Bcast_c|count = -3", MPI_Bcast_c(a, -3, MPI_INT, 0, W));
    BAD(COUNT, "MPI_Allgather|recvcount = -2",
        MPI_Allgather(a, 1, MPI_INT, b, -2, MPI_INT, W));
    BAD(COUNT, "MPI_Reduce_scatter|recvcounts[|= -4",
        MPI_Reduce_scatter(a, b, minus, MPI_INT, MPI_SUM, W));
    BAD(COUNT, "MPI_Alltoallv|sendcounts[|= -4",
        MPI_Alltoallv(a, minus, zeros, MPI_INT, b, ones, zeros, MPI_INT, W));
    BAD(ARG, "MPI_Allgatherv|recvcounts|NULL",
        MPI_Allgatherv(a, 1, MPI_INT, b, NULL, zeros, MPI_INT, W));
    BAD(ARG, "MPI_Allgatherv|displacements|NULL",
        MPI_Allgatherv(a, 1, MPI_INT, b, ones, NULL, MPI_INT, W));
    BAD(COUNT, "MPI_Send_c|count = 4611686018427387904|8 bytes",
        MPI_Send_c(a, (MPI_Count)1 << 62, MPI_DOUBLE, 0, 0, W));
    BAD(COUNT, "MPI_Allreduce_c|count = 2305843009213693951|4 bytes",
        MPI_Allreduce_c(a, b, INT64_MAX / 4, MPI_INT, MPI_SUM, W));
    /* MPI_IN_PLACE where it does not belong. */
    BAD(BUFFER, "MPI_Bcast|buffer is MPI_IN_PLACE", MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, W));
    BAD(BUFFER, "MPI_Send|buf is MPI_IN_PLACE", MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 0, 0, W));
    BAD(BUFFER, "MPI_Irecv|buf is MPI_IN_PLACE",
        MPI_Irecv(MPI_IN_PLACE, 1, MPI_INT, 0, 0, W, &request));
    BAD(BUFFER, "MPI_Allreduce|recvbuf is MPI_IN_PLACE",
        MPI_Allreduce(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, W));
    BAD(BUFFER, "MPI_Alltoall|recvbuf is MPI_IN_PLACE",
        MPI_Alltoall(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, W));
    BAD(BUFFER, "MPI_Exscan|recvbuf is MPI_IN_PLACE",
        MPI_Exscan(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, W));
    if (rank > 0)
        BAD(BUFFER, "MPI_Reduce|MPI_IN_PLACE is for the root",
            MPI_Reduce(MPI_IN_PLACE, b, 1, MPI_INT, MPI_SUM, 0, W));
    BAD(INFO, "MPI_Barrier_init|info = 0x",
        MPI_Barrier_init(W, (MPI_Info)(uintptr_t)0xabcdef, &request));
    BAD(ARG, "MPI_Ibarrier|request is NULL", MPI_Ibarrier(W, NULL));
    MPI_Type_free(&loose);
}

/* What a rank sends itself does not fit. */
static void own_blocks(void)
{
    int a[64] = {0}, b[64];
    int twos[16], fours[16], displs[16];
    for (int i = 0; i < 16; i++) twos[i] = 2, fours[i] = 4, displs[i] = 4 * i;
    const char *words = "sends 16 bytes to itself|8 bytes";
    BAD(TRUNCATE, words, MPI_Allgather(a, 4, MPI_INT, b, 2, MPI_INT, W));
    BAD(TRUNCATE, words, MPI_Allgatherv(a, 4, MPI_INT, b, twos, displs, MPI_INT, W));
    BAD(TRUNCATE, words, MPI_Alltoall(a, 4, MPI_INT, b, 2, MPI_INT, W));
    BAD(TRUNCATE, words, MPI_Alltoallv(a, fours, displs, MPI_INT, b, twos, displs, MPI_INT, W));
    BAD(TRUNCATE, words, MPI_Gather(a, 4, MPI_INT, b, 2, MPI_INT, rank, MPI_COMM_WORLD));
    BAD(TRUNCATE, words, MPI_Scatter(a, 4, MPI_INT, b, 2, MPI_INT, rank, MPI_COMM_WORLD));
    BAD(TRUNCATE, "MPI_Scatterv|MPI_COMM_SELF|rank 0 sends 16 bytes",
        MPI_Scatterv(a, fours, displs, MPI_INT, b, 2, MPI_INT, 0, MPI_COMM_SELF));
}

/* Rank 0 sends more than the others take: they say so and name it; nothing comes later. */
static void lengths(void)
{
    static int data[40000], room[40000];
    if (size == 1) return;
    for (int n = 4; n <= 40000; n *= 100) {
        int half = n / 2;
        for (int i = 0; i < n; i++) data[i] = i, room[i] = -1;
        if (rank == 0) {
            CHECK(MPI_Bcast(data, n, MPI_INT, 0, W) == MPI_SUCCESS);
        } else {
            char words[200];
            snprintf(words, sizeof words, "MPI_Bcast|MPI_COMM_WORLD|from rank 0|%d bytes", 4 * n);
            BAD(TRUNCATE, words, MPI_Bcast(room, half, MPI_INT, 0, W));
            for (int i = half; i < n; i++) CHECK(room[i] == -1, "behind the buffer");
        }
        works();
        /* The root of a gather has room for less than the others send. */
        for (int i = 0; i < n; i++) room[i] = -1;
        int counts[16], displs[16], each = n / 4;
        for (int i = 0; i < size; i++) counts[i] = i == 1 ? each / 2 : each, displs[i] = i * each;
        if (rank == 0) {
            BAD(TRUNCATE, "MPI_Gatherv|MPI_COMM_WORLD|from rank 1",
                MPI_Gatherv(data, each, MPI_INT, room, counts, displs, MPI_INT, 0, W));
            /* What came behind the fault is there: nothing comes into this memory later. */
            if (size > 2) CHECK(room[2 * each] == 0 && room[3 * each - 1] == each - 1, "n %d: %d, %d", n,
                  room[2 * each], room[3 * each - 1]);
            for (int i = each + each / 2; i < 2 * each; i++) CHECK(room[i] == -1);
            memset(room, 0x77, sizeof room);
        } else {
            CHECK(MPI_Gatherv(data, each, MPI_INT, NULL, NULL, NULL, MPI_INT, 0, W) == MPI_SUCCESS);
        }
        works();
        for (int i = 0; rank == 0 && i < n; i++) CHECK(room[i] == 0x77777777);
        /* And a scatter, nonblocking. */
        MPI_Request request;
        int wanted = rank == 1 ? each / 2 : each;
        MPI_Iscatter(data, each, MPI_INT, room, wanted, MPI_INT, 0, W, &request);
        if (rank == 1)
            BAD(TRUNCATE, "MPI_Wait|MPI_COMM_WORLD|from rank 0", MPI_Wait(&request, MPI_STATUS_IGNORE));
        else
            CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(request == MPI_REQUEST_NULL);
        works();
    }
}

int main(int argc, char **argv)
{
    begin_returning(&argc, &argv);
    arguments();
    works();
    own_blocks();
    works();
    if (getenv("WEFT_BCAST") != NULL) lengths();
    works();
    return end();
}
