// Loops that look without waiting end: until a time, until a message has come, and while no message comes.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, value = 5, flag = 0, looks = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        double start = MPI_Wtime();
        while (MPI_Wtime() - start < 1e-2)
            ;
        MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
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
        printf("correct\n");
    }
    MPI_Finalize();
    return 0;
}
