// For MPI_Bsend, MPI_Buffer_attach, MPI_Buffer_detach.
int bytes = 10 * (sizeof(int) + MPI_BSEND_OVERHEAD), in;
void *buffer = malloc(bytes);
MPI_Buffer_attach(buffer, bytes);
MPI_Bsend(&rank, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD); // never waits
MPI_Recv(&in, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
MPI_Buffer_detach(&buffer, &bytes); // waits until all messages are sent
free(buffer);
printf("rank %d received %d\n", rank, in);
// prints: rank 0 received 1
// prints: rank 1 received 0
