// For MPI_Mprobe, MPI_Mrecv.
int value;
MPI_Message message;
MPI_Request request;
MPI_Isend(&rank, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request);
// No other thread is able to receive the message once it is matched.
MPI_Mprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
MPI_Wait(&request, MPI_STATUS_IGNORE);
printf("rank %d received %d\n", rank, value);
// prints: rank 0 received 1
// prints: rank 1 received 0
