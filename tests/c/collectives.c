// ranks: 1 2 3 4 5 7 8
// env: | WEFT_BARRIER=MPI-PE WEFT_ALLREDUCE=MPI-GB | WEFT_BARRIER=MPI-DS WEFT_ALLREDUCE=MPI-PE WEFT_CMA=0 WEFT_EAGER=1000 | WEFT_PROGRESS=handover WEFT_EAGER=64 | WEFT_CACHES=far
// says: correct
// sim-args: 1
//
// Every collective operation, blocking, nonblocking and persistent, from every root, in place and
// not, against answers that each rank computes alone. With a number, from so many roots, the last.
#include "check.h"

#define NULLINFO MPI_INFO_NULL
enum { BLOCKING, NONBLOCKING, PERSISTENT, HOWS };

static int how; /* which form is tried */
static MPI_Comm comm;
static MPI_Request request;

static void finish(void) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

static void restart(void)
{
    for (int i = 0; i < 2; i++) MPI_Start(&request), finish();
    MPI_Request_free(&request);
}

/* One operation in the form that is tried. A persistent one runs twice: callers repeat that safely. */
#define RUN(Name, name, ...)                                                              \
    do {                                                                                  \
        if (how == BLOCKING) MPI_##Name(__VA_ARGS__, comm);                               \
        else if (how == NONBLOCKING) MPI_I##name(__VA_ARGS__, comm, &request), finish();  \
        else MPI_##Name##_init(__VA_ARGS__, comm, NULLINFO, &request), restart();         \
    } while (0)

/* Element i of the data that rank r contributes; small, so that products and sums are exact. */
static int element(int r, int i) { return (r * 31 + i * 17 + 3) % 50; }

static const int counts[] = {0, 1, 3, 16, 1000, 20001};
enum { COUNTS = sizeof counts / sizeof *counts, MOST = 20001 };

static void check_ints(const int *data, int n, int from, int shift, const char *what)
{
    for (int i = 0; i < n; i++)
        CHECK(data[i] == element(from, i + shift), "%s, form %d, element %d of %d: %d", what, how,
              i, n, data[i]);
}

static void barrier(void)
{
    if (how == BLOCKING) MPI_Barrier(comm);
    else if (how == NONBLOCKING) MPI_Ibarrier(comm, &request), finish();
    else MPI_Barrier_init(comm, NULLINFO, &request), restart();
}

static void bcast(int root)
{
    static int data[MOST];
    for (int c = 0; c < COUNTS; c++) {
        int n = counts[c];
        for (int i = 0; i < n; i++) data[i] = rank == root ? element(root, i) : -1;
        RUN(Bcast, bcast, data, n, MPI_INT, root);
        check_ints(data, n, root, 0, "bcast");
    }
}

/* Local answer of a reduction over ranks 0..last. */
static double reduced(int last, int i, MPI_Op op)
{
    double all = element(0, i);
    for (int r = 1; r <= last; r++) {
        int e = element(r, i);
        if (op == MPI_SUM) all += e;
        else if (op == MPI_MAX) all = e > all ? e : all;
        else if (op == MPI_MIN) all = e < all ? e : all;
        else if (op == MPI_BXOR) all = (int)all ^ e;
        else if (op == MPI_LAND) all = all && e;
    }
    return all; /* one contribution alone goes through no operator */
}

enum Reduction { REDUCE, ALLREDUCE, SCAN, EXSCAN, REDUCTIONS };

#define REDUCTION(T, TYPE, fits)                                                            \
    static void reduction_##T(enum Reduction which, MPI_Op op, int root, int in_place)      \
    {                                                                                       \
        static T in[MOST], out[MOST];                                                       \
        if (!(fits)) return;                                                                \
        for (int c = 0; c < COUNTS; c++) {                                                  \
            int n = counts[c], last = which == SCAN ? rank : which == EXSCAN ? rank - 1     \
                                                                             : size - 1;   \
            int place = in_place && (which != REDUCE || rank == root) && how != PERSISTENT; \
            for (int i = 0; i < n; i++) in[i] = element(rank, i), out[i] = place ? in[i] : 99; \
            const void *from = place ? MPI_IN_PLACE : (const void *)in;                     \
            if (which == REDUCE) RUN(Reduce, reduce, from, out, n, TYPE, op, root);         \
            else if (which == ALLREDUCE) RUN(Allreduce, allreduce, from, out, n, TYPE, op); \
            else if (which == SCAN) RUN(Scan, scan, from, out, n, TYPE, op);                \
            else RUN(Exscan, exscan, from, out, n, TYPE, op);                               \
            if (last < 0 || (which == REDUCE && rank != root)) continue;                    \
            for (int i = 0; i < n; i++)                                                     \
                CHECK(out[i] == (T)reduced(last, i, op),                                    \
                      #T ", reduction %d, form %d, element %d of %d", which, how, i, n);    \
        }                                                                                   \
    }

static int whole(MPI_Op op) { return op == MPI_BXOR || op == MPI_LAND; }
REDUCTION(int, MPI_INT, 1)
REDUCTION(double, MPI_DOUBLE, !whole(op))
REDUCTION(short, MPI_SHORT, 1)
REDUCTION(float, MPI_FLOAT, !whole(op))

static void reductions(int root)
{
    MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BXOR, MPI_LAND};
    for (int which = 0; which < REDUCTIONS; which++) {
        for (int o = 0; o < 5; o++) {
            int in_place = (o + root) % 2;
            reduction_int(which, ops[o], root, in_place);
            if ((o + root) % 3 == 0) reduction_double(which, ops[o], root, in_place);
            if ((o + root) % 3 == 1) reduction_short(which, ops[o], root, in_place);
            if ((o + root) % 3 == 2) reduction_float(which, ops[o], root, in_place);
        }
    }
}

/* 2 x 2 matrices modulo a prime: their product does not commute. */
typedef struct { long m[4]; } Matrix;
static long calls;

static Matrix times(Matrix a, Matrix b)
{
    Matrix c;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            c.m[2 * i + j] = (a.m[2 * i] * b.m[j] + a.m[2 * i + 1] * b.m[2 + j]) % 9973;
    return c;
}

static void multiply(void *in, void *inout, int *len, MPI_Datatype *type)
{
    Matrix *a = in, *b = inout;
    (void)type;
    calls++;
    for (int i = 0; i < *len; i++) b[i] = times(a[i], b[i]);
}

static Matrix matrix(int r, int i) { return (Matrix){{r + 1, i % 7 + 2, 1, r + i % 5}}; }

static void ordered(int root)
{
    enum { N = 700 };
    static Matrix in[N], out[N];
    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_contiguous(4, MPI_LONG, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(multiply, 0, &op);
    for (int which = 0; which < REDUCTIONS; which++) {
        for (int i = 0; i < N; i++) in[i] = matrix(rank, i);
        if (which == REDUCE) RUN(Reduce, reduce, in, out, N, type, op, root);
        else if (which == ALLREDUCE) RUN(Allreduce, allreduce, in, out, N, type, op);
        else if (which == SCAN) RUN(Scan, scan, in, out, N, type, op);
        else RUN(Exscan, exscan, in, out, N, type, op);
        int last = which == SCAN ? rank : which == EXSCAN ? rank - 1 : size - 1;
        if (last < 0 || (which == REDUCE && rank != root)) continue;
        for (int i = 0; i < N; i++) {
            Matrix all = matrix(0, i);
            for (int r = 1; r <= last; r++) all = times(all, matrix(r, i));
            CHECK(!memcmp(&all, &out[i], sizeof all), "reduction %d, form %d, %d", which, how, i);
        }
    }
    CHECK(size == 1 || rank == 0 || calls > 0);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

/* Blocks of one length. */
static void blocks(int root, int n)
{
    int *in = malloc(sizeof(int) * size * n + 4), *out = malloc(sizeof(int) * size * n + 4);
    for (int place = 0; place < (how == PERSISTENT ? 1 : 2); place++) {
        int here = place && rank == root;
        for (int i = 0; i < n; i++) in[i] = element(rank, i);
        for (int i = 0; i < n * size; i++) out[i] = -1;
        if (here) memcpy(out + root * n, in, sizeof(int) * n);
        RUN(Gather, gather, here ? MPI_IN_PLACE : in, n, MPI_INT, out, n, MPI_INT, root);
        if (rank == root)
            for (int r = 0; r < size; r++) check_ints(out + r * n, n, r, 0, "gather");

        if (rank == root)
            for (int i = 0; i < n * size; i++) in[i] = element(i / (n ? n : 1), i % (n ? n : 1));
        for (int i = 0; i < n; i++) out[i] = -1;
        RUN(Scatter, scatter, in, n, MPI_INT, here ? MPI_IN_PLACE : (void *)out, n, MPI_INT, root);
        check_ints(here ? in + root * n : out, n, rank, 0, "scatter");

        for (int i = 0; i < n; i++) in[i] = element(rank, i);
        for (int i = 0; i < n * size; i++) out[i] = -1;
        if (place) memcpy(out + rank * n, in, sizeof(int) * n);
        RUN(Allgather, allgather, place ? MPI_IN_PLACE : in, n, MPI_INT, out, n, MPI_INT);
        for (int r = 0; r < size; r++) check_ints(out + r * n, n, r, 0, "allgather");

        for (int r = 0; r < size; r++)
            for (int i = 0; i < n; i++) in[r * n + i] = element(rank, i + 5 * r);
        if (place) memcpy(out, in, sizeof(int) * n * size);
        else memset(out, 0xff, sizeof(int) * n * size);
        RUN(Alltoall, alltoall, place ? MPI_IN_PLACE : in, n, MPI_INT, out, n, MPI_INT);
        for (int r = 0; r < size; r++) check_ints(out + r * n, n, r, 5 * rank, "alltoall");
    }
    free(in), free(out);
}

/* Blocks of different lengths, some zero, with gaps between them. */
static void vectors(int root, int scale)
{
    int counts[size], places[size], all = 0, mine = rank % 3 * scale, received[size], to[size], from[size];
    for (int r = 0; r < size; r++) counts[r] = r % 3 * scale, places[r] = all, all += counts[r] + 2;
    size_t room = sizeof(int) * (size * (2 * scale + 2) + 1);
    int *in = malloc(room), *out = malloc(room);
    for (int i = 0; i < mine; i++) in[i] = element(rank, i);
    for (int i = 0; i < all; i++) out[i] = -7;
    RUN(Gatherv, gatherv, in, mine, MPI_INT, out, counts, places, MPI_INT, root);
    for (int r = 0; r < size && rank == root; r++) {
        check_ints(out + places[r], counts[r], r, 0, "gatherv");
        CHECK(out[places[r] + counts[r]] == -7, "gatherv wrote into a gap");
    }
    for (int i = 0; i < all; i++) out[i] = -7;
    RUN(Allgatherv, allgatherv, in, mine, MPI_INT, out, counts, places, MPI_INT);
    for (int r = 0; r < size; r++) {
        check_ints(out + places[r], counts[r], r, 0, "allgatherv");
        CHECK(out[places[r] + counts[r]] == -7, "allgatherv wrote into a gap");
    }
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++) in[places[r] + i] = element(root, i + r);
    for (int i = 0; i <= mine; i++) out[i] = -7;
    RUN(Scatterv, scatterv, in, counts, places, MPI_INT, out, mine, MPI_INT, root);
    check_ints(out, mine, root, rank, "scatterv");
    CHECK(out[mine] == -7);
    /* Rank a sends (a + b) % 3 * scale elements to rank b. */
    int at = 0;
    for (int r = 0; r < size; r++) counts[r] = received[r] = (rank + r) % 3 * scale;
    for (int r = 0; r < size; r++) to[r] = from[r] = at, at += counts[r] + 1;
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++) in[to[r] + i] = element(rank, i + 3 * r);
    for (int i = 0; i < at; i++) out[i] = -7;
    RUN(Alltoallv, alltoallv, in, counts, to, MPI_INT, out, received, from, MPI_INT);
    for (int r = 0; r < size; r++) {
        check_ints(out + from[r], received[r], r, 3 * rank, "alltoallv");
        CHECK(out[from[r] + received[r]] == -7, "alltoallv wrote into a gap");
    }
    free(in), free(out);
}

/* Several at once on one communicator, ended in another order than they were started in. */
static void at_once(void)
{
    enum { K = 12, N = 3000 };
    static int data[K][N], sums[K][N];
    int gathered[K][size];
    MPI_Request requests[3 * K + 1];
    int n = 0;
    MPI_Ibarrier(comm, &requests[n++]);
    for (int k = 0; k < K; k++) {
        for (int i = 0; i < N; i++) data[k][i] = element(rank, i + k);
        MPI_Iallreduce(data[k], sums[k], N, MPI_INT, MPI_SUM, comm, &requests[n++]);
        MPI_Iallgather(&data[k][0], 1, MPI_INT, gathered[k], 1, MPI_INT, comm, &requests[n++]);
        MPI_Ibcast(k % size == rank ? &data[k][1] : &data[k][2], 1, MPI_INT, k % size, comm,
                   &requests[n++]);
        if (k == K / 2) { /* blocking ones and messages pass between them */
            int one = 1, total = 0, right = (rank + 1) % size, left = (rank + size - 1) % size;
            MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, comm);
            CHECK(total == size);
            MPI_Sendrecv(&rank, 1, MPI_INT, right, 0, &total, 1, MPI_INT, left, 0, comm,
                         MPI_STATUS_IGNORE);
            CHECK(total == left);
        }
    }
    for (int i = n - 1; i >= 0; i -= 2) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < K; k++) {
        for (int r = 0; r < size; r++) CHECK(gathered[k][r] == element(r, k));
        for (int i = 3; i < N; i++) {
            int sum = 0;
            for (int r = 0; r < size; r++) sum += element(r, i + k);
            CHECK(sums[k][i] == sum, "sum %d, element %d: %d, not %d", k, i, sums[k][i], sum);
        }
        if (k % size != rank) CHECK(data[k][2] == element(k % size, 1 + k));
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int roots = argc > 1 ? atoi(argv[1]) : size;
    CHECK(roots > 0 && roots <= size, "%d roots", roots);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (how = 0; how < HOWS; how++) {
        for (int root = size - roots; root < size; root++) {
            barrier();
            bcast(root);
            reductions(root);
            ordered(root);
            for (int n = 0; n < 4; n++) blocks(root, (int[]){0, 1, 7, 3000}[n]);
            vectors(root, 1);
            vectors(root, 2500);
        }
    }
    at_once();
    MPI_Comm_free(&comm);
    return end();
}
