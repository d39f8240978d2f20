// Times of accesses to a file, in microseconds: one rank alone, two ranks of a node, one rank of each node.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1000000, RANKS_PER_NODE = 2 };

static int rank, size;
static MPI_File file;

static double timed(int takes_part, int writes, char *buffer)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), mine, slowest;
    MPI_Offset at = (MPI_Offset)rank * BYTES;
    if (takes_part && writes) MPI_File_write_at(file, at, buffer, BYTES, MPI_CHAR, MPI_STATUS_IGNORE);
    else if (takes_part) MPI_File_read_at(file, at, buffer, BYTES, MPI_CHAR, MPI_STATUS_IGNORE);
    mine = MPI_Wtime() - start;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest * 1e6;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *out = malloc(BYTES), *in = calloc(BYTES, 1);
    memset(out, 'a' + rank, BYTES);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &file);
    double alone = timed(rank == 0, 1, out), node = timed(rank < RANKS_PER_NODE, 1, out);
    double nodes = timed(rank % RANKS_PER_NODE == 0, 1, out), all = timed(1, 1, out);
    double read = timed(rank == 0, 0, in);
    if (rank == 0) printf("alone %.0f node %.0f nodes %.0f all %.0f read %.0f\n", alone, node, nodes, all, read);
    timed(1, 0, in);
    int right = !memcmp(in, out, BYTES), all_right;
    MPI_File_close(&file);
    MPI_Reduce(&right, &all_right, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0) puts(all_right ? "correct" : "wrong bytes");
    MPI_Finalize();
    return 0;
}
