// For MPI_Type_create_struct, MPI_Type_create_resized.
struct particle { double mass; int charge; } some[2] = {{1.5, -1}, {2.5, 1}};
int lengths[2] = {1, 1};
MPI_Aint places[2] = {offsetof(struct particle, mass), offsetof(struct particle, charge)};
MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT}, fields, particle;
MPI_Type_create_struct(2, lengths, places, types, &fields);
// With the padding at the end, so that arrays of it are right.
MPI_Type_create_resized(fields, 0, sizeof(struct particle), &particle);
MPI_Type_commit(&particle);
MPI_Bcast(some, 2, particle, 0, MPI_COMM_WORLD);
MPI_Type_free(&fields);
MPI_Type_free(&particle);
printf("rank %d: %.1f %d\n", rank, some[1].mass, some[1].charge);
// prints: rank 0: 2.5 1
// prints: rank 1: 2.5 1
