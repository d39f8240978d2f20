// For MPI_Gatherv.
int mine[2] = {rank, rank}, all[3];
int counts[2] = {1, 2}, displs[2] = {0, 1}; // rank 1 sends two numbers
MPI_Gatherv(mine, counts[rank], MPI_INT, all, counts, displs, MPI_INT, 0,
            MPI_COMM_WORLD);
if (rank == 0)
    printf("%d %d %d\n", all[0], all[1], all[2]);
// prints: 0 1 1
