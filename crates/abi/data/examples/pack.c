// For MPI_Pack, MPI_Unpack.
char packed[100];
int position = 0, n = 2;
double values[2] = {0.5, 1.5};
if (rank == 0) {
    MPI_Pack(&n, 1, MPI_INT, packed, sizeof packed, &position, MPI_COMM_WORLD);
    MPI_Pack(values, n, MPI_DOUBLE, packed, sizeof packed, &position, MPI_COMM_WORLD);
}
MPI_Bcast(packed, sizeof packed, MPI_PACKED, 0, MPI_COMM_WORLD);
position = 0;
MPI_Unpack(packed, sizeof packed, &position, &n, 1, MPI_INT, MPI_COMM_WORLD);
MPI_Unpack(packed, sizeof packed, &position, values, n, MPI_DOUBLE, MPI_COMM_WORLD);
printf("rank %d: %.1f\n", rank, values[n - 1]);
// prints: rank 0: 1.5
// prints: rank 1: 1.5
