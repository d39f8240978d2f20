// ranks: 1 2 3 6
// says: correct
//
// Persistent collectives are matched by their initialization: they may be started in any order, in
// another one on each rank, with other collectives in between (MPI 5.0, section 6.13).
#include "check.h"

#define WORLD MPI_COMM_WORLD
enum { ALLREDUCE, LARGE, BARRIER, BCAST, ALLTOALL, SCATTERED, RING, OPERATIONS };

/* Between two groups, started in opposite orders. */
static void between_groups(void)
{
    if (size < 2) return;
    int side = rank % 2, others = side ? (size + 1) / 2 : size / 2, mine, sum, got[16], first = -1;
    MPI_Comm half, both;
    MPI_Request all[3];
    MPI_Comm_split(WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, WORLD, !side, 3, &both);
    MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, both, MPI_INFO_NULL, all);
    MPI_Allgather_init(&mine, 1, MPI_INT, got, 1, MPI_INT, both, MPI_INFO_NULL, all + 1);
    int root = side ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Bcast_init(rank == 0 ? &mine : &first, 1, MPI_INT, root, both, MPI_INFO_NULL, all + 2);
    for (int round = 0; round < 10; round++) {
        int wanted = 0;
        mine = 100 * round + rank;
        for (int i = 0; i < 3; i++) MPI_Start(all + (rank % 3 ? 2 - i : i));
        MPI_Waitall(3, all, MPI_STATUSES_IGNORE);
        for (int i = 0; i < others; i++) {
            int there = 100 * round + 2 * i + !side;
            CHECK(got[i] == there, "round %d: %d, not %d", round, got[i], there);
            wanted += there;
        }
        CHECK(sum == wanted, "round %d: %d, not %d", round, sum, wanted);
        CHECK(first == (side ? 100 * round : -1), "round %d: %d", round, first);
    }
    for (int i = 0; i < 3; i++) MPI_Request_free(all + i);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

/* Blocking and nonblocking operations are numbered apart: programs that start one of each in different
 * orders work elsewhere. */
static void blocking_beside(void)
{
    for (int round = 0; round < 20; round++) {
        int first = rank == round % size, one = 1, count = -1;
        MPI_Request some;
        if (!first) MPI_Barrier(MPI_COMM_WORLD);
        MPI_Iallreduce(&one, &count, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &some);
        if (first) {
            CHECK(size == 1 || count == -1);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Wait(&some, MPI_STATUS_IGNORE);
        CHECK(count == size);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    enum { MANY = 40000 };
    static int mine[OPERATIONS], sums[OPERATIONS], large[MANY], sum[MANY];
    int root = size - 1, out[2], in[2], sent[16], got[16], scattered[16], part;
    MPI_Request all[OPERATIONS], some;
    MPI_Comm ring;
    MPI_Cart_create(WORLD, 1, &size, (int[]){1}, 0, &ring);
    MPI_Allreduce_init(mine, sums, 1, MPI_INT, MPI_SUM, ring, MPI_INFO_NULL, all + ALLREDUCE);
    MPI_Allreduce_init(large, sum, MANY, MPI_INT, MPI_SUM, ring, MPI_INFO_NULL, all + LARGE);
    MPI_Barrier_init(ring, MPI_INFO_NULL, all + BARRIER);
    MPI_Bcast_init(mine + BCAST, 1, MPI_INT, root, ring, MPI_INFO_NULL, all + BCAST);
    MPI_Alltoall_init(sent, 1, MPI_INT, got, 1, MPI_INT, ring, MPI_INFO_NULL, all + ALLTOALL);
    MPI_Reduce_scatter_block_init(scattered, &part, 1, MPI_INT, MPI_SUM, ring, MPI_INFO_NULL,
                                  all + SCATTERED);
    MPI_Neighbor_alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, ring, MPI_INFO_NULL, all + RING);
    int left = (rank + size - 1) % size, right = (rank + 1) % size, ranks = size * (size - 1) / 2;
    for (int round = 0; round < 20; round++) {
        int key = 100 * round;
        mine[0] = key + rank, mine[BCAST] = rank == root ? key + 7 : -1;
        out[0] = key + 2 * rank, out[1] = key + 2 * rank + 1;
        for (int i = 0; i < MANY; i++) large[i] = i + rank + round;
        for (int i = 0; i < size; i++) sent[i] = key + 10 * rank + i, scattered[i] = key + i;
        /* Each rank begins somewhere else, and every other one goes backwards. */
        for (int i = 0; i < OPERATIONS; i++) {
            int place = (rank + round + (rank % 2 ? OPERATIONS - i : i)) % OPERATIONS;
            MPI_Start(all + place);
            if (i == 3) {
                int one = 1, count = 0;
                MPI_Iallreduce(&one, &count, 1, MPI_INT, MPI_SUM, ring, &some);
                MPI_Wait(&some, MPI_STATUS_IGNORE);
                CHECK(count == size);
            }
        }
        MPI_Waitall(OPERATIONS, all, MPI_STATUSES_IGNORE);
        CHECK(sums[0] == key * size + ranks, "round %d: %d", round, sums[0]);
        for (int i = 0; i < MANY; i++) CHECK(sum[i] == size * (i + round) + ranks, "round %d", round);
        CHECK(mine[BCAST] == key + 7, "round %d: %d", round, mine[BCAST]);
        for (int i = 0; i < size; i++) CHECK(got[i] == key + 10 * i + rank, "round %d", round);
        CHECK(part == size * (key + rank), "round %d: %d", round, part);
        CHECK(in[0] == key + 2 * left + 1 && in[1] == key + 2 * right, "round %d", round);
    }
    /* One alone, again and again: nobody waits for the others. */
    for (int round = 0; round < 20; round++) {
        mine[0] = rank == 0 ? round : 0;
        MPI_Start(all + ALLREDUCE);
        MPI_Wait(all + ALLREDUCE, MPI_STATUS_IGNORE);
        CHECK(sums[0] == round);
    }
    for (int i = 0; i < OPERATIONS; i++) MPI_Request_free(all + i);
    MPI_Comm_free(&ring);
    blocking_beside();
    between_groups();
    return end();
}
