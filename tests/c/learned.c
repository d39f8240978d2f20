// ranks: 1 2 3 5
// says: correct
// env: | WEFT_LEARN=0 | WEFT_VERBOSE=1 | WEFT_CMA=0
//
// Collective operations of a few lengths in a random order, again and again, so that the ranks try algorithms, agree and change
// the algorithm while some rank is late. All results are right, and sums of real numbers have the same bits in all calls.
#include "check.h"
#include <unistd.h>

enum { LENGTHS = 3, CALLS = 8000, COMMS = 2 };

static const int lengths[LENGTHS] = {100, 3000, 40000};
static MPI_Comm comms[COMMS];
static int *send, *receive, most;
static double *real, *sums, *first[LENGTHS];
static unsigned random_word = 12345;

/* The same numbers on all ranks. */
static unsigned next(unsigned below)
{
    random_word = random_word * 1103515245u + 12345u;
    return (random_word >> 8) % below;
}

static int value(int from, int to, int call, int i)
{
    return from * 1000003 + to * 10007 + call * 101 + i;
}

static void fill(int *data, int from, int to, int call, int n)
{
    for (int i = 0; i < n; i++) data[i] = value(from, to, call, i);
}

static void compare(const int *data, int from, int to, int call, int n)
{
    for (int i = 0; i < n; i++)
        CHECK(data[i] == value(from, to, call, i), "call %d, %d of %d: %d", call, i, n, data[i]);
}

static void compare_sums(int call, int n)
{
    for (int i = 0; i < n; i++) {
        int sum = 0;
        for (int r = 0; r < size; r++) sum += value(r, 0, call, i);
        CHECK(receive[i] == sum, "call %d, %d of %d: %d, not %d", call, i, n, receive[i], sum);
    }
}

/* Sums whose bits depend on the order of the operands. */
static void real_sums(MPI_Comm comm, int at)
{
    int n = lengths[at];
    for (int i = 0; i < n; i++) real[i] = 1.0 / (3 * i + 7 * rank + 1);
    MPI_Allreduce(real, sums, n, MPI_DOUBLE, MPI_SUM, comm);
    if (first[at] == NULL) {
        first[at] = malloc((size_t)n * sizeof(double));
        memcpy(first[at], sums, (size_t)n * sizeof(double));
    }
    CHECK(memcmp(first[at], sums, (size_t)n * sizeof(double)) == 0, "%d numbers", n);
}

static void blocks(MPI_Comm comm, int operation, int root, int call, int n)
{
    switch (operation) {
    case 0:
        fill(send, rank, 0, call, n);
        MPI_Gather(send, n, MPI_INT, receive, n, MPI_INT, root, comm);
        for (int r = 0; rank == root && r < size; r++) compare(receive + r * n, r, 0, call, n);
        break;
    case 1:
        for (int r = 0; rank == root && r < size; r++) fill(send + r * n, root, r, call, n);
        MPI_Scatter(send, n, MPI_INT, receive, n, MPI_INT, root, comm);
        compare(receive, root, rank, call, n);
        break;
    case 2:
        fill(receive + rank * n, rank, 0, call, n);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, receive, n, MPI_INT, comm);
        for (int r = 0; r < size; r++) compare(receive + r * n, r, 0, call, n);
        break;
    default:
        for (int r = 0; r < size; r++) fill(send + r * n, rank, r, call, n);
        MPI_Alltoall(send, n, MPI_INT, receive, n, MPI_INT, comm);
        for (int r = 0; r < size; r++) compare(receive + r * n, r, rank, call, n);
    }
}

static void one_call(int call)
{
    MPI_Comm comm = comms[next(COMMS)];
    int operation = (int)next(8), at = (int)next(LENGTHS), root = (int)next((unsigned)size), n = lengths[at];
    if (next(50) == 0 && root == rank) usleep(500);
    switch (operation) {
    case 0:
        if (rank == root) fill(receive, root, 0, call, n);
        MPI_Bcast(receive, n, MPI_INT, root, comm);
        compare(receive, root, 0, call, n);
        break;
    case 1:
        fill(send, rank, 0, call, n);
        MPI_Allreduce(send, receive, n, MPI_INT, MPI_SUM, comm);
        compare_sums(call, n);
        break;
    case 2:
        /* The root reduces in place, so that ranks call the library in different ways. */
        fill(rank == root ? receive : send, rank, 0, call, n);
        MPI_Reduce(rank == root ? MPI_IN_PLACE : send, receive, n, MPI_INT, MPI_SUM, root, comm);
        if (rank == root) compare_sums(call, n);
        break;
    case 3:
        real_sums(comm, at);
        break;
    default:
        blocks(comm, operation - 4, root, call, n > 16384 ? 100 : n);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    most = lengths[LENGTHS - 1];
    send = malloc((size_t)size * (size_t)most * sizeof(int));
    receive = malloc((size_t)size * (size_t)most * sizeof(int));
    real = malloc((size_t)most * sizeof(double)), sums = malloc((size_t)most * sizeof(double));
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    for (int call = 0; call < CALLS; call++) one_call(call);
    MPI_Comm_free(&comms[1]);
    free(send), free(receive), free(real), free(sums);
    for (int at = 0; at < LENGTHS; at++) free(first[at]);
    return end();
}
