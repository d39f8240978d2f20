// For MPI_Initialized, MPI_Finalized.
int begun, ended;
MPI_Initialized(&begun);
MPI_Finalized(&ended);
if (begun && !ended)
    printf("MPI works\n");
// prints: MPI works
// prints: MPI works
