// For MPI_Comm_split_type, MPI_Win_allocate_shared, MPI_Win_shared_query.
MPI_Comm node;
MPI_Win win;
int place, *mine, *first, unit;
MPI_Aint bytes;
MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
MPI_Comm_rank(node, &place);
MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &mine, &win);
MPI_Win_shared_query(win, 0, &bytes, &unit, &first);
MPI_Win_fence(0, win);
*mine = 10 + place; // plain stores and loads of memory that the node shares
MPI_Win_fence(0, win);
printf("rank %d sees %d\n", rank, *first);
MPI_Win_free(&win);
MPI_Comm_free(&node);
// prints: rank 0 sees 10
// prints: rank 1 sees 10
