// For MPI_Scatterv.
int all[3] = {1, 2, 3}, mine[2] = {0, 0};
int counts[2] = {1, 2}, displs[2] = {0, 1};
MPI_Scatterv(all, counts, displs, MPI_INT, mine, counts[rank], MPI_INT, 0,
             MPI_COMM_WORLD);
printf("rank %d: %d %d\n", rank, mine[0], mine[1]);
// prints: rank 0: 1 0
// prints: rank 1: 2 3
