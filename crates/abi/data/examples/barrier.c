// For MPI_Barrier, MPI_Wtime.
MPI_Barrier(MPI_COMM_WORLD); // all ranks begin together
double begin = MPI_Wtime();
double sum = 0;
for (int i = 1; i <= 1000; i++)
    sum += 1.0 / i;
MPI_Barrier(MPI_COMM_WORLD); // the slowest rank has finished
double seconds = MPI_Wtime() - begin;
if (rank == 0)
    printf("sum %.1f, time measured: %d\n", sum, seconds >= 0);
// prints: sum 7.5, time measured: 1
