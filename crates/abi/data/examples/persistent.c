// For MPI_Send_init, MPI_Recv_init, MPI_Start, MPI_Startall, MPI_Request_free.
int out, in, sum = 0, other = 1 - rank;
MPI_Request requests[2];
MPI_Recv_init(&in, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[0]);
MPI_Send_init(&out, 1, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[1]);
for (int step = 1; step <= 3; step++) {
    out = step; // allowed: no operation is active
    MPI_Start(&requests[0]);
    MPI_Startall(1, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    sum += in;
}
MPI_Request_free(&requests[0]);
MPI_Request_free(&requests[1]);
printf("rank %d received %d in all\n", rank, sum);
// prints: rank 0 received 6 in all
// prints: rank 1 received 6 in all
