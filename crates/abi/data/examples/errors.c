// For MPI_Comm_set_errhandler, MPI_Error_string, MPI_Error_class.
char text[MPI_MAX_ERROR_STRING];
int length, kind;
MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
int code = MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD); // no such rank
if (code != MPI_SUCCESS) {
    MPI_Error_class(code, &kind);
    MPI_Error_string(code, text, &length);
    printf("rank %d: wrong rank: %d, text: %d\n", rank, kind == MPI_ERR_RANK, length > 0);
}
// prints: rank 0: wrong rank: 1, text: 1
// prints: rank 1: wrong rank: 1, text: 1
