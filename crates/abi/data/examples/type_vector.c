// For MPI_Type_vector.
int matrix[3][4] = {{0}}, in[3];
MPI_Datatype column;
MPI_Type_vector(3, 1, 4, MPI_INT, &column); // 3 blocks of 1, 4 apart
MPI_Type_commit(&column);
for (int row = 0; row < 3; row++)
    matrix[row][1] = row + 1;
if (rank == 0)
    MPI_Send(&matrix[0][1], 1, column, 1, 0, MPI_COMM_WORLD);
else
    MPI_Recv(in, 3, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
MPI_Type_free(&column);
if (rank == 1)
    printf("column: %d %d %d\n", in[0], in[1], in[2]);
// prints: column: 1 2 3
