// For MPI_Iprobe.
int there = 0, value;
MPI_Status status;
MPI_Request request;
MPI_Isend(&rank, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, &request);
while (!there) // something useful may be done here
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
         MPI_STATUS_IGNORE);
MPI_Wait(&request, MPI_STATUS_IGNORE);
printf("rank %d received %d with tag %d\n", rank, value, status.MPI_TAG);
// prints: rank 0 received 1 with tag 5
// prints: rank 1 received 0 with tag 5
