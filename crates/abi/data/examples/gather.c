// For MPI_Gather.
int mine = rank * rank, *all = NULL;
if (rank == 0)
    all = malloc(size * sizeof *all);
MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
if (rank == 0)
    printf("%d and %d\n", all[0], all[1]);
free(all);
// prints: 0 and 1
