// For MPI_Info_create, MPI_Info_set, MPI_Info_get_string, MPI_Info_free.
MPI_Info info;
char value[8];
int room = sizeof value, there;
MPI_Info_create(&info);
MPI_Info_set(info, "no_locks", "true");
MPI_Info_get_string(info, "no_locks", &room, value, &there);
if (there)
    printf("rank %d: no_locks is %s\n", rank, value);
MPI_Info_free(&info); // the functions that take it copy what they need
// prints: rank 0: no_locks is true
// prints: rank 1: no_locks is true
