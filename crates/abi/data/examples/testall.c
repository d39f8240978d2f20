// For MPI_Testall.
int other = 1 - rank, in, done = 0;
MPI_Request requests[2];
MPI_Irecv(&in, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[0]);
MPI_Isend(&rank, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[1]);
while (!done)
    MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
printf("rank %d received %d\n", rank, in);
// prints: rank 0 received 1
// prints: rank 1 received 0
