// Tools that follow each byte see bytes from other processes as written: nothing that comes by messages, windows, collective
// operations or files counts as uninitialised.
//
// ranks: 2
// says: correct
#include "check.h"

#define W MPI_COMM_WORLD
enum { LONG = 100000 };
static const int lengths[] = {100, 5000, 40000, LONG};

/* Returns fresh memory, which tools take for uninitialised. */
static unsigned char *fresh(int n)
{
    unsigned char *memory = malloc(n);
    CHECK(memory != NULL);
    return memory;
}

/* Makes a decision by each byte. */
static void decide(const unsigned char *memory, int n, int value)
{
    for (int i = 0; i < n; i++)
        if (memory[i] != value) CHECK(0, "byte %d of %d is %d, not %d", i, n, memory[i], value);
}

static void messages(int n)
{
    unsigned char *out = fresh(n), *in = fresh(n);
    int other = 1 - rank;
    MPI_Request both[2];
    MPI_Status status;
    memset(out, rank + 1, n);
    MPI_Sendrecv(out, n, MPI_BYTE, other, 0, in, n, MPI_BYTE, other, 0, W, &status);
    decide(in, n, other + 1);
    CHECK(status.MPI_SOURCE == other);
    free(in), in = fresh(n);
    MPI_Irecv(in, n, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, W, both);
    MPI_Barrier(W);
    MPI_Isend(out, n, MPI_BYTE, other, 1, W, both + 1);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    decide(in, n, other + 1);
    free(in), in = fresh(n);
    /* One rank waits, so that both ends may copy. */
    if (rank == 0) MPI_Send(out, n, MPI_BYTE, 1, 2, W);
    else MPI_Recv(in, n, MPI_BYTE, 0, 2, W, MPI_STATUS_IGNORE), decide(in, n, 1);
    free(in), free(out);
}

static void collectives(int n)
{
    unsigned char *out = fresh(2 * n), *in = fresh(2 * n);
    memset(out, rank + 1, 2 * n);
    if (rank == 1) free(out), out = fresh(2 * n);
    MPI_Bcast(out, n, MPI_BYTE, 0, W);
    decide(out, n, 1);
    memset(out, rank + 1, 2 * n);
    MPI_Allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, W);
    decide(in, n, 1), decide(in + n, n, 2);
    free(in), in = fresh(2 * n);
    MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, W);
    decide(in, n, 1), decide(in + n, n, 2);
    free(in), in = fresh(2 * n);
    MPI_Allreduce(out, in, n, MPI_BYTE, MPI_BOR, W);
    decide(in, n, 3);
    free(in), in = fresh(2 * n);
    MPI_Gather(out, n, MPI_BYTE, in, n, MPI_BYTE, 0, W);
    if (rank == 0) decide(in, n, 1), decide(in + n, n, 2);
    free(in), in = fresh(2 * n);
    MPI_Scan(out, in, n, MPI_BYTE, MPI_BOR, W);
    decide(in, n, rank == 0 ? 1 : 3);
    free(in), free(out);
}

/* Puts, gets and accumulates. `kind` selects memory of the program, memory of MPI, or memory that is attached later. */
static void windows(int n, int kind)
{
    unsigned char *out = fresh(n), *in = fresh(n), *base = NULL;
    int other = 1 - rank;
    MPI_Aint at = 0, there = 0;
    MPI_Win win;
    memset(out, rank + 1, n);
    if (kind == 0) base = fresh(n), MPI_Win_create(base, n, 1, MPI_INFO_NULL, W, &win);
    if (kind == 1) MPI_Win_allocate(n, 1, MPI_INFO_NULL, W, &base, &win);
    if (kind == 2) {
        base = fresh(n);
        MPI_Win_create_dynamic(MPI_INFO_NULL, W, &win);
        MPI_Win_attach(win, base, n);
        MPI_Get_address(base, &at);
        MPI_Sendrecv(&at, 1, MPI_AINT, other, 0, &there, 1, MPI_AINT, other, 0, W, MPI_STATUS_IGNORE);
    }
    MPI_Win_fence(0, win);
    MPI_Put(out, n, MPI_BYTE, other, there, n, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    decide(base, n, other + 1);
    MPI_Barrier(W);
    MPI_Get(in, n, MPI_BYTE, other, there, n, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    decide(in, n, rank + 1);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, win);
    MPI_Accumulate(out, n, MPI_BYTE, other, there, n, MPI_BYTE, MPI_REPLACE, win);
    MPI_Win_unlock(other, win);
    MPI_Win_fence(0, win);
    decide(base, n, other + 1);
    if (kind == 2) MPI_Win_detach(win, base);
    MPI_Win_free(&win);
    if (kind != 1) free(base);
    free(in), free(out);
}

static void files(int n)
{
    unsigned char *out = fresh(n), *in = fresh(n);
    char name[64] = "defined-XXXXXX";
    MPI_File file;
    MPI_Request request;
    memset(out, rank + 1, n);
    if (rank == 0) snprintf(name, sizeof name, "/tmp/weft-defined-%ld", (long)MPI_Wtime());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, W);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK(MPI_File_open(W, name, mode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    MPI_File_write_at_all(file, (MPI_Offset)rank * n, out, n, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(W);
    MPI_File_read_at_all(file, (MPI_Offset)(1 - rank) * n, in, n, MPI_BYTE, MPI_STATUS_IGNORE);
    decide(in, n, 2 - rank);
    free(in), in = fresh(n);
    MPI_File_iread_at(file, (MPI_Offset)(1 - rank) * n, in, n, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    decide(in, n, 2 - rank);
    MPI_File_close(&file);
    free(in), free(out);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        messages(lengths[l]);
        collectives(lengths[l]);
        for (int kind = 0; kind < 3; kind++) windows(lengths[l], kind);
    }
    files(20000);
    return end();
}
