// For MPI_Win_create, MPI_Win_fence, MPI_Win_free, MPI_Put.
int memory = -1, right = (rank + 1) % size;
MPI_Win win;
MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD,
               &win);
MPI_Win_fence(0, win);
MPI_Put(&rank, 1, MPI_INT, right, 0, 1, MPI_INT, win);
// Until the next fence, rank must not change and memory must not be read.
MPI_Win_fence(0, win);
printf("rank %d has %d\n", rank, memory);
MPI_Win_free(&win);
// prints: rank 0 has 1
// prints: rank 1 has 0
