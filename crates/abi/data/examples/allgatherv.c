// For MPI_Allgatherv.
int mine[2] = {rank, rank}, all[3];
int counts[2] = {1, 2}, displs[2] = {0, 1};
MPI_Allgatherv(mine, counts[rank], MPI_INT, all, counts, displs, MPI_INT,
               MPI_COMM_WORLD);
printf("rank %d: %d %d %d\n", rank, all[0], all[1], all[2]);
// prints: rank 0: 0 1 1
// prints: rank 1: 0 1 1
