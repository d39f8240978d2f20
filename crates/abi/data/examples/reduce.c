// For MPI_Reduce.
double mine = rank + 1.0, largest;
MPI_Reduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
if (rank == 0) // only the root has the result
    printf("largest: %.1f\n", largest);
// prints: largest: 2.0
