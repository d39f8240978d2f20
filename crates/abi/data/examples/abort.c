// For MPI_Abort.
double *array = malloc(1000 * sizeof *array);
if (array == NULL) {
    fprintf(stderr, "rank %d has no memory\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 1); // ends all ranks
}
free(array);
