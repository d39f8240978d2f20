// For MPI_Probe.
if (rank == 0) {
    MPI_Status status;
    int length;
    MPI_Probe(1, 0, MPI_COMM_WORLD, &status); // how long is the message?
    MPI_Get_count(&status, MPI_INT, &length);
    int *data = malloc(length * sizeof *data);
    MPI_Recv(data, length, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d numbers, the last is %d\n", length, data[length - 1]);
    free(data);
} else if (rank == 1) {
    int data[3] = {1, 2, 3};
    MPI_Send(data, 3, MPI_INT, 0, 0, MPI_COMM_WORLD);
}
// prints: 3 numbers, the last is 3
