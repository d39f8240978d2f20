// For MPI_Type_contiguous, MPI_Type_commit, MPI_Type_free.
MPI_Datatype point; // three coordinates
double points[2][3] = {{1, 2, 3}, {4, 5, 6}};
MPI_Type_contiguous(3, MPI_DOUBLE, &point);
MPI_Type_commit(&point);
MPI_Bcast(points, 2, point, 0, MPI_COMM_WORLD);
MPI_Type_free(&point);
printf("rank %d: %.0f\n", rank, points[1][2]);
// prints: rank 0: 6
// prints: rank 1: 6
