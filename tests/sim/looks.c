// Loops that look without waiting end: until a time, until a message has come, and while no message comes. The time of many looks does
// not explode: of a program that measures its work piece by piece, and of tests in vain.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, value = 5, flag = 0, looks = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        double start = MPI_Wtime(), end = start;
        for (int i = 0; i < 2000; i++) end = MPI_Wtime();
        if (end - start > 50e-6) {
            printf("WRONG: 2000 readings of the clock take %g s\n", end - start);
            return 1;
        }
        while (MPI_Wtime() - start < 1e-2)
            ;
        MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Request request;
        value = 0;
        MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
        while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE), looks++;
        double now = MPI_Wtime();
        if (value != 5 || now < 1e-2 || now > 1.1e-2 || looks > 1000) {
            printf("WRONG: %d after %d looks, at %g s\n", value, looks, now);
            return 1;
        }
        for (int i = 0; i < 100; i++) MPI_Iprobe(0, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        now = MPI_Wtime();
        for (int i = 0; i < 2000; i++) MPI_Iprobe(0, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (MPI_Wtime() - now > 4) {
            printf("WRONG: 2000 probes in vain take %g s\n", MPI_Wtime() - now);
            return 1;
        }
        MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        printf("correct\n");
    }
    MPI_Finalize();
    return 0;
}
