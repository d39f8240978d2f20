// For MPI_Waitany.
int in[2], index;
MPI_Request requests[2], send;
for (int i = 0; i < 2; i++)
    MPI_Irecv(&in[i], 1, MPI_INT, i, 0, MPI_COMM_WORLD, &requests[i]);
for (int i = 0; i < 2; i++) {
    MPI_Isend(&rank, 1, MPI_INT, i, 0, MPI_COMM_WORLD, &send);
    MPI_Request_free(&send); // rank does not change
}
for (int i = 0; i < 2; i++) {
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE); // whichever comes first
    printf("rank %d received %d\n", rank, in[index]);
}
// prints: rank 0 received 0
// prints: rank 0 received 1
// prints: rank 1 received 0
// prints: rank 1 received 1
