// For MPI_Fetch_and_op, MPI_Compare_and_swap.
int *next, one = 1, ticket, zero = 0, old;
MPI_Win win;
MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                 &next, &win);
next[0] = next[1] = 0;
MPI_Win_fence(0, win);
MPI_Win_lock_all(0, win);
MPI_Fetch_and_op(&one, &ticket, MPI_INT, 0, 0, MPI_SUM, win); // a ticket for each rank
MPI_Compare_and_swap(&one, &zero, &old, MPI_INT, 0, 1, win); // one rank finds 0
MPI_Win_unlock_all(win);
MPI_Win_free(&win);
int sums[2] = {ticket, old};
MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
if (rank == 0)
    printf("tickets add up to %d, found 1: %d\n", sums[0], sums[1]);
// prints: tickets add up to 1, found 1: 1
