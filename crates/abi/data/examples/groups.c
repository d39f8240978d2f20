// For MPI_Comm_group, MPI_Group_incl, MPI_Comm_create_group, MPI_Group_free.
MPI_Group all, last;
MPI_Comm comm;
int ranks[1] = {size - 1}, members;
MPI_Comm_group(MPI_COMM_WORLD, &all);
MPI_Group_incl(all, 1, ranks, &last);
if (rank == size - 1) { // only its members make the communicator
    MPI_Comm_create_group(MPI_COMM_WORLD, last, 0, &comm);
    MPI_Comm_size(comm, &members);
    printf("rank %d: %d member\n", rank, members);
    MPI_Comm_free(&comm);
}
MPI_Group_free(&last);
MPI_Group_free(&all);
// prints: rank 1: 1 member
