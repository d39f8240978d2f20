// ranks: 2 5
// args: 12
// says: correct
// env: WEFT_BARRIER=RPE WEFT_ALLREDUCE=RPE | WEFT_BARRIER=RDS WEFT_ALLREDUCE=MPI-GB | WEFT_FAULT=seed=3,multicast_loss=0.1 WEFT_BARRIER=RGM WEFT_ALLREDUCE=RGM:3 WEFT_BCAST=MULTICAST WEFT_ALLGATHER=MULTICAST | WEFT_BARRIER=RDS-IMM WEFT_ALLREDUCE=RPE-IMM WEFT_ALLGATHER=RDS-IMM | WEFT_FAULT=seed=5,completion_delay=0.2,reorder=1,multicast_loss=0.1 WEFT_BARRIER=RGM-IMM WEFT_ALLREDUCE=RGM-IMM:3 WEFT_BCAST=MULTICAST WEFT_MULTICAST_REPAIR=multicast | WEFT_BARRIER=FETCH-ADD:3 WEFT_ALLGATHER=READ | WEFT_FAULT=seed=5,completion_delay=0.2,reorder=1 WEFT_BARRIER=FETCH-ADD WEFT_ALLGATHER=READ:4 WEFT_CMA=0 | WEFT_FAULT=seed=9,multicast_loss=0.1 WEFT_BARRIER=RGM-ACK WEFT_ALLREDUCE=RGM-ACK:3
//
// Kini's collectives, and whatever else the environment selects, each checked against what must come
// out: barriers by the clock that all ranks share, reductions, broadcasts and allgathers by their
// bytes; nonblocking ones under way at once; communicators that are made and freed, at once after
// their last multicast. Arguments: rounds of each, and names of collective.* counters whose sum over
// all ranks is printed (with a "+" behind it, it must not be 0).
#define _GNU_SOURCE
#include "tools.h"
#include <time.h>

enum { BATCH = 16, MOST = 64 << 10, SIZES = 8 };

static const int sizes[SIZES] = {0, 8, 1000, 2048, 4080, 8192, 20000, MOST};
static unsigned char *out, *in, *expected;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Ranks of one machine come at very different times. */
static void dawdle(int round)
{
    struct timespec t = {0, 0};
    t.tv_nsec = (rank * 7 + round * 3) % 11 == 0 ? 300000 : 0;
    if (t.tv_nsec) nanosleep(&t, NULL);
}

/* Nobody leaves a barrier before all have entered it. */
static void barriers(MPI_Comm comm, int round)
{
    double entered[BATCH], left[BATCH], latest[BATCH], first[BATCH];
    for (int i = 0; i < BATCH; i++) {
        dawdle(round + i);
        entered[i] = now();
        if (i % 4 == 3) {
            MPI_Request request;
            MPI_Ibarrier(comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Barrier(comm);
        }
        left[i] = now();
    }
    int me;
    MPI_Comm_rank(comm, &me);
    MPI_Reduce(entered, latest, BATCH, MPI_DOUBLE, MPI_MAX, 0, comm);
    MPI_Reduce(left, first, BATCH, MPI_DOUBLE, MPI_MIN, 0, comm);
    for (int i = 0; me == 0 && i < BATCH; i++)
        CHECK(latest[i] <= first[i], "barrier %d of round %d: one left %g s before the last came", i,
              round, latest[i] - first[i]);
}

static int number_of(int place, int round, int i) { return (place + 3) * (i + 1) + round * 17; }

static void reductions(MPI_Comm comm, int round)
{
    int me, n, length = sizes[round % SIZES] / (int)sizeof(int);
    int *mine = (int *)out, *sum = (int *)in;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    for (int i = 0; i < length; i++) mine[i] = number_of(me, round, i);
    int in_place = round % 3 == 2;
    if (in_place) memcpy(sum, mine, (size_t)length * sizeof *sum);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, sum, length, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < length; i++) {
        int right = n * (n - 1) / 2 * (i + 1) + n * (3 * (i + 1) + round * 17);
        CHECK(sum[i] == right, "round %d, number %d of %d: %d instead of %d", round, i, length, sum[i],
              right);
    }
}

/* Sums that depend on their order: all ranks have the same bits. */
static void same_bits(MPI_Comm comm, int round)
{
    int me, n, length = sizes[round % 6] / (int)sizeof(double);
    double *mine = (double *)out, *sum = (double *)in;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    for (int i = 0; i < length; i++) mine[i] = 1.0 / (3 + me * 7 + i) * (i % 2 ? 1e10 : -1e-5);
    MPI_Allreduce(mine, sum, length, MPI_DOUBLE, MPI_SUM, comm);
    size_t bytes = (size_t)length * sizeof *sum;
    /* By messages, and not by what is tested. */
    if (me > 0) {
        MPI_Send(sum, (int)bytes, MPI_BYTE, 0, 7, comm);
    } else {
        for (int from = 1; from < n; from++) {
            MPI_Recv(expected, (int)bytes, MPI_BYTE, from, 7, comm, MPI_STATUS_IGNORE);
            CHECK(!memcmp(expected, sum, bytes), "rank %d has other bits in round %d", from, round);
        }
    }
}

/* 2 x 2 matrices modulo a prime: their products do not commute. */
static void multiply(void *a, void *b, int *count, MPI_Datatype *type)
{
    unsigned *left = a, *right = b;
    (void)type;
    for (int k = 0; k < *count; k++, left += 4, right += 4) {
        unsigned c[4];
        for (int i = 0; i < 4; i++)
            c[i] = (left[i / 2 * 2] * right[i % 2] + left[i / 2 * 2 + 1] * right[i % 2 + 2]) % 9973;
        memcpy(right, c, sizeof c);
    }
}

static void matrix(unsigned *m, int place, int round)
{
    for (int i = 0; i < 4; i++) m[i] = (unsigned)(place * 31 + round * 5 + i * i + 1) % 9973;
}

static void products(MPI_Comm comm, int round, MPI_Datatype type, MPI_Op op)
{
    int me, n, one = 1;
    unsigned mine[4], result[4], right[4];
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    matrix(mine, me, round);
    MPI_Allreduce(mine, result, 1, type, op, comm);
    matrix(right, n - 1, round);
    for (int place = n - 2; place >= 0; place--) {
        unsigned left[4];
        matrix(left, place, round);
        multiply(left, right, &one, &type);
    }
    CHECK(!memcmp(result, right, sizeof right), "round %d", round);
}

static void pattern(unsigned char *to, int bytes, int seed)
{
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(i * 7 + seed * 13 + i / 251);
}

/* Several in a row, from different roots: nobody but the roots says anything. */
static void broadcasts(MPI_Comm comm, int round)
{
    int me, n, bytes = sizes[(round * 3) % SIZES];
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    for (int i = 0; i < BATCH; i++) {
        int root = (round + i / 6) % n;
        pattern(expected, bytes, round + i);
        if (me == root) memcpy(in, expected, (size_t)bytes);
        else memset(in, 0, (size_t)bytes);
        MPI_Bcast(in, bytes, MPI_BYTE, root, comm);
        CHECK(!memcmp(in, expected, (size_t)bytes), "broadcast %d of round %d, %d bytes", i, round,
              bytes);
        if (i % 5 == 4) bytes = 8;
    }
}

static void allgathers(MPI_Comm comm, int round)
{
    int me, n, bytes = sizes[(round + 1) % 6];
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    pattern(out, bytes, round + me);
    memset(in, 0, (size_t)(n * bytes));
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
    for (int from = 0; from < n; from++) {
        pattern(expected, bytes, round + from);
        CHECK(!memcmp(in + from * bytes, expected, (size_t)bytes), "block %d of round %d, %d bytes", from,
              round, bytes);
    }
}

/* Of each kind some at once, on one communicator, with blocking ones between. */
static void overlapping(MPI_Comm comm, int round)
{
    enum { MANY = 4 };
    MPI_Request requests[2 * MANY + 2];
    int me, n, sums[MANY], mine[MANY], told[MANY], at = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    for (int i = 0; i < MANY; i++) {
        mine[i] = me * (i + 1) + round;
        sums[i] = -1;
        told[i] = me == (i + round) % n ? 1000 * round + i : -1;
        MPI_Iallreduce(&mine[i], &sums[i], 1, MPI_INT, MPI_SUM, comm, &requests[at++]);
        MPI_Ibcast(&told[i], 1, MPI_INT, (i + round) % n, comm, &requests[at++]);
        if (i % 2) MPI_Ibarrier(comm, &requests[at++]);
    }
    if (round % 2) MPI_Barrier(comm);
    /* Ranks wait for them in different orders. */
    for (int i = 0; i < at; i++) {
        int which = (i + me) % at;
        MPI_Wait(&requests[which], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK(sums[i] == n * (n - 1) / 2 * (i + 1) + n * round, "sum %d: %d", i, sums[i]);
        CHECK(told[i] == 1000 * round + i, "broadcast %d: %d", i, told[i]);
    }
}

/* Persistent ones: started again and again, each time in another order, and freed right after their last multicast. */
static void persistent(MPI_Comm comm, int round)
{
    enum { MANY = 4 };
    MPI_Request requests[MANY];
    int me, n, mine, sum, told, root = round % 2, all[64];
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(&told, 1, MPI_INT, root, comm, MPI_INFO_NULL, &requests[1]);
    MPI_Allgather_init(&mine, 1, MPI_INT, all, 1, MPI_INT, comm, MPI_INFO_NULL, &requests[2]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[3]);
    for (int i = 0; i < BATCH; i++) {
        mine = me + i;
        told = me == root ? 100 * round + i : -1;
        for (int j = 0; j < MANY; j++) MPI_Start(&requests[(i + me + j) % MANY]);
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        CHECK(sum == n * (n - 1) / 2 + n * i, "sum %d: %d", i, sum);
        CHECK(told == 100 * round + i, "broadcast %d: %d", i, told);
        for (int from = 0; from < n; from++)
            CHECK(all[from] == from + i, "block %d of %d: %d", from, i, all[from]);
    }
    for (int j = 0; j < MANY; j++) MPI_Request_free(&requests[(me + j) % MANY]);
}

/* Communicators that end right after their last multicast, or with one under way. */
static void ends(int round)
{
    MPI_Comm copy, half;
    MPI_Request request;
    int value = rank == 0 ? round : -1, sum = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Bcast(&value, 1, MPI_INT, 0, copy);
    persistent(copy, round);
    if (round % 2) MPI_Ibarrier(copy, &request);
    MPI_Comm_free(&copy);
    if (round % 2) MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(value == round, "%d", value);
    /* Ranks in reverse order. */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    int members = (size + !(rank % 2)) / 2;
    MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, half);
    CHECK(sum == round * members, "%d", sum);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    enum { COUNTERS = 16 };
    MPI_T_pvar_session session;
    MPI_T_pvar_handle counters[COUNTERS];
    int rounds = argc > 1 ? atoi(argv[1]) : 40;
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    for (int i = 2; i < argc && i < COUNTERS; i++) {
        char name[100];
        snprintf(name, sizeof name, "weft.collective.%.60s", argv[i]);
        name[strcspn(name, "+")] = 0;
        counters[i] = counter(session, name);
    }
    begin(&argc, &argv);
    out = malloc(MOST);
    in = malloc((size_t)MOST * (size_t)(size > 1 ? size : 2));
    expected = malloc(MOST);
    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_contiguous(4, MPI_UNSIGNED, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(multiply, 0, &op);
    for (int round = 0; round < rounds; round++) {
        barriers(MPI_COMM_WORLD, round);
        reductions(MPI_COMM_WORLD, round);
        same_bits(MPI_COMM_WORLD, round);
        products(MPI_COMM_WORLD, round, type, op);
        broadcasts(MPI_COMM_WORLD, round);
        allgathers(MPI_COMM_WORLD, round);
        overlapping(MPI_COMM_WORLD, round);
        if (round % 4 == 0) persistent(MPI_COMM_WORLD, round);
        if (round % 2 == 0) ends(round / 2);
    }
    for (int i = 2; i < argc && i < COUNTERS; i++) {
        number sum = total(session, counters[i]);
        if (rank == 0) printf("counted %s %llu\n", argv[i], sum);
        CHECK(rank > 0 || !strchr(argv[i], '+') || sum > 0, "%s is 0", argv[i]);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    free(out);
    free(in);
    free(expected);
    /* The last multicast may be lost, too. */
    int last = rank == 0 ? rounds : -1;
    MPI_Bcast(&last, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(last == rounds, "%d", last);
    if (rank == 0) printf("correct\n");
    MPI_Finalize();
    return 0;
}
