// ranks: 1 2 3 5
// env: WEFT_ALLREDUCE=RPE WEFT_BARRIER=RGM:63 | WEFT_ALLREDUCE=RGM:63 WEFT_BARRIER=RGM:1 | WEFT_ALLREDUCE=SWING WEFT_ALLGATHER=NEIGHBORS | WEFT_ALLREDUCE=CENTRAL WEFT_BCAST=SCATTER-DOUBLING WEFT_ALLGATHER=MULTICAST
// says: correct
//
// What the algorithm that was asked for cannot do, another does: a fan-in beyond the ranks, numbers of
// ranks, lengths, and operators that do not commute.
#include "check.h"

enum { MOST = 30000 };
static long in[MOST], out[MOST], all[5 * MOST];

/* a op b = a, where they are not equal: associative, does not commute. */
static void first(void *a, void *b, int *n, MPI_Datatype *type)
{
    (void)type;
    memcpy(b, a, *n * sizeof(long));
}

int main(int argc, char **argv)
{
    static const int counts[] = {0, 1, 8, 9, 300, 8192, 8193, MOST};
    MPI_Op leftmost;
    begin(&argc, &argv);
    MPI_Op_create(first, 0, &leftmost);
    for (int round = 0; round < 3; round++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            int n = counts[c];
            for (int i = 0; i < n; i++) in[i] = 1000L * rank + i;
            MPI_Allreduce(in, out, n, MPI_LONG, leftmost, MPI_COMM_WORLD);
            for (int i = 0; i < n; i++) CHECK(out[i] == i, "leftmost %d of %d", i, n);
            MPI_Allreduce(in, out, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            for (int i = 0; i < n; i++)
                CHECK(out[i] == 1000L * size * (size - 1) / 2 + (long)size * i, "sum %d of %d", i, n);
            MPI_Allgather(in, n, MPI_LONG, all, n, MPI_LONG, MPI_COMM_WORLD);
            for (int i = 0; i < n * size; i++)
                CHECK(all[i] == 1000L * (i / n) + i % n, "gathered %d of %d", i, n);
            MPI_Bcast(in, n, MPI_LONG, size - 1, MPI_COMM_WORLD);
            for (int i = 0; i < n; i++) CHECK(in[i] == 1000L * (size - 1) + i, "sent %d of %d", i, n);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    MPI_Op_free(&leftmost);
    return end();
}
