// For MPI_Alltoall.
int out[2] = {10 * rank, 10 * rank + 1}, in[2];
MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
printf("rank %d: %d %d\n", rank, in[0], in[1]); // a transposed matrix
// prints: rank 0: 0 10
// prints: rank 1: 1 11
