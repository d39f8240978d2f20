// For MPI_Get, MPI_Win_lock_all, MPI_Win_unlock_all, MPI_Win_flush.
int *shown, seen;
MPI_Win win;
MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &shown, &win);
*shown = 100 + rank;
MPI_Win_fence(0, win);
MPI_Win_lock_all(0, win);
MPI_Get(&seen, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, win);
MPI_Win_flush(1 - rank, win); // now seen has the value
printf("rank %d sees %d\n", rank, seen);
MPI_Win_unlock_all(win);
MPI_Win_free(&win);
// prints: rank 0 sees 101
// prints: rank 1 sees 100
