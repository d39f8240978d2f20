// For MPI_File_write_at_all, MPI_File_read_at_all.
MPI_File file;
int out[2] = {rank, rank + 10}, in[2];
MPI_Offset at = rank * sizeof out; // each rank has a block of its own
MPI_File_open(MPI_COMM_WORLD, "blocks.data",
              MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
              MPI_INFO_NULL, &file);
MPI_File_write_at_all(file, at, out, 2, MPI_INT, MPI_STATUS_IGNORE);
MPI_File_read_at_all(file, at, in, 2, MPI_INT, MPI_STATUS_IGNORE);
MPI_File_close(&file);
printf("rank %d: %d %d\n", rank, in[0], in[1]);
// prints: rank 0: 0 10
// prints: rank 1: 1 11
