// ranks: 4
// args: 100
// says: correct
//
// A halo exchange on a ring, checked at each step, whose ranks take errors themselves: a rank that
// hears of a lost peer says so, goes on progressing until the others had the time to hear of it (a
// neighbour may need this rank's data to come to the step that fails), and then lets an error end the
// job. The tests kill a machine of it (xtask/src/test/cluster/two.rs); without an argument it runs
// until then.
#include "check.h"
#include <unistd.h>

enum { N = 3000, PATIENCE = 6 };

static double field[N], halo[2][N];

/* The first of the codes that says why. */
static int reason(int code, const MPI_Status *status, int count)
{
    for (int i = 0; code == MPI_ERR_IN_STATUS && i < count; i++) {
        int of = status[i].MPI_ERROR;
        if (of != MPI_SUCCESS && of != MPI_ERR_PENDING) return of;
    }
    return code;
}

static void lost(long step, int code, double start)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    printf("rank %d: step %ld failed after %.1f s: %s\n", rank, step, MPI_Wtime() - start, text);
    fflush(stdout);
    for (double end = MPI_Wtime() + PATIENCE; MPI_Wtime() < end; usleep(10000)) {
        int flag;
        MPI_Iprobe(rank, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(0, "a barrier with a lost peer has ended");
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    long steps = argc > 1 ? atol(argv[1]) : -1;
    int side[2] = {(rank + size - 1) % size, (rank + 1) % size};
    for (long step = 0; step != steps; step++) {
        int n = step % 3 ? 100 : N;
        double start = MPI_Wtime();
        MPI_Request request[4];
        MPI_Status status[4];
        int code = MPI_SUCCESS;
        for (int i = 0; i < n; i++) field[i] = rank * 1e4 + i + step % 1000;
        for (int s = 0; s < 4; s++) request[s] = MPI_REQUEST_NULL;
        for (int s = 0; s < 2 && !code; s++)
            code = MPI_Irecv(halo[s], n, MPI_DOUBLE, side[s], s, MPI_COMM_WORLD, &request[s]);
        for (int s = 0; s < 2 && !code; s++)
            code = MPI_Isend(field, n, MPI_DOUBLE, side[s], 1 - s, MPI_COMM_WORLD, &request[2 + s]);
        if (!code) code = MPI_Waitall(4, request, status);
        if (code) lost(step, reason(code, status, 4), start);
        for (int s = 0; s < 2; s++)
            for (int i = 0; i < n; i++) CHECK(halo[s][i] == side[s] * 1e4 + i + step % 1000);
        if (rank == 0 && step == 100) printf("running\n"), fflush(stdout);
    }
    return end();
}
