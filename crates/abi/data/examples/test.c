// For MPI_Test.
int value = 7, done = 0, work = 0;
MPI_Request request;
if (rank == 0)
    MPI_Irecv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
else
    MPI_Isend(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
while (!done) {
    work++; // something useful
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}
printf("rank %d is done: %d\n", rank, work > 0);
// prints: rank 0 is done: 1
// prints: rank 1 is done: 1
