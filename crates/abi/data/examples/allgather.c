// For MPI_Allgather.
int mine = 10 * rank, all[2];
MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
printf("rank %d: %d %d\n", rank, all[0], all[1]);
// prints: rank 0: 0 10
// prints: rank 1: 0 10
