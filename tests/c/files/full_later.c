/* A file, named by the argument, of a server with room for less than the ranks write. The host of the rank that writes for the others hears
 * of it only when it hands its pages over: then MPI_File_sync, or MPI_File_close, must tell all whose data are lost. */
#include "../files.h"

#define OK(call) CHECK((call) == MPI_SUCCESS)

/* Bytes of all ranks, and of a piece. */
enum { ALL = 12 << 20, PIECE = 4096 };

/* One rank writes for all, whose pieces take turns. Returns what the write said. */
static int overfill(MPI_File *file, const void *data, int mine)
{
    MPI_Info info;
    MPI_Datatype type;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "cb_nodes", "1");
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, file));
    MPI_Info_free(&info);
    MPI_Type_vector(mine / PIECE, PIECE, PIECE * size, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    OK(MPI_File_set_view(*file, (MPI_Offset)rank * PIECE, MPI_BYTE, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
    return MPI_File_write_at_all(*file, 0, data, mine, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void is_told(int written, int later, const char *by)
{
    int code = written == MPI_SUCCESS ? later : written;
    CHECK(code != MPI_SUCCESS, "neither the write nor %s told that data are lost", by);
    CHECK(class_of(code) == MPI_ERR_NO_SPACE, "class %d by %s", class_of(code), by);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) OK(MPI_File_delete(path, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_File file;
    begin(&argc, &argv);
    CHECK(argc == 2, "usage: full_later FILE");
    snprintf(path, sizeof path, "%s", argv[1]);
    int mine = ALL / size / PIECE * PIECE;
    char *data = malloc((size_t)mine);
    memset(data, rank + 1, (size_t)mine);
    int written = overfill(&file, data, mine);
    int synced = MPI_File_sync(file);
    MPI_File_close(&file);
    is_told(written, synced, "the sync");
    written = overfill(&file, data, mine);
    is_told(written, MPI_File_close(&file), "the close");
    free(data);
    return end();
}
