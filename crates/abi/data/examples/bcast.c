// For MPI_Bcast.
int settings[2] = {0, 0};
if (rank == 0) { // only rank 0 knows them
    settings[0] = 640;
    settings[1] = 480;
}
MPI_Bcast(settings, 2, MPI_INT, 0, MPI_COMM_WORLD);
printf("rank %d: %d x %d\n", rank, settings[0], settings[1]);
// prints: rank 0: 640 x 480
// prints: rank 1: 640 x 480
