// For MPI_Alltoallv.
// Rank 0 sends one number to itself and two to rank 1; rank 1 sends none to itself.
int out[3] = {1, 2, 3}, in[3] = {0, 0, 0};
int sendcounts[2] = {1, rank == 0 ? 2 : 0}, sdispls[2] = {0, 1};
int recvcounts[2] = {rank == 0 ? 1 : 2, rank == 0 ? 1 : 0};
int rdispls[2] = {0, recvcounts[0]};
MPI_Alltoallv(out, sendcounts, sdispls, MPI_INT, in, recvcounts, rdispls, MPI_INT,
              MPI_COMM_WORLD);
printf("rank %d: %d %d %d\n", rank, in[0], in[1], in[2]);
// prints: rank 0: 1 1 0
// prints: rank 1: 2 3 0
