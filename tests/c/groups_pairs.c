/* Communicators of groups that overlap, made one after another under one tag while others make theirs: each has
 * the members that it was asked for, and messages and collective operations stay in it. */
// ranks: 3 4 8
// says: correct

#include "check.h"

static MPI_Group all;

static MPI_Comm made_of(int count, const int *ranks, int tag)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_incl(all, count, ranks, &group);
    CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &comm) == MPI_SUCCESS);
    MPI_Group_free(&group);
    return comm;
}

/* Every pair, in the order of pairs. */
static void pairs(int round)
{
    for (int i = 0; i < size; i++) {
        for (int j = i + 1; j < size; j++) {
            if (rank != i && rank != j) continue;
            MPI_Comm comm = made_of(2, (int[]){i, j}, 0);
            int said = rank == i ? 1000 * round + 10 * i + j : -1, count;
            MPI_Comm_size(comm, &count);
            CHECK(count == 2);
            MPI_Bcast(&said, 1, MPI_INT, 0, comm);
            CHECK(said == 1000 * round + 10 * i + j, "pair %d %d: %d", i, j, said);
            MPI_Comm_free(&comm);
        }
    }
}

/* Groups by chance, in any order of their ranks. */
static void random_groups(int groups)
{
    unsigned state = 7;
    for (int k = 0; k < groups; k++) {
        int ranks[64], count = 0, mine = 0;
        for (int r = 0; r < size; r++) {
            state = state * 1103515245 + 12345;
            if (state >> 16 & 1) ranks[count++] = r;
        }
        for (int r = count - 1; r > 0; r--) {
            state = state * 1103515245 + 12345;
            int other = (int)((state >> 16) % (unsigned)(r + 1)), kept = ranks[r];
            ranks[r] = ranks[other];
            ranks[other] = kept;
        }
        for (int r = 0; r < count; r++) mine |= ranks[r] == rank;
        if (!mine) continue;
        MPI_Comm comm = made_of(count, ranks, 5);
        int place, sum = -1, expected = 0, one = rank + k;
        for (int r = 0; r < count; r++) expected += ranks[r] + k;
        MPI_Comm_rank(comm, &place);
        CHECK(ranks[place] == rank);
        MPI_Barrier(comm);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == expected, "group %d: %d, not %d", k, sum, expected);
        MPI_Comm_free(&comm);
    }
}

/* Members of a group that is made twice in another order, nested and apart; all communicators live on. */
static void orders(void)
{
    MPI_Comm comms[4];
    int last = size - 1;
    if (rank == 0 || rank == last) {
        comms[0] = made_of(2, (int[]){0, last}, 1);
        comms[1] = made_of(2, (int[]){last, 0}, 1);
        comms[2] = made_of(1, &rank, 1);
        comms[3] = made_of(2, (int[]){0, last}, 1);
        for (int c = 0; c < 4; c++) {
            int said = 10 * c + rank, place;
            int root = c == 2 ? rank : c == 1 ? last : 0;
            MPI_Bcast(&said, 1, MPI_INT, 0, comms[c]);
            CHECK(said == 10 * c + root, "communicator %d: %d", c, said);
            MPI_Comm_rank(comms[c], &place);
            CHECK((place == 0) == (rank == root));
        }
        for (int c = 0; c < 4; c++) MPI_Comm_free(&comms[c]);
    }
}

/* Tags that differ in their highest bits alone. */
static void tags(void)
{
    int *bound, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
    CHECK(flag);
    MPI_Comm comms[2];
    for (int c = 0; c < 2; c++) {
        int ranks[64];
        for (int r = 0; r < size; r++) ranks[r] = r;
        comms[c] = made_of(size, ranks, c ? *bound : *bound - (1 << 27));
    }
    for (int c = 1; c >= 0; c--) {
        int said = rank == 0 ? c : -1;
        MPI_Bcast(&said, 1, MPI_INT, 0, comms[c]);
        CHECK(said == c);
        MPI_Comm_free(&comms[c]);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int round = 0; round < 100; round++) pairs(round);
    random_groups(300);
    orders();
    tags();
    MPI_Group_free(&all);
    return end();
}
