// ranks: 2
// says: correct
// env: WEFT_PROGRESS=handover | WEFT_NODES=1 WEFT_FABRIC=shm+ofi WEFT_PROGRESS=handover | WEFT_NODES=1 WEFT_FABRIC=shm+ofi WEFT_PROGRESS=locked | WEFT_NODES=1 WEFT_FABRIC=shm+ofi WEFT_RENDEZVOUS=read WEFT_PROGRESS=locked | WEFT_NODES=1 WEFT_FABRIC=shm+ofi
//
// Both ranks send a long message to each other and compute, so that helper threads move the data of both directions at once.
// Afterwards each rank waits, or tests in a loop. Neither rank may wait for bytes that its own helper holds back.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 4 << 20, ROUNDS = 12 };

static volatile double sink;

static void compute(double seconds) {
    double end = MPI_Wtime() + seconds, sum = 0;
    while (MPI_Wtime() < end)
        for (int i = 1; i < 20000; i++)
            sum += 1.0 / i;
    sink = sum;
}

int main(int argc, char **argv) {
    static const int lengths[] = {70000, 300000, 1 << 20, MOST};
    int rank, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *out = malloc(MOST), *in = malloc(MOST);
    for (int round = 0; round < ROUNDS; round++) {
        int count = lengths[round % 4];
        for (int i = 0; i < count; i++)
            out[i] = (char)(i * 31 + rank + round);
        MPI_Request requests[2];
        MPI_Irecv(in, count, MPI_BYTE, 1 - rank, round, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, count, MPI_BYTE, 1 - rank, round, MPI_COMM_WORLD, &requests[1]);
        // The second time around the ranks compute for unequal times, and the third time not at all.
        compute(round < 4 ? 0.01 : round < 8 ? 0.02 * rank : 0);
        if (round & 1) {
            int over = 0;
            while (!over)
                MPI_Testall(2, requests, &over, MPI_STATUSES_IGNORE);
        } else {
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        for (int i = 0; i < count; i++)
            wrong += in[i] != (char)(i * 31 + 1 - rank + round);
    }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        puts(all == 0 ? "correct" : "wrong");
    free(out);
    free(in);
    MPI_Finalize();
    return all != 0;
}
