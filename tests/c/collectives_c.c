// ranks: 1 2 3 5
// says: correct
//
// The collective operations with counts of MPI_Count and displacements of MPI_Aint (the names that
// end in _c), blocking, nonblocking and persistent: lengths that differ, gaps that stay untouched.
#include "check.h"

#define NULLINFO MPI_INFO_NULL
enum { BLOCKING, NONBLOCKING, PERSISTENT, HOWS, MOST = 16, GAP = -7 };

static int how, round_;
static MPI_Comm comm;

/* One operation in the form that is tried. A persistent one runs twice, the second time with other
   data: `again` fills the buffers that it got. */
#define RUN(Name, name, again, ...)                                                      \
    do {                                                                                 \
        MPI_Request request = MPI_REQUEST_NULL;                                          \
        again;                                                                           \
        if (how == BLOCKING) {                                                           \
            MPI_##Name##_c(__VA_ARGS__, comm);                                           \
        } else if (how == NONBLOCKING) {                                                 \
            MPI_I##name##_c(__VA_ARGS__, comm, &request);                                \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                       \
        } else {                                                                         \
            MPI_##Name##_init_c(__VA_ARGS__, comm, NULLINFO, &request);                  \
            for (int time = 0; time < 2; time++) {                                       \
                if (time) round_++;                                                      \
                again;                                                                   \
                MPI_Start(&request);                                                     \
                MPI_Wait(&request, MPI_STATUS_IGNORE);                                   \
            }                                                                            \
            MPI_Request_free(&request);                                                  \
        }                                                                                \
        CHECK(request == MPI_REQUEST_NULL);                                              \
    } while (0)

static int in[600], out[600];
static MPI_Count sent[MOST], received[MOST];
static MPI_Aint sends[MOST], receives[MOST];

/* Element i of what rank `from` has for rank `to` in this round. */
static int value(int from, int to, int i) { return ((round_ * 8 + from) * 8 + to) * 64 + i; }

static void clear(void)
{
    for (int i = 0; i < 600; i++) in[i] = -1, out[i] = GAP;
}

/* `n` elements for all ranks, or blocks of `n` elements for each. */
static void one(int n)
{
    clear();
    for (int i = 0; i < n; i++) in[i] = value(rank, 0, i);
}

static void each(int n)
{
    clear();
    for (int to = 0; to < size; to++)
        for (int i = 0; i < n; i++) in[to * n + i] = value(rank, to, i);
}

static void uneven(void)
{
    clear();
    for (int to = 0; to < size; to++)
        for (int i = 0; i < sent[to]; i++) in[sends[to] + i] = value(rank, to, i);
}

/* The `n` elements from `at` on are what `from` had for `to`, and a gap follows. */
static void block(const char *what, int at, int n, int from, int to, int gap)
{
    for (int i = 0; i < n; i++)
        CHECK(out[at + i] == value(from, to, i), "%s, form %d: from %d, element %d: %d, not %d", what,
              how, from, i, out[at + i], value(from, to, i));
    if (gap) CHECK(out[at + n] == GAP, "%s, form %d: wrote behind what %d sent", what, how, from);
}

static void plain(int root)
{
    enum { N = 7 };
    RUN(Bcast, bcast, (one(N), memcpy(out, rank == root ? in : out, sizeof out)), out, N, MPI_INT, root);
    block("bcast", 0, N, root, 0, rank != root);
    RUN(Gather, gather, one(N), in, N, MPI_INT, out, N, MPI_INT, root);
    for (int r = 0; r < size && rank == root; r++) block("gather", r * N, N, r, 0, r == size - 1);
    RUN(Scatter, scatter, each(N), in, N, MPI_INT, out, N, MPI_INT, root);
    block("scatter", 0, N, root, rank, 1);
    RUN(Allgather, allgather, one(N), in, N, MPI_INT, out, N, MPI_INT);
    for (int r = 0; r < size; r++) block("allgather", r * N, N, r, 0, r == size - 1);
    RUN(Alltoall, alltoall, each(N), in, N, MPI_INT, out, N, MPI_INT);
    for (int r = 0; r < size; r++) block("alltoall", r * N, N, r, rank, r == size - 1);
}

/* Rank a has (a + 2 b) % 4 elements for rank b. */
static int length(int from, int to) { return (from + 2 * to) % 4; }

static void vectors(int root)
{
    int mine = length(rank, 0);
    for (int r = 0; r < size; r++) {
        sends[r] = 10 * (size - r), receives[r] = 12 * r + 3;
        sent[r] = length(rank, r), received[r] = length(r, 0);
    }
    RUN(Gatherv, gatherv, one(mine), in, mine, MPI_INT, out, received, receives, MPI_INT, root);
    for (int r = 0; r < size && rank == root; r++)
        block("gatherv", receives[r], received[r], r, 0, 1);
    RUN(Allgatherv, allgatherv, one(mine), in, mine, MPI_INT, out, received, receives, MPI_INT);
    for (int r = 0; r < size; r++) block("allgatherv", receives[r], received[r], r, 0, 1);
    int due = length(root, rank);
    RUN(Scatterv, scatterv, uneven(), in, sent, sends, MPI_INT, out, due, MPI_INT, root);
    block("scatterv", 0, due, root, rank, 1);
    for (int r = 0; r < size; r++) received[r] = length(r, rank);
    RUN(Alltoallv, alltoallv, uneven(), in, sent, sends, MPI_INT, out, received, receives, MPI_INT);
    for (int r = 0; r < size; r++) block("alltoallv", receives[r], received[r], r, rank, 1);
    /* In bytes, and with types that differ: a pair of integers for odd ranks. */
    MPI_Datatype pair, intypes[MOST], outtypes[MOST];
    MPI_Aint sbytes[MOST], rbytes[MOST];
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int r = 0; r < size; r++) {
        sent[r] = received[r] = 2 + 2 * ((rank + r) % 2);
        sbytes[r] = sends[r] * sizeof(int), rbytes[r] = receives[r] * sizeof(int);
    }
    MPI_Count pairs_out[MOST], ints_in[MOST];
    for (int r = 0; r < size; r++) {
        int odd = r % 2;
        intypes[r] = odd ? pair : MPI_INT, pairs_out[r] = odd ? sent[r] / 2 : sent[r];
        outtypes[r] = odd ? MPI_INT : pair, ints_in[r] = odd ? received[r] : received[r] / 2;
    }
    RUN(Alltoallw, alltoallw, uneven(), in, pairs_out, sbytes, intypes, out, ints_in, rbytes, outtypes);
    for (int r = 0; r < size; r++) block("alltoallw", receives[r], received[r], r, rank, 1);
    MPI_Type_free(&pair);
}

/* Sum over ranks 0..last of element i. */
static int sum(int last, int to, int i)
{
    int all = 0;
    for (int r = 0; r <= last; r++) all += value(r, to, i);
    return all;
}

static void summed(const char *what, int n, int last, int to, int first)
{
    for (int i = 0; i < n; i++)
        CHECK(out[i] == sum(last, to, first + i), "%s, form %d, element %d: %d", what, how, i, out[i]);
    CHECK(out[n] == GAP, "%s, form %d: wrote behind the result", what, how);
}

static void reductions(int root)
{
    enum { N = 9 };
    RUN(Reduce, reduce, one(N), in, out, N, MPI_INT, MPI_SUM, root);
    summed("reduce", rank == root ? N : 0, size - 1, 0, 0);
    RUN(Allreduce, allreduce, one(N), in, out, N, MPI_INT, MPI_SUM);
    summed("allreduce", N, size - 1, 0, 0);
    RUN(Scan, scan, one(N), in, out, N, MPI_INT, MPI_SUM);
    summed("scan", N, rank, 0, 0);
    RUN(Exscan, exscan, one(N), in, out, N, MPI_INT, MPI_SUM);
    if (rank > 0) summed("exscan", N, rank - 1, 0, 0);
    RUN(Reduce_scatter_block, reduce_scatter_block, each(N), in, out, N, MPI_INT, MPI_SUM);
    summed("reduce_scatter_block", N, size - 1, rank, 0);
    int first = 0, all = 0;
    for (int r = 0; r < size; r++) {
        received[r] = (r + 1) % 3;
        if (r < rank) first += received[r];
        all += received[r];
    }
    RUN(Reduce_scatter, reduce_scatter, one(all), in, out, received, MPI_INT, MPI_SUM);
    summed("reduce_scatter", received[rank], size - 1, 0, first);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (how = 0; how < HOWS; how++)
        for (int root = 0; root < size; root++) {
            round_++;
            plain(root);
            vectors(root);
            reductions(root);
        }
    MPI_Comm_free(&comm);
    return end();
}
