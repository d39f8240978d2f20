// For MPI_Scan, MPI_Exscan.
int mine = 5, upto, before = 0;
MPI_Scan(&mine, &upto, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
MPI_Exscan(&mine, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
// At rank 0, MPI_Exscan leaves its result as it was.
printf("rank %d has the numbers from %d to %d\n", rank, before, upto - 1);
// prints: rank 0 has the numbers from 0 to 4
// prints: rank 1 has the numbers from 5 to 9
