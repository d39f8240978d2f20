// For MPI_Allreduce.
int sums[2] = {rank, 1};
// Every rank's operands are in sums, and so is the result.
MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
printf("rank %d: %d ranks, sum %d\n", rank, sums[1], sums[0]);
// prints: rank 0: 2 ranks, sum 1
// prints: rank 1: 2 ranks, sum 1
