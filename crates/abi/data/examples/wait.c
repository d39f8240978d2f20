// For MPI_Wait, MPI_Get_count.
char text[100];
MPI_Request request;
MPI_Status status;
int length;
if (rank == 0) {
    MPI_Irecv(text, 100, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_CHAR, &length);
    printf("%d characters from rank %d\n", length, status.MPI_SOURCE);
} else if (rank == 1) {
    MPI_Send("hello", 5, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
}
// prints: 5 characters from rank 1
