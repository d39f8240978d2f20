// ranks: 1 4
// says: correct
//
// Operators (MPI 5.0, section 6.9): reductions of one process alone, functions of the program with
// counts of int and of MPI_Count, whether they commute; and communicators that a group alone makes.
#include "check.h"

static int calls;
static MPI_Count most;

/* The older element less the newer one: neither commutative nor associative. */
static void less(void *in, void *inout, int *n, MPI_Datatype *type)
{
    CHECK(*type == MPI_INT);
    calls++;
    for (int i = 0; i < *n; i++) ((int *)inout)[i] = ((int *)in)[i] - ((int *)inout)[i];
}

/* An affine map after another: associative, not commutative. */
static void then(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
    int *a = in, *b = inout;
    (void)type;
    calls++;
    if (*n > most) most = *n;
    for (MPI_Count i = 0; i < *n; i++, a += 2, b += 2) {
        int slope = a[0] * b[0] % 1009, start = (a[1] * b[0] + b[1]) % 1009;
        b[0] = slope, b[1] = start;
    }
}

static void alone(void)
{
    MPI_Op op, wide;
    MPI_Datatype map;
    int in[3] = {10, 20, 30}, inout[3] = {1, 2, 3}, maps[2] = {3, 5}, after[2] = {2, 7};
    MPI_Reduce_local(in, inout, 3, MPI_INT, MPI_SUM);
    CHECK(inout[0] == 11 && inout[1] == 22 && inout[2] == 33 && in[0] == 10);
    MPI_Reduce_local_c(in, inout, 2, MPI_INT, MPI_MIN);
    CHECK(inout[0] == 10 && inout[1] == 20 && inout[2] == 33);
    MPI_Op_create(less, 0, &op);
    MPI_Reduce_local(in, inout, 3, MPI_INT, op);
    CHECK(calls > 0 && inout[0] == 0 && inout[1] == 0 && inout[2] == -3);
    MPI_Type_contiguous(2, MPI_INT, &map);
    MPI_Type_commit(&map);
    MPI_Op_create_c(then, 0, &wide);
    calls = 0;
    MPI_Reduce_local_c(maps, after, 1, map, wide);
    CHECK(calls == 1 && most == 1 && after[0] == 6 && after[1] == 17, "%d, %d", after[0], after[1]);
    MPI_Op_free(&op), MPI_Op_free(&wide);
    CHECK(op == MPI_OP_NULL && wide == MPI_OP_NULL);
    MPI_Type_free(&map);
}

static void together(void)
{
    enum { N = 500 };
    static int in[N][2], out[N][2];
    MPI_Op op;
    MPI_Datatype map;
    MPI_Type_contiguous(2, MPI_INT, &map);
    MPI_Type_commit(&map);
    MPI_Op_create_c(then, 0, &op);
    for (int i = 0; i < N; i++) in[i][0] = (i + rank) % 7 + 1, in[i][1] = 3 * rank + i % 5;
    MPI_Allreduce(in, out, N, map, op, MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) {
        int slope = i % 7 + 1, start = i % 5;
        for (int r = 1; r < size; r++) {
            int s = (i + r) % 7 + 1, t = 3 * r + i % 5;
            slope = slope * s % 1009, start = (start * s + t) % 1009;
        }
        CHECK(out[i][0] == slope && out[i][1] == start, "map %d: %d, %d", i, out[i][0], out[i][1]);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&map);
}

static void commute(void)
{
    MPI_Op yes, no;
    int answer = -1;
    MPI_Op_create(less, 1, &yes);
    MPI_Op_create_c(then, 0, &no);
    MPI_Op_commutative(yes, &answer);
    CHECK(answer == 1);
    MPI_Op_commutative(no, &answer);
    CHECK(answer == 0);
    MPI_Op_commutative(MPI_MAX, &answer);
    CHECK(answer == 1);
    MPI_Op_commutative(MPI_REPLACE, &answer);
    CHECK(answer == 0);
    MPI_Op_free(&yes), MPI_Op_free(&no);
}

/* Only the members call it: the even ranks, in the order from the last to the first. */
static void by_a_group(void)
{
    MPI_Group world, even;
    MPI_Comm comm = MPI_COMM_WORLD;
    int ranks[16], n = 0, me = -1, all = -1, sum = -1, wanted = 0;
    for (int r = size - 1; r >= 0; r--)
        if (r % 2 == 0) ranks[n++] = r, wanted += r;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, n, ranks, &even);
    if (rank % 2 == 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, even, 3, &comm);
        CHECK(comm != MPI_COMM_WORLD && comm != MPI_COMM_NULL);
        MPI_Comm_rank(comm, &me);
        MPI_Comm_size(comm, &all);
        CHECK(all == n && ranks[me] == rank, "rank %d of %d", me, all);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == wanted, "%d", sum);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&world), MPI_Group_free(&even);
}

static void mistakes(void)
{
    int class, a = 1, b = 1;
    MPI_Op op = MPI_OP_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
#define REFUSED(call, wanted)                                                              \
    do {                                                                                   \
        MPI_Error_class(call, &class);                                                     \
        CHECK(class == wanted, "class %d, expected " #wanted, class);                      \
    } while (0)
    REFUSED(MPI_Reduce_local(&a, &b, -1, MPI_INT, MPI_SUM), MPI_ERR_COUNT);
    REFUSED(MPI_Reduce_local_c(&a, &b, 1, MPI_INT, MPI_OP_NULL), MPI_ERR_OP);
    REFUSED(MPI_Reduce_local_c(&a, &b, 1, MPI_FLOAT, MPI_BXOR), MPI_ERR_OP);
    REFUSED(MPI_Op_create_c(NULL, 0, &op), MPI_ERR_ARG);
    REFUSED(MPI_Op_commutative(MPI_OP_NULL, &a), MPI_ERR_OP);
    REFUSED(MPI_Op_commutative(MPI_SUM, NULL), MPI_ERR_ARG);
    CHECK(a == 1 && b == 1 && op == MPI_OP_NULL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    alone();
    together();
    commute();
    by_a_group();
    mistakes();
    return end();
}
