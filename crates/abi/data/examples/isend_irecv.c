// For MPI_Isend, MPI_Irecv, MPI_Waitall.
int other = 1 - rank, out = rank, in;
MPI_Request requests[2];
MPI_Irecv(&in, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[0]);
MPI_Isend(&out, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[1]);
// Until MPI_Waitall returns: do not touch in, do not change out.
MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
printf("rank %d received %d\n", rank, in);
// prints: rank 0 received 1
// prints: rank 1 received 0
