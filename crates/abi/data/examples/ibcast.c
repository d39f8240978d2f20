// For MPI_Ibcast, MPI_Ibarrier.
int value = rank == 0 ? 9 : 0;
MPI_Request requests[2];
// Nonblocking collectives start in the same order on all ranks.
MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
printf("rank %d: %d\n", rank, value);
// prints: rank 0: 9
// prints: rank 1: 9
