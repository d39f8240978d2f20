// For MPI_Alloc_mem, MPI_Free_mem.
double *memory;
// Memory that the library is able to reach fast from other ranks.
MPI_Alloc_mem(1000 * sizeof *memory, MPI_INFO_NULL, &memory);
memory[999] = rank;
MPI_Bcast(memory, 1000, MPI_DOUBLE, 1, MPI_COMM_WORLD);
printf("rank %d: %.0f\n", rank, memory[999]);
MPI_Free_mem(memory);
// prints: rank 0: 1
// prints: rank 1: 1
