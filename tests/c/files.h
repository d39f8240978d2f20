/* What the programs about files share: a file of their own, and checks of what it holds. */
#ifndef FILES_H
#define FILES_H
#include "check.h"
#include <unistd.h>

static char path[256];

/* The same name on all ranks, of a file that is not there. */
static inline void name_file(const char *what)
{
    int number = (int)getpid();
    const char *folder = getenv("TMPDIR");
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s/weft-%s-%d", folder ? folder : "/tmp", what, number);
    if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

static inline MPI_File open_file(int amode)
{
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    return file;
}

static inline void close_file(MPI_File *file)
{
    CHECK(MPI_File_close(file) == MPI_SUCCESS && *file == MPI_FILE_NULL);
}

/* What was written is there for all. */
static inline void all_written(MPI_File file)
{
    CHECK(MPI_File_sync(file) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_sync(file) == MPI_SUCCESS);
}

static inline void has_count(MPI_Status *status, MPI_Datatype type, int expected)
{
    int count;
    MPI_Get_count(status, type, &count);
    CHECK(count == expected, "count %d, expected %d", count, expected);
}
#endif
