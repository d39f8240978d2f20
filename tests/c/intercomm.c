// ranks: 2 3 5 6
// says: correct
//
// Intercommunicators: made, asked, merged, split, duplicated; messages and every collective operation
// between two groups of different sizes, blocking, nonblocking and persistent.
#include "check.h"

static MPI_Comm half, inter;
static int mine, theirs, me, first; /* sizes of both groups, rank in mine, side A? */

enum { N = 3 };

static int value(int side, int r, int i) { return 10000 * (side + 1) + 100 * r + i; }

/* The root as each side names it: rank 0 of side A. */
static int root(void) { return first ? (me == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0; }

static void make(void)
{
    first = rank < (size + 1) / 2;
    MPI_Comm_split(MPI_COMM_WORLD, first, rank, &half);
    MPI_Comm_rank(half, &me);
    MPI_Comm_size(half, &mine);
    theirs = size - mine;
    MPI_Intercomm_create(half, mine - 1, MPI_COMM_WORLD, first ? size - 1 : (size + 1) / 2 - 1, 7, &inter);
}

static void ask(void)
{
    int flag, n, result;
    MPI_Comm_test_inter(inter, &flag);
    CHECK(flag == 1);
    MPI_Comm_test_inter(half, &flag);
    CHECK(flag == 0);
    MPI_Comm_remote_size(inter, &n);
    CHECK(n == theirs);
    MPI_Comm_size(inter, &n);
    CHECK(n == mine);
    MPI_Group group, remote, world, all;
    MPI_Comm_group(inter, &group);
    MPI_Comm_remote_group(inter, &remote);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_union(first ? group : remote, first ? remote : group, &all);
    MPI_Group_compare(all, world, &result);
    CHECK(result == MPI_IDENT);
    MPI_Group_free(&group), MPI_Group_free(&remote), MPI_Group_free(&world), MPI_Group_free(&all);
    MPI_Comm copy;
    MPI_Comm_dup(inter, &copy);
    MPI_Comm_compare(inter, copy, &result);
    CHECK(result == MPI_CONGRUENT);
    MPI_Comm_compare(inter, half, &result);
    CHECK(result == MPI_UNEQUAL);
    MPI_Comm_free(&copy);
    MPI_Request request;
    MPI_Comm_idup(inter, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_remote_size(copy, &n);
    CHECK(n == theirs);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
}

static void messages(void)
{
    /* Everybody to rank 0 of the other group. */
    int word = value(first, me, 0);
    MPI_Request request;
    MPI_Isend(&word, 1, MPI_INT, 0, 5, inter, &request);
    if (me == 0)
        for (int r = 0; r < theirs; r++) {
            int got = -1;
            MPI_Status status;
            MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 5, inter, &status);
            CHECK(got == value(!first, status.MPI_SOURCE, 0), "%d from %d", got, status.MPI_SOURCE);
        }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void merged(void)
{
    for (int high = 0; high < 2; high++) {
        MPI_Comm both;
        int r, n;
        MPI_Intercomm_merge(inter, first ? high : !high, &both);
        MPI_Comm_rank(both, &r);
        MPI_Comm_size(both, &n);
        CHECK(n == size);
        CHECK(r == (first == !high ? me : me + theirs), "high %d: rank %d", high, r);
        MPI_Comm_free(&both);
        MPI_Intercomm_merge(inter, high, &both);
        int sum, one = 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
        CHECK(sum == size);
        MPI_Comm_free(&both);
    }
}

static void parts(void)
{
    /* Ranks 0 of both sides, and the others. */
    MPI_Comm part;
    int n;
    MPI_Comm_split(inter, me == 0 ? 4 : 9, -me, &part);
    if (me == 0) {
        MPI_Comm_remote_size(part, &n);
        CHECK(n == 1);
    } else if (theirs == 1) {
        CHECK(part == MPI_COMM_NULL);
    } else {
        MPI_Comm_remote_size(part, &n);
        CHECK(n == theirs - 1);
        int r;
        MPI_Comm_rank(part, &r);
        CHECK(r == mine - 1 - me);
    }
    if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
    /* The last of side A and all of side B backwards. */
    MPI_Group group, sub;
    MPI_Comm_group(inter, &group);
    int last = mine - 1, range[1][3] = {{mine - 1, 0, -1}};
    if (first)
        MPI_Group_incl(group, 1, &last, &sub);
    else
        MPI_Group_range_incl(group, 1, range, &sub);
    MPI_Comm_create(inter, sub, &part);
    if (first && me != last) {
        CHECK(part == MPI_COMM_NULL);
    } else {
        int r;
        MPI_Comm_rank(part, &r);
        MPI_Comm_remote_size(part, &n);
        CHECK(r == (first ? 0 : mine - 1 - me) && n == (first ? theirs : 1));
        int word = r, got = -1;
        MPI_Bcast(first ? &word : &got, 1, MPI_INT, first ? MPI_ROOT : 0, part);
        CHECK(first || got == 0);
        MPI_Comm_free(&part);
    }
    MPI_Comm_create(inter, first ? sub : MPI_GROUP_EMPTY, &part);
    CHECK(part == MPI_COMM_NULL);
    MPI_Group_free(&group), MPI_Group_free(&sub);
    /* Both sides of one communicator at once, each with its own group. */
    MPI_Comm both;
    MPI_Intercomm_merge(inter, first, &both);
    MPI_Comm_group(inter, &group);
    MPI_Comm_create(both, group, &part);
    MPI_Comm_size(part, &n);
    CHECK(n == mine);
    MPI_Barrier(part);
    MPI_Group_free(&group);
    MPI_Comm_free(&part);
    MPI_Comm_free(&both);
}

/* One round of all collectives; `form` 0: blocking, 1: nonblocking, 2: persistent. */
static MPI_Request pending;
#define RUN(form, blocking, nonblocking, persistent)                            \
    do {                                                                        \
        if ((form) == 0) {                                                      \
            blocking;                                                           \
        } else if ((form) == 1) {                                               \
            nonblocking;                                                        \
            MPI_Wait(&pending, MPI_STATUS_IGNORE);                              \
        } else {                                                                \
            persistent;                                                         \
            for (int again = 0; again < 2; again++)                             \
                MPI_Start(&pending), MPI_Wait(&pending, MPI_STATUS_IGNORE);     \
            MPI_Request_free(&pending);                                         \
        }                                                                       \
    } while (0)

#define I MPI_INT
#define C inter
#define R &pending
#define IN MPI_INFO_NULL, &pending

static void collectives(int form)
{
    int most = N * size, out[most], in[most], counts[size], displs[size], zeros[size];
    MPI_Datatype types[size];
    RUN(form, MPI_Barrier(C), MPI_Ibarrier(C, R), MPI_Barrier_init(C, IN));

    for (int i = 0; i < N; i++) in[i] = first ? value(1, 0, i) : -1;
    RUN(form, MPI_Bcast(in, N, I, root(), C), MPI_Ibcast(in, N, I, root(), C, R),
        MPI_Bcast_init(in, N, I, root(), C, IN));
    for (int i = 0; i < N; i++) CHECK(in[i] == value(1, 0, i) || (first && me));

    /* Gather of side B at rank 0 of side A. */
    for (int i = 0; i < most; i++) out[i] = value(first, me, i), in[i] = -1;
    RUN(form, MPI_Gather(out, N, I, in, N, I, root(), C), MPI_Igather(out, N, I, in, N, I, root(), C, R),
        MPI_Gather_init(out, N, I, in, N, I, root(), C, IN));
    for (int i = 0; i < most; i++)
        CHECK(in[i] == (root() == MPI_ROOT && i < N * theirs ? value(0, i / N, i % N) : -1));
    /* The blocks backwards, of r % 3 numbers each. */
    int at = 0;
    for (int r = theirs - 1; r >= 0; r--) counts[r] = r % 3, displs[r] = at, at += r % 3;
    for (int i = 0; i < most; i++) in[i] = -1;
    RUN(form, MPI_Gatherv(out, me % 3, I, in, counts, displs, I, root(), C),
        MPI_Igatherv(out, me % 3, I, in, counts, displs, I, root(), C, R),
        MPI_Gatherv_init(out, me % 3, I, in, counts, displs, I, root(), C, IN));
    if (root() == MPI_ROOT)
        for (int r = 0; r < theirs; r++)
            for (int i = 0; i < counts[r]; i++) CHECK(in[displs[r] + i] == value(0, r, i));
    else
        CHECK(in[0] == -1);

    for (int i = 0; i < most; i++) in[i] = -1;
    RUN(form, MPI_Scatter(out, N, I, in, N, I, root(), C), MPI_Iscatter(out, N, I, in, N, I, root(), C, R),
        MPI_Scatter_init(out, N, I, in, N, I, root(), C, IN));
    for (int i = 0; i < N; i++) CHECK(in[i] == (first ? -1 : value(1, 0, N * me + i)));
    for (int i = 0; i < most; i++) in[i] = -1;
    RUN(form, MPI_Scatterv(out, counts, displs, I, in, me % 3, I, root(), C),
        MPI_Iscatterv(out, counts, displs, I, in, me % 3, I, root(), C, R),
        MPI_Scatterv_init(out, counts, displs, I, in, me % 3, I, root(), C, IN));
    at = 0;
    for (int r = mine - 1; r > me; r--) at += r % 3;
    for (int i = 0; i < most; i++) CHECK(in[i] == (first || i >= me % 3 ? -1 : value(1, 0, at + i)));

    for (int i = 0; i < most; i++) in[i] = -1;
    RUN(form, MPI_Allgather(out, N, I, in, N, I, C), MPI_Iallgather(out, N, I, in, N, I, C, R),
        MPI_Allgather_init(out, N, I, in, N, I, C, IN));
    for (int i = 0; i < most; i++) CHECK(in[i] == (i < N * theirs ? value(!first, i / N, i % N) : -1));
    for (int i = 0; i < most; i++) in[i] = -1;
    RUN(form, MPI_Allgatherv(out, me % 3, I, in, counts, displs, I, C),
        MPI_Iallgatherv(out, me % 3, I, in, counts, displs, I, C, R),
        MPI_Allgatherv_init(out, me % 3, I, in, counts, displs, I, C, IN));
    for (int r = 0; r < theirs; r++)
        for (int i = 0; i < counts[r]; i++) CHECK(in[displs[r] + i] == value(!first, r, i));

    for (int i = 0; i < most; i++) in[i] = -1;
    RUN(form, MPI_Alltoall(out, N, I, in, N, I, C), MPI_Ialltoall(out, N, I, in, N, I, C, R),
        MPI_Alltoall_init(out, N, I, in, N, I, C, IN));
    for (int i = 0; i < most; i++)
        CHECK(in[i] == (i < N * theirs ? value(!first, i / N, N * me + i % N) : -1));
    for (int r = 0; r < theirs; r++) counts[r] = 1, displs[r] = r, zeros[r] = 0, types[r] = I;
    for (int i = 0; i < most; i++) in[i] = -1;
    RUN(form, MPI_Alltoallv(out, counts, displs, I, in, counts, displs, I, C),
        MPI_Ialltoallv(out, counts, displs, I, in, counts, displs, I, C, R),
        MPI_Alltoallv_init(out, counts, displs, I, in, counts, displs, I, C, IN));
    for (int r = 0; r < theirs; r++) CHECK(in[r] == value(!first, r, me));
    for (int r = 0; r < theirs; r++) displs[r] = 4 * (theirs - 1 - r);
    for (int i = 0; i < most; i++) in[i] = -1;
    RUN(form, MPI_Alltoallw(out, counts, zeros, types, in, counts, displs, types, C),
        MPI_Ialltoallw(out, counts, zeros, types, in, counts, displs, types, C, R),
        MPI_Alltoallw_init(out, counts, zeros, types, in, counts, displs, types, C, IN));
    for (int r = 0; r < theirs; r++) CHECK(in[theirs - 1 - r] == value(!first, r, 0));

    /* Sums over side B come to side A, and the other way round. */
    int sums[most];
    for (int i = 0; i < most; i++) {
        sums[i] = 0, in[i] = -1;
        for (int r = 0; r < theirs; r++) sums[i] += value(!first, r, i);
    }
    RUN(form, MPI_Reduce(out, in, N, I, MPI_SUM, root(), C), MPI_Ireduce(out, in, N, I, MPI_SUM, root(), C, R),
        MPI_Reduce_init(out, in, N, I, MPI_SUM, root(), C, IN));
    for (int i = 0; i < N; i++) CHECK(in[i] == (root() == MPI_ROOT ? sums[i] : -1));
    RUN(form, MPI_Allreduce(out, in, N, I, MPI_SUM, C), MPI_Iallreduce(out, in, N, I, MPI_SUM, C, R),
        MPI_Allreduce_init(out, in, N, I, MPI_SUM, C, IN));
    for (int i = 0; i < N; i++) CHECK(in[i] == sums[i]);
    /* Both sides reduce mine * theirs numbers. */
    if (mine * theirs <= most) {
        for (int i = 0; i < most; i++) in[i] = -1;
        RUN(form, MPI_Reduce_scatter_block(out, in, theirs, I, MPI_SUM, C),
            MPI_Ireduce_scatter_block(out, in, theirs, I, MPI_SUM, C, R),
            MPI_Reduce_scatter_block_init(out, in, theirs, I, MPI_SUM, C, IN));
        for (int i = 0; i < theirs; i++) CHECK(in[i] == sums[me * theirs + i]);
        /* All to the last rank. */
        for (int r = 0; r < mine; r++) counts[r] = r == mine - 1 ? mine * theirs : 0;
        for (int i = 0; i < most; i++) in[i] = -1;
        RUN(form, MPI_Reduce_scatter(out, in, counts, I, MPI_SUM, C),
            MPI_Ireduce_scatter(out, in, counts, I, MPI_SUM, C, R),
            MPI_Reduce_scatter_init(out, in, counts, I, MPI_SUM, C, IN));
        for (int i = 0; i < mine * theirs; i++) CHECK(in[i] == (me == mine - 1 ? sums[i] : -1));
    }
}

static void wrong(void)
{
    int in[N * 9] = {0}, out = 1, n;
    MPI_Comm none;
    MPI_Group group;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Scan(&out, in, 1, I, MPI_SUM, inter)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Exscan(&out, in, 1, I, MPI_SUM, inter)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Allreduce(MPI_IN_PLACE, in, 1, I, MPI_SUM, inter)) == MPI_ERR_BUFFER);
    CHECK(class_of(MPI_Bcast(in, 1, I, theirs, inter)) == MPI_ERR_ROOT);
    CHECK(class_of(MPI_Bcast(in, 1, I, MPI_ROOT, half)) == MPI_ERR_ROOT);
    CHECK(class_of(MPI_Send(&out, 1, I, theirs, 0, inter)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Comm_remote_size(half, &n)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Comm_remote_group(half, &group)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Intercomm_merge(half, 0, &none)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 0, 0, &none)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Intercomm_create(half, mine, MPI_COMM_WORLD, 0, 0, &none)) == MPI_ERR_RANK);
    int dims[1] = {1}, periods[1] = {0};
    CHECK(class_of(MPI_Cart_create(inter, 1, dims, periods, 0, &none)) == MPI_ERR_COMM);
    if (size == 2) {
        /* Both sides are the whole world. */
        MPI_Comm all;
        MPI_Comm_dup(MPI_COMM_WORLD, &all);
        MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
        CHECK(class_of(MPI_Intercomm_create(all, rank, MPI_COMM_WORLD, 1 - rank, 3, &none)) != MPI_SUCCESS);
        MPI_Comm_free(&all);
    }
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    make();
    ask();
    messages();
    merged();
    parts();
    for (int form = 0; form < 3; form++) collectives(form);
    wrong();
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    return end();
}
