// For MPI_Comm_split, MPI_Comm_free.
MPI_Comm half;
int members, place;
// Even and odd ranks get a communicator each, in which the ranks are reversed.
MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
MPI_Comm_size(half, &members);
MPI_Comm_rank(half, &place);
printf("rank %d is %d of %d\n", rank, place, members);
MPI_Comm_free(&half);
// prints: rank 0 is 0 of 1
// prints: rank 1 is 0 of 1
