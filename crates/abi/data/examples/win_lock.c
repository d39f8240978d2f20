// For MPI_Win_allocate, MPI_Win_lock, MPI_Win_unlock, MPI_Accumulate.
int *counter, one = 1;
MPI_Win win;
MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &win);
*counter = 0;
MPI_Barrier(MPI_COMM_WORLD);
MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
MPI_Win_unlock(0, win); // the sum is at rank 0
MPI_Win_fence(0, win);
if (rank == 0)
    printf("counter: %d\n", *counter);
MPI_Win_free(&win);
// prints: counter: 2
