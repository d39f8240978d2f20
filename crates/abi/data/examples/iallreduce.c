// For MPI_Iallreduce.
double mine = 1.5, sum;
MPI_Request request;
MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
// Compute something here that needs neither mine nor sum.
MPI_Wait(&request, MPI_STATUS_IGNORE);
printf("rank %d: %.1f\n", rank, sum);
// prints: rank 0: 3.0
// prints: rank 1: 3.0
