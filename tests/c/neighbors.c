// ranks: 1 2 4 6
// says: correct
//
// Neighborhood collectives (MPI 5.0, sections 8.6 to 8.8), in all forms, on all topologies: every
// block comes from where the standard says, and nothing else is touched.
#include "check.h"

#define WORLD MPI_COMM_WORLD
#define MOST 16 /* neighbours */
#define ROOM 64 /* elements a block has room for */

/* A communicator, and what this rank must find in it. */
struct topology {
    const char *name;
    MPI_Comm comm;
    int me, in, out;
    int from[MOST], to[MOST]; /* ranks or MPI_PROC_NULL */
    int block[MOST];          /* which block of its sender each received block is */
};

/* How an operation is called. */
enum { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static int form, times, round_;

#define CALL(suffix, name, ...)                                                      \
    do {                                                                             \
        MPI_Request request = MPI_REQUEST_NULL;                                      \
        if (form == BLOCKING) {                                                      \
            MPI_Neighbor_##name##suffix(__VA_ARGS__, t->comm);                       \
        } else if (form == NONBLOCKING) {                                            \
            MPI_Ineighbor_##name##suffix(__VA_ARGS__, t->comm, &request);            \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                   \
        } else {                                                                     \
            MPI_Neighbor_##name##_init##suffix(__VA_ARGS__, t->comm, MPI_INFO_NULL,  \
                                               &request);                            \
            for (times = 0; times < 3; times++) {                                    \
                fill(t);                                                             \
                MPI_Start(&request);                                                 \
                MPI_Wait(&request, MPI_STATUS_IGNORE);                               \
                CHECK(request != MPI_REQUEST_NULL);                                  \
                if (times < 2) verify(t);                                            \
            }                                                                        \
            MPI_Request_free(&request);                                              \
        }                                                                            \
        CHECK(request == MPI_REQUEST_NULL);                                          \
    } while (0)

/* Elements of the block `block` of rank `sender`, and their values. */
static int length(int sender, int block) { return (sender * 3 + block * 5) % 4; }
static int value(int sender, int block, int i)
{
    return ((round_ * 8 + sender) * MOST + block) * ROOM + i;
}

static int out[MOST][ROOM], into[MOST][ROOM];
/* How the blocks lie there: elements of block b are `stride` apart, from `start` on. */
static int sent[MOST], received[MOST], sent_stride[MOST], stride[MOST], start[MOST];
static int gathering;

static void fill(struct topology *t)
{
    round_++;
    for (int b = 0; b < MOST; b++)
        for (int i = 0; i < ROOM; i++) out[b][i] = -2, into[b][i] = -1;
    for (int b = 0; b < t->out; b++)
        for (int i = 0; i < sent[b]; i++) out[b][i * sent_stride[b]] = value(t->me, b, i);
}

static void verify(struct topology *t)
{
    for (int b = 0; b < MOST; b++)
        for (int i = 0; i < ROOM; i++) {
            int wanted = -1, at = i - start[b];
            if (b < t->in && t->from[b] != MPI_PROC_NULL && at >= 0 && at % stride[b] == 0 &&
                at / stride[b] < received[b])
                wanted = value(t->from[b], gathering ? 0 : t->block[b], at / stride[b]);
            CHECK(into[b][i] == wanted, "%s, form %d, %d times: block %d, element %d: %d, not %d",
                  t->name, form, times, b, i, into[b][i], wanted);
        }
}

/* Blocks of `n` elements, each at the start of its line. */
static void equal(struct topology *t, int n, int gather)
{
    gathering = gather;
    for (int b = 0; b < MOST; b++) {
        sent[b] = received[b] = n, sent_stride[b] = stride[b] = 1, start[b] = 0;
    }
    fill(t);
}

static void the_plain_ones(struct topology *t, int wide)
{
    /* Four elements of this type are a line. */
    MPI_Datatype quarter;
    MPI_Type_create_resized(MPI_INT, 0, sizeof into[0] / 4, &quarter);
    MPI_Type_commit(&quarter);
    for (int gather = 0; gather < 2; gather++) {
        equal(t, 4, gather);
        for (int b = 0; b < MOST; b++) stride[b] = ROOM / 4, sent_stride[b] = gather ? 1 : ROOM / 4;
        fill(t);
        if (gather && wide) CALL(_c, allgather, out, 4, MPI_INT, into, 4, quarter);
        if (gather && !wide) CALL(, allgather, out, 4, MPI_INT, into, 4, quarter);
        if (!gather && wide) CALL(_c, alltoall, out, 4, quarter, into, 4, quarter);
        if (!gather && !wide) CALL(, alltoall, out, 4, quarter, into, 4, quarter);
        verify(t);
    }
    MPI_Type_free(&quarter);
    /* Whole lines. */
    equal(t, ROOM, 0);
    if (wide) CALL(_c, alltoall, out, ROOM, MPI_INT, into, ROOM, MPI_INT);
    if (!wide) CALL(, alltoall, out, ROOM, MPI_INT, into, ROOM, MPI_INT);
    verify(t);
}

/* Lengths of their own, some of them 0, with room between the blocks. */
static void uneven(struct topology *t, int gather)
{
    gathering = gather;
    for (int b = 0; b < MOST; b++) sent_stride[b] = stride[b] = 1, sent[b] = received[b] = 0;
    for (int b = 0; b < t->out; b++) sent[b] = gather ? length(t->me, 0) : length(t->me, b);
    for (int b = 0; b < t->in; b++) {
        start[b] = b % 3;
        received[b] = t->from[b] == MPI_PROC_NULL ? 5
                      : length(t->from[b], gather ? 0 : t->block[b]);
    }
    fill(t);
}

static void those_with_counts(struct topology *t, int wide)
{
    int sdispls[MOST], rdispls[MOST];
    MPI_Count sends[MOST], receives[MOST];
    MPI_Aint swide[MOST], rwide[MOST];
    uneven(t, 1);
    for (int gather = 1; gather >= 0; gather--) {
        if (!gather) uneven(t, 0);
        for (int b = 0; b < MOST; b++) {
            swide[b] = sdispls[b] = b * ROOM, rwide[b] = rdispls[b] = b * ROOM + start[b];
            sends[b] = sent[b], receives[b] = received[b];
        }
        int mine = length(t->me, 0);
        if (gather && wide)
            CALL(_c, allgatherv, out, mine, MPI_INT, into, receives, rwide, MPI_INT);
        if (gather && !wide)
            CALL(, allgatherv, out, mine, MPI_INT, into, received, rdispls, MPI_INT);
        if (!gather && wide)
            CALL(_c, alltoallv, out, sends, swide, MPI_INT, into, receives, rwide, MPI_INT);
        if (!gather && !wide)
            CALL(, alltoallv, out, sent, sdispls, MPI_INT, into, received, rdispls, MPI_INT);
        verify(t);
    }
}

/* Every second block in a vector, in elements of other sizes on the two sides. */
static void those_with_types(struct topology *t, int wide, int bottom)
{
    MPI_Datatype apart, pairs, stypes[MOST], rtypes[MOST];
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &apart);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &pairs);
    MPI_Type_commit(&apart);
    MPI_Type_commit(&pairs);
    MPI_Count sends[MOST], receives[MOST];
    MPI_Aint sdispls[MOST], rdispls[MOST];
    uneven(t, 0);
    for (int b = 0; b < MOST; b++) {
        sent_stride[b] = b % 2 ? 3 : 1, stride[b] = b % 3 ? 2 : 1;
        stypes[b] = b % 2 ? apart : MPI_INT, rtypes[b] = b % 3 ? pairs : MPI_INT;
        sends[b] = sent[b], receives[b] = received[b];
        sdispls[b] = (char *)out[b] - (char *)out;
        rdispls[b] = (char *)(into[b] + start[b]) - (char *)into;
        if (bottom) {
            MPI_Get_address(out[b], sdispls + b);
            MPI_Get_address(into[b] + start[b], rdispls + b);
        }
    }
    fill(t);
    void *from = bottom ? MPI_BOTTOM : out, *to = bottom ? MPI_BOTTOM : into;
    if (wide) CALL(_c, alltoallw, from, sends, sdispls, stypes, to, receives, rdispls, rtypes);
    if (!wide) CALL(, alltoallw, from, sent, sdispls, stypes, to, received, rdispls, rtypes);
    verify(t);
    MPI_Type_free(&apart);
    MPI_Type_free(&pairs);
}

/* Absolute addresses in the types themselves. */
static void absolute_types(struct topology *t)
{
    MPI_Datatype stypes[MOST], rtypes[MOST];
    MPI_Aint none[MOST] = {0}, at;
    int ones[MOST], length[] = {6};
    equal(t, 6, 0);
    for (int b = 0; b < MOST; b++) {
        ones[b] = 1;
        MPI_Get_address(out[b], &at);
        MPI_Type_create_hindexed(1, length, &at, MPI_INT, stypes + b);
        MPI_Get_address(into[b], &at);
        MPI_Type_create_hindexed(1, length, &at, MPI_INT, rtypes + b);
        MPI_Type_commit(stypes + b);
        MPI_Type_commit(rtypes + b);
    }
    CALL(, alltoallw, MPI_BOTTOM, ones, none, stypes, MPI_BOTTOM, ones, none, rtypes);
    verify(t);
    for (int b = 0; b < MOST; b++) MPI_Type_free(stypes + b), MPI_Type_free(rtypes + b);
}

/* Blocks that are not sent at once; to itself, too. Operations of both kinds under way together. */
static void large_blocks(struct topology *t)
{
    int n = 50000;
    int *from = malloc(sizeof(int) * n * (t->out + 1)), *to = malloc(sizeof(int) * n * (t->in + 1));
    int *all = malloc(sizeof(int) * n * (t->in + 1));
    for (int b = 0; b < t->out; b++)
        for (int i = 0; i < n; i++) from[b * n + i] = (t->me * MOST + b) * n + i;
    for (int i = 0; i < n * t->in; i++) to[i] = all[i] = -1;
    MPI_Request two[2];
    MPI_Ineighbor_alltoall(from, n, MPI_INT, to, n, MPI_INT, t->comm, two);
    MPI_Ineighbor_allgather(from, n, MPI_INT, all, n, MPI_INT, t->comm, two + 1);
    MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
    for (int b = 0; b < t->in; b++)
        for (int i = 0; i < n; i++) {
            int none = t->from[b] == MPI_PROC_NULL;
            int block = none ? -1 : (t->from[b] * MOST + t->block[b]) * n + i;
            int first = none ? -1 : t->from[b] * MOST * n + i;
            CHECK(to[b * n + i] == block && all[b * n + i] == first, "%s: block %d, element %d",
                  t->name, b, i);
        }
    free(from), free(to), free(all);
}

static void every_operation(struct topology *t)
{
    round_ = 0;
    for (form = 0; form < FORMS; form++)
        for (int wide = 0; wide < 2; wide++) {
            times = 0;
            the_plain_ones(t, wide);
            those_with_counts(t, wide);
            those_with_types(t, wide, 0);
            those_with_types(t, wide, 1);
            absolute_types(t);
        }
    large_blocks(t);
    MPI_Comm_free(&t->comm);
}

/* Fills `block` for graphs: the k-th edge from a rank is the k-th that it has to this one. */
static void match_edges(struct topology *t)
{
    int all[16][MOST];
    for (int b = t->out; b < MOST; b++) t->to[b] = MPI_PROC_NULL;
    MPI_Allgather(t->to, MOST, MPI_INT, all, MOST, MPI_INT, t->comm);
    for (int b = 0; b < t->in; b++) {
        int before = 0, block = 0;
        for (int c = 0; c < b; c++) before += t->from[c] == t->from[b];
        for (;; block++)
            if (all[t->from[b]][block] == t->me && before-- == 0) break;
        t->block[b] = block;
    }
}

static void grid(const char *name, int ndims, const int *dims, const int *periods)
{
    struct topology t = {.name = name, .in = 2 * ndims, .out = 2 * ndims};
    MPI_Cart_create(WORLD, ndims, dims, periods, 0, &t.comm);
    if (t.comm == MPI_COMM_NULL) return;
    MPI_Comm_rank(t.comm, &t.me);
    for (int d = 0; d < ndims; d++) MPI_Cart_shift(t.comm, d, 1, &t.from[2 * d], &t.from[2 * d + 1]);
    for (int b = 0; b < t.in; b++) t.to[b] = t.from[b], t.block[b] = b ^ 1;
    every_operation(&t);
}

/* Two edges to each side and one to itself. */
static void graph(void)
{
    struct topology t = {.name = "graph", .me = rank, .in = 5, .out = 5};
    int index[16], edges[16][5];
    for (int i = 0; i < size; i++) {
        int left = (i + size - 1) % size, right = (i + 1) % size, its[] = {right, left, i, right, left};
        index[i] = 5 * (i + 1);
        memcpy(edges[i], its, sizeof its);
    }
    memcpy(t.from, edges[rank], sizeof edges[rank]);
    memcpy(t.to, edges[rank], sizeof edges[rank]);
    MPI_Graph_create(WORLD, size, index, edges[0], 0, &t.comm);
    match_edges(&t);
    every_operation(&t);
}

/* Everybody sends to rank 0 twice and to its right; rank 0 sends to the last one three times more. */
static void distributed_graph(int adjacent)
{
    struct topology t = {.name = adjacent ? "adjacent" : "distributed", .me = rank};
    int last = size - 1, left = (rank + last) % size;
    t.to[t.out++] = 0, t.to[t.out++] = (rank + 1) % size, t.to[t.out++] = 0;
    if (rank == 0) t.to[t.out++] = last, t.to[t.out++] = last, t.to[t.out++] = last;
    if (adjacent) {
        t.from[t.in++] = left;
        for (int i = last; rank == 0 && i >= 0; i--) t.from[t.in++] = i, t.from[t.in++] = i;
        for (int i = 0; rank == last && i < 3; i++) t.from[t.in++] = 0;
        MPI_Dist_graph_create_adjacent(WORLD, t.in, t.from, MPI_UNWEIGHTED, t.out, t.to,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &t.comm);
    } else {
        MPI_Dist_graph_create(WORLD, 1, &rank, &t.out, t.to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                              &t.comm);
        int weighted;
        MPI_Dist_graph_neighbors_count(t.comm, &t.in, &t.out, &weighted);
        MPI_Dist_graph_neighbors(t.comm, t.in, t.from, MPI_UNWEIGHTED, t.out, t.to, MPI_UNWEIGHTED);
    }
    match_edges(&t);
    every_operation(&t);
}

/* Rank 0 has no sources and the others no destinations: they need no such buffer. */
static void without_neighbours(void)
{
    int others[16], zero = 0, none[1] = {0}, got = -1, send = 7;
    for (int i = 1; i < size; i++) others[i - 1] = i;
    MPI_Comm star;
    MPI_Dist_graph_create_adjacent(WORLD, rank > 0, &zero, MPI_UNWEIGHTED, rank ? 0 : size - 1,
                                   others, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &star);
    void *from = rank ? NULL : &send, *to = rank ? &got : NULL;
    MPI_Neighbor_allgather(from, 1, MPI_INT, to, 1, MPI_INT, star);
    CHECK(got == (rank ? 7 : -1));
    /* No arrays, either. */
    MPI_Datatype ints[] = {MPI_INT};
    int ones[16], one[] = {1}, at[16] = {0};
    MPI_Aint wide[16] = {0};
    MPI_Datatype types[16];
    for (int i = 0; i < 16; i++) ones[i] = 1, types[i] = MPI_INT;
    send = 8;
    if (rank)
        MPI_Neighbor_alltoallv(NULL, NULL, NULL, MPI_INT, to, one, none, MPI_INT, star);
    else
        MPI_Neighbor_alltoallv(from, ones, at, MPI_INT, NULL, NULL, NULL, MPI_INT, star);
    CHECK(got == (rank ? 8 : -1));
    send = 9;
    if (rank)
        MPI_Neighbor_alltoallw(NULL, NULL, NULL, NULL, to, one, wide, ints, star);
    else
        MPI_Neighbor_alltoallw(from, ones, wide, types, NULL, NULL, NULL, NULL, star);
    CHECK(got == (rank ? 9 : -1));
    MPI_Comm_free(&star);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    grid("ring", 1, (int[]){size}, (int[]){1});
    grid("line", 1, (int[]){size}, (int[]){0});
    grid("no dimensions", 0, NULL, NULL);
    grid("torus, flat", 3, (int[]){1, size, 1}, (int[]){1, 1, 0});
    if (size % 2 == 0) {
        grid("torus", 2, (int[]){size / 2, 2}, (int[]){1, 1});
        grid("tube", 2, (int[]){2, size / 2}, (int[]){0, 1});
    }
    graph();
    distributed_graph(1);
    distributed_graph(0);
    without_neighbours();
    return end();
}
