// For MPI_Reduce_scatter, MPI_Reduce_scatter_block.
int operands[3] = {1, 2, 3}, mine[2] = {0, 0}, counts[2] = {1, 2};
MPI_Reduce_scatter(operands, mine, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
printf("rank %d: %d %d\n", rank, mine[0], mine[1]);
MPI_Reduce_scatter_block(operands, mine, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
printf("rank %d, equal blocks: %d\n", rank, mine[0]);
// prints: rank 0: 2 0
// prints: rank 1: 4 6
// prints: rank 0, equal blocks: 2
// prints: rank 1, equal blocks: 4
