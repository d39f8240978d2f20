// For MPI_Ssend, MPI_Issend.
if (rank == 0) {
    int go = 1;
    // Returns only when rank 1 has begun to receive.
    MPI_Ssend(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Issend(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
} else if (rank == 1) {
    int go;
    for (int i = 0; i < 2; i++)
        MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
