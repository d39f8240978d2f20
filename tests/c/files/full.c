/* A file system with little room, in the folder that the argument names, gets more than fits: MPI_ERR_NO_SPACE, or MPI_ERR_QUOTA if
 * the second argument is "quota". Each rank hears of its own data: who is told that they are written finds them, and who is told
 * that they are not has some that are not there. With room again, all goes on. */
#include "../files.h"
#include <fcntl.h>

#define OK(call) CHECK((call) == MPI_SUCCESS)

/* Bytes of all ranks: more than fits, and a rank's part. */
enum { ALL = 12 << 20, PIECE = 4096 };

static size_t mine;
static unsigned char *data, *found;
static int expected = MPI_ERR_NO_SPACE;

static void view(MPI_File file, int strided)
{
    MPI_Datatype type;
    if (strided) MPI_Type_vector((int)(mine / PIECE), PIECE, PIECE * size, MPI_BYTE, &type);
    else MPI_Type_contiguous((int)mine, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Offset at = strided ? (MPI_Offset)rank * PIECE : (MPI_Offset)(rank * mine);
    OK(MPI_File_set_view(file, at, MPI_BYTE, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
}

/* How many of this rank's bytes the file has, by the system's own calls. */
static size_t there(int strided)
{
    int fd = open(path, O_RDONLY);
    size_t some = 0;
    for (size_t at = 0; at < mine; at += PIECE) {
        off_t place = strided ? (off_t)(at / PIECE * size + rank) * PIECE : (off_t)(rank * mine + at);
        memset(found, 0, PIECE);
        ssize_t came = pread(fd, found, PIECE, place);
        for (ssize_t i = 0; i < came; i++) some += found[i] == data[at + (size_t)i];
    }
    close(fd);
    return some;
}

static int count(int flag)
{
    int all;
    MPI_Allreduce(&flag, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void overfill(const char *buffering, int strided, int together)
{
    MPI_File file;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", buffering);
    MPI_Info_set(info, "cb_buffer_size", "262144");
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    view(file, strided);
    int code = together ? MPI_File_write_at_all(file, 0, data, (int)mine, MPI_BYTE, MPI_STATUS_IGNORE)
                        : MPI_File_write_at(file, 0, data, (int)mine, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    size_t some = there(strided);
    if (code == MPI_SUCCESS) {
        CHECK(some == mine, "told that all is written, found %zu of %zu bytes", some, mine);
    } else {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        CHECK(class_of(code) == expected, "class %d", class_of(code));
        MPI_Error_string(code, text, &length);
        CHECK(strstr(text, path) && strstr(text, "at byte"), "%s", text);
        CHECK(some < mine, "told that bytes are missing, found all");
    }
    CHECK(count(code != MPI_SUCCESS) > 0, "nobody was told: it all fits");
    /* Aggregators go from the beginning to the end: what lies there is written. */
    if (!strcmp(buffering, "enable") && strided) CHECK(code != MPI_SUCCESS, "nobody's last pieces fit");
    if (!strcmp(buffering, "enable") && !strided && size >= 4)
        CHECK(rank > 0 || code == MPI_SUCCESS, "the first rank's data fit");
    /* With room again. */
    OK(MPI_File_set_size(file, 0));
    memset(found, rank + 1, PIECE);
    OK(MPI_File_write_at_all(file, 0, found, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    memset(found, 0, PIECE);
    OK(MPI_File_read_at_all(file, 0, found, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < PIECE; i++) CHECK(found[i] == rank + 1, "byte %d", i);
    close_file(&file);
    if (rank == 0) OK(MPI_File_delete(path, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc > 1);
    if (argc > 2 && !strcmp(argv[2], "quota")) expected = MPI_ERR_QUOTA;
    snprintf(path, sizeof path, "%s/file", argv[1]);
    mine = (size_t)(ALL / size / PIECE * PIECE);
    data = malloc(mine), found = malloc(PIECE);
    for (size_t i = 0; i < mine; i++) data[i] = (unsigned char)(1 + (i * 13 + (size_t)rank) % 255);
    for (int strided = 0; strided < 2; strided++) {
        overfill("enable", strided, 1);
        overfill("disable", strided, 1);
        overfill("automatic", strided, 1);
        overfill("automatic", strided, 0);
    }
    return end();
}
