// ranks: 4
// args: 200
// says: correct
//
// A halo exchange on a ring, checked at each step: with an argument so many steps, without one until
// it is killed. The tests kill ranks of it at random moments (xtask/src/test/jobs.rs).
#include "check.h"

enum { N = 3000 }; /* doubles: beyond the eager limit every third step */

static double field[N], halo[2][N];

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    long steps = argc > 1 ? atol(argv[1]) : -1;
    int side[2] = {(rank + size - 1) % size, (rank + 1) % size};
    if (rank == 0) printf("running\n"), fflush(stdout);
    for (long step = 0; step != steps; step++) {
        int n = step % 3 ? 100 : N;
        MPI_Request request[4];
        for (int i = 0; i < n; i++) field[i] = rank * 1e4 + i + step % 1000;
        for (int s = 0; s < 2; s++) {
            MPI_Irecv(halo[s], n, MPI_DOUBLE, side[s], s, MPI_COMM_WORLD, &request[s]);
            MPI_Isend(field, n, MPI_DOUBLE, side[s], 1 - s, MPI_COMM_WORLD, &request[2 + s]);
        }
        MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
        for (int s = 0; s < 2; s++)
            for (int i = 0; i < n; i++) CHECK(halo[s][i] == side[s] * 1e4 + i + step % 1000);
        if (step % 16 == 0) {
            double most;
            MPI_Allreduce(&field[0], &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            CHECK(most == (size - 1) * 1e4 + step % 1000, "%g", most);
        }
    }
    return end();
}
