// For MPI_Scatter.
int all[4] = {1, 2, 3, 4}, mine[2]; // all is read at rank 0 only
MPI_Scatter(all, 2, MPI_INT, mine, 2, MPI_INT, 0, MPI_COMM_WORLD);
printf("rank %d: %d %d\n", rank, mine[0], mine[1]);
// prints: rank 0: 1 2
// prints: rank 1: 3 4
