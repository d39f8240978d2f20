// For MPI_Sendrecv.
int right = (rank + 1) % size, left = (rank + size - 1) % size, in;
// All ranks send to the right and receive from the left at once.
MPI_Sendrecv(&rank, 1, MPI_INT, right, 0, &in, 1, MPI_INT, left, 0,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
printf("rank %d received %d\n", rank, in);
// prints: rank 0 received 1
// prints: rank 1 received 0
