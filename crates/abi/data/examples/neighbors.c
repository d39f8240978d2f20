// For MPI_Dist_graph_create_adjacent, MPI_Neighbor_allgather.
int left = (rank + size - 1) % size, right = (rank + 1) % size, in;
MPI_Comm ring;
MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right,
                               MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
MPI_Neighbor_allgather(&rank, 1, MPI_INT, &in, 1, MPI_INT, ring);
printf("rank %d received %d\n", rank, in);
MPI_Comm_free(&ring);
// prints: rank 0 received 1
// prints: rank 1 received 0
