// For MPI_File_open, MPI_File_write_at, MPI_File_read_at, MPI_File_close.
MPI_File file;
int out = 10 * rank, in;
MPI_File_open(MPI_COMM_WORLD, "numbers.data", MPI_MODE_CREATE | MPI_MODE_RDWR,
              MPI_INFO_NULL, &file);
MPI_File_write_at(file, rank * sizeof(int), &out, 1, MPI_INT, MPI_STATUS_IGNORE);
MPI_File_sync(file); // what all have written is to be read by others
MPI_Barrier(MPI_COMM_WORLD);
MPI_File_sync(file);
MPI_File_read_at(file, (1 - rank) * sizeof(int), &in, 1, MPI_INT, MPI_STATUS_IGNORE);
MPI_File_close(&file);
printf("rank %d read %d\n", rank, in);
// prints: rank 0 read 10
// prints: rank 1 read 0
