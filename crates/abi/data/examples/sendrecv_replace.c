// For MPI_Sendrecv_replace.
int token = 10 + rank, right = (rank + 1) % size, left = (rank + size - 1) % size;
MPI_Sendrecv_replace(&token, 1, MPI_INT, right, 0, left, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
printf("rank %d has token %d\n", rank, token);
// prints: rank 0 has token 11
// prints: rank 1 has token 10
