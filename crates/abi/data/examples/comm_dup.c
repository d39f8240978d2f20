// For MPI_Comm_dup.
// A library works on a copy, so that its messages never match the caller's.
MPI_Comm mine;
int sum = 1;
MPI_Comm_dup(MPI_COMM_WORLD, &mine);
MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, mine);
MPI_Comm_free(&mine);
printf("rank %d: %d\n", rank, sum);
// prints: rank 0: 2
// prints: rank 1: 2
