#include "check.h"

int main(void) {
    begin();
    MPI_Group world, empty, other, made;
    int size, rank, result;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_size(world, &size);
    MPI_Group_rank(world, &rank);
    CHECK(size == 1 && rank == 0);
    MPI_Group_rank(MPI_GROUP_EMPTY, &rank);
    CHECK(rank == MPI_UNDEFINED);
    MPI_Group_size(MPI_GROUP_EMPTY, &size);
    CHECK(size == 0);

    /* Empty results are the predefined empty group. */
    MPI_Group_incl(world, 0, NULL, &empty);
    CHECK(empty == MPI_GROUP_EMPTY);
    int zero = 0;
    MPI_Group_excl(world, 1, &zero, &empty);
    CHECK(empty == MPI_GROUP_EMPTY);
    MPI_Group_excl(world, 0, NULL, &other);
    MPI_Group_compare(world, other, &result);
    CHECK(result == MPI_IDENT);
    MPI_Group_compare(world, MPI_GROUP_EMPTY, &result);
    CHECK(result == MPI_UNEQUAL);

    MPI_Group_union(world, MPI_GROUP_EMPTY, &made);
    MPI_Group_size(made, &size);
    CHECK(size == 1);
    CHECK(MPI_Group_free(&made) == MPI_SUCCESS && made == MPI_GROUP_NULL);
    MPI_Group_intersection(world, MPI_GROUP_EMPTY, &made);
    CHECK(made == MPI_GROUP_EMPTY);
    CHECK(MPI_Group_free(&made) == MPI_SUCCESS && made == MPI_GROUP_NULL);
    size = -1;
    MPI_Group_difference(world, MPI_GROUP_EMPTY, &made);
    MPI_Group_size(made, &size);
    CHECK(size == 1);
    MPI_Group_free(&made);

    int ranges[2][3] = {{0, 0, 1}, {0, 5, -1}};
    MPI_Group_range_incl(world, 2, ranges, &made);
    MPI_Group_size(made, &size);
    CHECK(size == 1);
    MPI_Group_free(&made);
    MPI_Group_range_excl(world, 1, ranges, &made);
    CHECK(made == MPI_GROUP_EMPTY);

    int from[2] = {0, MPI_PROC_NULL}, to[2] = {-7, -7};
    MPI_Group_translate_ranks(world, 2, from, other, to);
    CHECK(to[0] == 0 && to[1] == MPI_PROC_NULL);
    MPI_Group_translate_ranks(world, 2, from, MPI_GROUP_EMPTY, to);
    CHECK(to[0] == MPI_UNDEFINED && to[1] == MPI_PROC_NULL);

    int beyond = 1, twice[2] = {0, 0}, stuck[1][3] = {{0, 0, 0}}, above[1][3] = {{0, 3, 1}};
    REFUSED(MPI_Group_incl(world, 1, &beyond, &made), MPI_ERR_RANK,
            "MPI_Group_incl: argument ranks[0] = 1: ranks of the group are 0 to 0");
    REFUSED(MPI_Group_excl(world, 2, twice, &made), MPI_ERR_RANK, "rank 0 is there twice");
    REFUSED(MPI_Group_incl(world, -1, twice, &made), MPI_ERR_COUNT, "n = -1 is negative");
    REFUSED(MPI_Group_incl(world, 1, NULL, &made), MPI_ERR_ARG, "argument ranks is NULL");
    REFUSED(MPI_Group_range_incl(world, 1, stuck, &made), MPI_ERR_ARG, "the stride is 0");
    REFUSED(MPI_Group_range_excl(world, 1, above, &made), MPI_ERR_RANK, "ranges[0] = 1");
    REFUSED(MPI_Group_size(MPI_GROUP_NULL, &size), MPI_ERR_GROUP, "group is the null group");
    REFUSED(MPI_Group_union(world, MPI_GROUP_NULL, &made), MPI_ERR_GROUP, "group2");
    REFUSED(MPI_Group_translate_ranks(MPI_GROUP_EMPTY, 1, from, world, to), MPI_ERR_RANK,
            "the group is empty");
    MPI_Group stale = other;
    MPI_Group_free(&other);
    REFUSED(MPI_Group_size(stale, &size), MPI_ERR_GROUP, "freed");
    MPI_Group_free(&world);
    return end();
}
