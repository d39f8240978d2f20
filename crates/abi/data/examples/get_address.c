// For MPI_Get_address.
// Two variables anywhere in memory as one message.
int a = rank + 1, b = rank + 2, lengths[2] = {1, 1};
MPI_Aint places[2];
MPI_Datatype pair;
MPI_Get_address(&a, &places[0]);
MPI_Get_address(&b, &places[1]);
MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &pair);
MPI_Type_commit(&pair);
MPI_Bcast(MPI_BOTTOM, 1, pair, 0, MPI_COMM_WORLD);
MPI_Type_free(&pair);
printf("rank %d: %d %d\n", rank, a, b);
// prints: rank 0: 1 2
// prints: rank 1: 1 2
