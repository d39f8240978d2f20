// For MPI_Dims_create, MPI_Cart_create, MPI_Cart_shift, MPI_Cart_coords.
int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], up, down;
MPI_Comm grid;
MPI_Dims_create(size, 2, dims);
MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
MPI_Cart_coords(grid, rank, 2, coords);
MPI_Cart_shift(grid, 0, 1, &up, &down); // up: receive from; down: send to
printf("rank %d at (%d, %d) of %d x %d: %d, %d\n", rank, coords[0], coords[1],
       dims[0], dims[1], up, down);
MPI_Comm_free(&grid);
// prints: rank 0 at (0, 0) of 2 x 1: 1, 1
// prints: rank 1 at (1, 0) of 2 x 1: 0, 0
