// ranks: 2
// env: | WEFT_CMA=0 | WEFT_FAULT=seed=7,message_delay=0.3,completion_delay=0.3,reorder=1
// says: correct
//
// The fabric completes one-sided operations in any order. A request that is over leaves its buffer to the program,
// and a get with gaps on this side holds its data, whatever else is under way to the same rank.
#include "check.h"

#define WORLD MPI_COMM_WORLD
enum { BYTES = 4096, FEW = 64, ROUNDS = 100 };

static unsigned char memory[2 * BYTES], out[BYTES], in[2 * FEW], small[FEW][8];

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Datatype gaps;
    begin(&argc, &argv);
    for (int i = 0; i < 2 * BYTES; i++) memory[i] = (unsigned char)(i % 251);
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, WORLD, &win);
    MPI_Type_vector(FEW, 1, 2, MPI_UNSIGNED_CHAR, &gaps);
    MPI_Type_commit(&gaps);
    for (int round = 1; round <= ROUNDS; round++) {
        if (rank == 1) {
            MPI_Request request[2];
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
            memset(out, round, BYTES);
            memset(in, 0, sizeof in);
            MPI_Rput(out, BYTES, MPI_BYTE, 0, 0, BYTES, MPI_BYTE, win, &request[0]);
            MPI_Rget(in, 1, gaps, 0, BYTES, FEW, MPI_UNSIGNED_CHAR, win, &request[1]);
            for (int i = 0; i < FEW; i++)
                MPI_Get(small[i], 8, MPI_BYTE, 0, BYTES + 8 * i, 8, MPI_BYTE, win);
            MPI_Wait(&request[0], MPI_STATUS_IGNORE);
            memset(out, 0xff, BYTES);
            MPI_Wait(&request[1], MPI_STATUS_IGNORE);
            for (int i = 0; i < FEW; i++) CHECK(in[2 * i] == (BYTES + i) % 251, "round %d, byte %d", round, i);
            MPI_Win_unlock(0, win);
            for (int i = 0; i < 8 * FEW; i++) CHECK(small[i / 8][i % 8] == (BYTES + i) % 251, "round %d", round);
        }
        MPI_Barrier(WORLD);
        if (rank == 0) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
            for (int i = 0; i < BYTES; i++) CHECK(memory[i] == round, "round %d, byte %d: %d", round, i, memory[i]);
            MPI_Win_unlock(0, win);
        }
        MPI_Barrier(WORLD);
    }
    MPI_Type_free(&gaps);
    MPI_Win_free(&win);
    return end();
}
