// ranks: 2 3 4 8
// env: | WEFT_CACHES=far | WEFT_CMA=0 WEFT_CACHES=far
// says: correct
//
// Reductions of payloads that ranks combine in parts or where they are, to all and to each of two roots, in
// place and not, one after the other in the same memory: who is ahead writes what others may still read.
#include "check.h"

enum { MOST = 700001 };
static const int counts[] = {8191, 16385, 32768, 65536, 65543, 131072, 131079, 262144, 400000, MOST};
enum { COUNTS = sizeof counts / sizeof *counts };
static long data[MOST], sums[MOST];

static long element(int r, int i, int round) { return (long)(r + 1) * (i % 1009 + round) + i; }

static long sum(int i, int round)
{
    long ranks = size, of_ranks = ranks * (ranks + 1) / 2;
    return of_ranks * (i % 1009 + round) + ranks * i;
}

static void check(const long *found, int n, int round, const char *what)
{
    for (int i = 0; i < n; i++)
        CHECK(found[i] == sum(i, round), "%s, element %d of %d: %ld, not %ld", what, i, n, found[i], sum(i, round));
}

static void fill(long *to, int n, int round)
{
    for (int i = 0; i < n; i++) to[i] = element(rank, i, round);
}

static void reduce(int n, int round, int root, int in_place)
{
    long *own = in_place && rank == root ? sums : data;
    fill(own, n, round);
    MPI_Reduce(own == sums ? MPI_IN_PLACE : data, rank == root ? sums : NULL, n, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
    if (rank == root) check(sums, n, round, in_place ? "reduce in place" : "reduce");
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int c = 0; c < COUNTS; c++) {
        int n = counts[c];
        for (int round = 0; round < 4; round++) {
            int in_place = round % 2;
            fill(in_place ? sums : data, n, round);
            MPI_Allreduce(in_place ? MPI_IN_PLACE : data, sums, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            check(sums, n, round, in_place ? "allreduce in place" : "allreduce");
            reduce(n, round, 0, in_place);
            reduce(n, round + 7, size - 1, in_place);
        }
    }
    return end();
}
