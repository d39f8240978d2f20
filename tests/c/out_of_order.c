// ranks: 2
// says: correct
//
// 10^6 Isends with tag A, then one with tag B; the receiver takes B first, then all of A. It ends
// only if nothing that waits for A keeps B from arriving.
#include "check.h"

enum { A = 1, B = 2 };

static void run(int count, int blocking_receive)
{
    int *data = malloc(((size_t)count + 1) * sizeof *data);
    MPI_Request *request = malloc(((size_t)count + 1) * sizeof *request);
    if (rank == 0) {
        for (int i = 0; i <= count; i++) {
            data[i] = i;
            MPI_Isend(&data[i], 1, MPI_INT, 1, i < count ? A : B, MPI_COMM_WORLD, &request[i]);
        }
        MPI_Waitall(count + 1, request, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        MPI_Status status;
        memset(data, 0xff, ((size_t)count + 1) * sizeof *data);
        MPI_Recv(&data[count], 1, MPI_INT, 0, B, MPI_COMM_WORLD, &status);
        CHECK(data[count] == count && status.MPI_TAG == B, "%d", data[count]);
        for (int i = 0; i < count; i++) {
            if (blocking_receive)
                MPI_Recv(&data[i], 1, MPI_INT, 0, A, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else
                MPI_Irecv(&data[i], 1, MPI_INT, 0, A, MPI_COMM_WORLD, &request[i]);
        }
        if (!blocking_receive) MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; i++) CHECK(data[i] == i, "message %d holds %d", i, data[i]);
    }
    free(data), free(request);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int count = argc > 1 ? atoi(argv[1]) : 1000000;
    run(count, 1);
    run(count, 0);
    return end();
}
