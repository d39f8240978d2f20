/* Makes a number of calls of one kind to itself. Arguments: the kind, and the number. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int x = 0, y = 0, rank = 0, wrong = argc != 3;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    const char *kind = wrong ? "" : argv[1];
    int count = wrong ? 0 : atoi(argv[2]);
    if (!strcmp(kind, "rank")) {
        for (int i = 0; i < count; i++) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    } else if (!strcmp(kind, "nobody")) {
        for (int i = 0; i < count; i++) MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_SELF);
    } else if (!strcmp(kind, "sendrecv")) {
        for (int i = 0; i < count; i++)
            MPI_Sendrecv(&x, 1, MPI_INT, 0, 1, &y, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &status);
    } else if (!strcmp(kind, "allreduce")) {
        for (int i = 0; i < count; i++) MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    } else if (!strcmp(kind, "window")) {
        for (int i = 0; i < count; i++) {
            MPI_Request requests[2];
            MPI_Irecv(&y, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]);
            MPI_Isend(&x, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
    } else {
        fprintf(stderr, "usage: cost rank|nobody|sendrecv|allreduce|window COUNT\n");
        wrong = 1;
    }
    MPI_Finalize();
    return wrong;
}
