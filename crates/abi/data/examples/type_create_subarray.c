// For MPI_Type_create_subarray, MPI_File_set_view.
// Each rank has one row of a 2 x 3 matrix, which a file holds as a whole.
int sizes[2] = {2, 3}, part[2] = {1, 3}, starts[2] = {rank, 0}, row[3] = {rank, 7, 8};
MPI_Datatype type;
MPI_File file;
MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_C, MPI_INT, &type);
MPI_Type_commit(&type);
MPI_File_open(MPI_COMM_WORLD, "matrix.data", MPI_MODE_CREATE | MPI_MODE_WRONLY,
              MPI_INFO_NULL, &file);
MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL);
MPI_File_write_all(file, row, 3, MPI_INT, MPI_STATUS_IGNORE);
MPI_File_close(&file);
MPI_Type_free(&type);
