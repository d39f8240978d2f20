// ranks: 1 2 4
// says: correct
//
// What a file is: how it is opened, its length, view, pointers, hints and mode; and what becomes of mistakes.
#include "files.h"

#define OK(call) CHECK((call) == MPI_SUCCESS)

static int heard;
static MPI_File of;

static void hear(MPI_File *file, int *code, ...)
{
    (void)code;
    of = *file;
    heard++;
}

static void modes(void)
{
    MPI_File file = MPI_FILE_NULL;
    int amode, flag;
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, 0, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file),
          MPI_ERR_AMODE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, "/tmp", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    CHECK(file == MPI_FILE_NULL);
    if (size > 1) {
        int other = rank == 1 ? MPI_MODE_WRONLY : MPI_MODE_RDWR;
        FAILS(MPI_File_open(MPI_COMM_WORLD, path, other | MPI_MODE_CREATE, MPI_INFO_NULL, &file),
              MPI_ERR_NOT_SAME);
        if (rank == 0) unlink(path);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    file = open_file(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY);
    OK(MPI_File_get_amode(file, &amode));
    CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY));
    int word = 0x01020304;
    FAILS(MPI_File_read_at(file, 0, &word, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    OK(MPI_File_write_at_all(file, 0, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    close_file(&file);
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL,
                        &file),
          MPI_ERR_FILE_EXISTS);
    file = open_file(MPI_MODE_RDONLY);
    FAILS(MPI_File_write_at(file, 0, &word, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_set_size(file, 1), MPI_ERR_READ_ONLY);
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(!flag);
    close_file(&file);
    /* Appended to: both pointers are at the end. */
    file = open_file(MPI_MODE_APPEND | MPI_MODE_RDWR);
    MPI_Offset offset;
    OK(MPI_File_get_position(file, &offset));
    CHECK(offset == 4);
    OK(MPI_File_get_position_shared(file, &offset));
    CHECK(offset == 4);
    close_file(&file);
    OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_read(file, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(word == 0x01020304);
    close_file(&file);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void lengths(MPI_File file)
{
    MPI_Offset length;
    OK(MPI_File_set_size(file, 1000));
    OK(MPI_File_get_size(file, &length));
    CHECK(length == 1000);
    OK(MPI_File_preallocate(file, 10));
    OK(MPI_File_get_size(file, &length));
    CHECK(length == 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_preallocate(file, 5000));
    OK(MPI_File_get_size(file, &length));
    CHECK(length == 5000);
    MPI_Barrier(MPI_COMM_WORLD);
    FAILS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    if (size > 1) FAILS(MPI_File_set_size(file, 100 + rank), MPI_ERR_NOT_SAME);
    OK(MPI_File_set_size(file, 100));
    /* What lies behind the end is not read. */
    char bytes[60];
    MPI_Status status;
    OK(MPI_File_read_at(file, 70, bytes, 60, MPI_BYTE, &status));
    has_count(&status, MPI_BYTE, 30);
    OK(MPI_File_read_at_all(file, 70 + 15 * (rank % 2), bytes, 60, MPI_BYTE, &status));
    has_count(&status, MPI_BYTE, 30 - 15 * (rank % 2));
    OK(MPI_File_read_at(file, 200, bytes, 60, MPI_BYTE, &status));
    has_count(&status, MPI_BYTE, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Beyond 4 GiB, in a file with a hole. */
    long long far = (5LL << 30) + 8 * rank, back = 0;
    OK(MPI_File_write_at(file, far, &far, 8, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, far, &back, 8, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(back == far);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_size(file, 0));
}

static void views(MPI_File file)
{
    MPI_Datatype type, etype, filetype;
    MPI_Offset at, byte;
    MPI_Aint extent;
    MPI_Count large;
    char name[MPI_MAX_DATAREP_STRING];
    int combiner, n;
    OK(MPI_File_get_view(file, &at, &etype, &filetype, name));
    CHECK(at == 0 && etype == MPI_BYTE && filetype == MPI_BYTE && strcmp(name, "native") == 0);
    MPI_Type_vector(2, 3, 5, MPI_INT, &type);
    OK(MPI_File_set_view(file, 20, MPI_INT, type, "internal", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &at, &etype, &filetype, name));
    MPI_Type_get_envelope(filetype, &n, &n, &n, &combiner);
    CHECK(at == 20 && etype == MPI_INT && combiner == MPI_COMBINER_VECTOR && strcmp(name, "internal") == 0);
    MPI_Type_free(&filetype);
    MPI_Type_free(&type);
    /* Offsets 0 to 2 are ints 0 to 2, 3 to 5 are 5 to 7; then the type begins again at int 8. */
    int places[] = {0, 1, 2, 5, 6, 7, 8, 9, 10, 13};
    for (int i = 0; i < 10; i++) {
        OK(MPI_File_get_byte_offset(file, i, &byte));
        CHECK(byte == 20 + 4 * places[i], "%d: %lld", i, (long long)byte);
    }
    OK(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent));
    OK(MPI_File_get_type_extent_c(file, MPI_DOUBLE, &large));
    CHECK(extent == 8 && large == 8);
    /* From the end: a file of 20 bytes and 6 ints has 3 + 1 of the view's. */
    OK(MPI_File_set_size(file, 20 + 24));
    OK(MPI_File_seek(file, -1, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &at));
    CHECK(at == 3, "%lld", (long long)at);
    OK(MPI_File_seek(file, 2, MPI_SEEK_CUR));
    OK(MPI_File_get_position(file, &at));
    CHECK(at == 5);
    FAILS(MPI_File_seek(file, -6, MPI_SEEK_CUR), MPI_ERR_ARG);
    FAILS(MPI_File_seek(file, 0, 7), MPI_ERR_ARG);
    OK(MPI_File_seek_shared(file, 9, MPI_SEEK_SET));
    OK(MPI_File_seek_shared(file, -2, MPI_SEEK_CUR));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK(at == 7);
    if (size > 1) FAILS(MPI_File_seek_shared(file, rank, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
    MPI_Barrier(MPI_COMM_WORLD);
    int three[3];
    FAILS(MPI_File_read(file, three, 3, MPI_SHORT, MPI_STATUS_IGNORE), MPI_ERR_IO);
    FAILS(MPI_File_set_view(file, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_SHORT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "no such", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    int back[2] = {4, 0};
    MPI_Type_create_indexed_block(2, 1, back, MPI_INT, &type);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    MPI_Type_free(&type);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

/* A file type whose next tile would go back serves for one tile, and no further. */
static void one_tile(MPI_File file)
{
    int lengths[2] = {4, 4}, places[2] = {0, 4 * size}, count;
    char out[8], in[8] = {0};
    MPI_Status status;
    MPI_Datatype apart, type;
    MPI_Type_indexed(2, lengths, places, MPI_BYTE, &apart);
    MPI_Type_create_resized(apart, 0, 4, &type);
    MPI_Type_commit(&type);
    OK(MPI_File_set_view(file, 4 * rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
    memset(out, 'a' + rank, sizeof out);
    OK(MPI_File_write_at_all(file, 0, out, 8, MPI_BYTE, MPI_STATUS_IGNORE));
    all_written(file);
    OK(MPI_File_read_at(file, 0, in, 8, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == 8 && memcmp(in, out, 8) == 0);
    FAILS(MPI_File_read_at(file, 4, in, 8, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    FAILS(MPI_File_write_at(file, 8, in, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    MPI_Type_free(&type);
    MPI_Type_free(&apart);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 4 * ((rank + 1) % size), in, 4, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(in[0] == 'a' + (rank + 1) % size && in[3] == in[0]);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void hints(MPI_File file)
{
    MPI_Info info;
    char value[64];
    int len = sizeof value, flag;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "12345");
    MPI_Info_set(info, "romio_ds_write", "disable");
    MPI_Info_set(info, "nonsense", "1");
    OK(MPI_File_set_info(file, info));
    MPI_Info_free(&info);
    OK(MPI_File_get_info(file, &info));
    MPI_Info_get_string(info, "cb_buffer_size", &len, value, &flag);
    CHECK(flag && strcmp(value, "12345") == 0);
    len = sizeof value;
    MPI_Info_get_string(info, "romio_ds_write", &len, value, &flag);
    CHECK(flag && strcmp(value, "disable") == 0);
    MPI_Info_get_string(info, "nonsense", &len, value, &flag);
    CHECK(!flag);
    MPI_Info_free(&info);
    MPI_Group group, world;
    int result, on;
    OK(MPI_File_get_group(file, &group));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &result);
    CHECK(result == MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &on));
    CHECK(on);
    if (size > 1) FAILS(MPI_File_set_atomicity(file, rank == 0), MPI_ERR_NOT_SAME);
    OK(MPI_File_set_atomicity(file, 0));
    CHECK(MPI_File_fromint(MPI_File_toint(file)) == file);
    CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
}

static void handlers(MPI_File file)
{
    MPI_Errhandler handler, current;
    MPI_File other;
    int word;
    OK(MPI_File_get_errhandler(file, &current));
    CHECK(current == MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(hear, &handler));
    OK(MPI_File_set_errhandler(file, handler));
    FAILS(MPI_File_read_at(file, -1, &word, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    CHECK(heard == 1 && of == file);
    MPI_Request request;
    FAILS(MPI_File_iread_at(file, -1, &word, 1, MPI_INT, &request), MPI_ERR_ARG);
    OK(MPI_File_call_errhandler(file, MPI_ERR_IO));
    CHECK(heard == 3 && of == file);
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    /* Of MPI_FILE_NULL: errors of no file, and what files begin with. */
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    FAILS(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    CHECK(heard == 4 && of == MPI_FILE_NULL);
    OK(MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &other));
    OK(MPI_File_get_errhandler(other, &current));
    CHECK(current == handler);
    MPI_Errhandler_free(&current);
    close_file(&other);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    MPI_Errhandler_free(&handler);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)(void (*)(void))hear, &handler);
    FAILS(MPI_File_set_errhandler(MPI_FILE_NULL, handler), MPI_ERR_ERRHANDLER);
    MPI_Errhandler_free(&handler);
    FAILS(MPI_File_set_errhandler((MPI_File)0x12345, MPI_ERRORS_RETURN), MPI_ERR_FILE);
    FAILS(MPI_File_get_errhandler((MPI_File)0x12345, &current), MPI_ERR_FILE);
    FAILS(MPI_File_get_errhandler(MPI_FILE_NULL, NULL), MPI_ERR_ARG);
    FAILS(MPI_File_get_amode((MPI_File)0x12345, &word), MPI_ERR_FILE);
    FAILS(MPI_File_close(&(MPI_File){MPI_FILE_NULL}), MPI_ERR_FILE);
}

static void splits(MPI_File file)
{
    char bytes[4] = {1, 2, 3, 4};
    MPI_Status status;
    FAILS(MPI_File_write_all_end(file, bytes, &status), MPI_ERR_OTHER);
    OK(MPI_File_write_at_all_begin(file, 4 * rank, bytes, 4, MPI_BYTE));
    FAILS(MPI_File_write_all(file, bytes, 4, MPI_BYTE, &status), MPI_ERR_OTHER);
    FAILS(MPI_File_write_all_end(file, bytes, &status), MPI_ERR_OTHER);
    OK(MPI_File_write_at_all_end(file, bytes, &status));
    has_count(&status, MPI_BYTE, 4);
}

/* In atomic mode what several ranks write to the same pieces is one rank's, as a whole. */
static void atomic(MPI_File file)
{
    enum { PIECES = 50 };
    MPI_Datatype every_other;
    char mine[PIECES], there[PIECES];
    MPI_Type_vector(PIECES, 1, 3, MPI_BYTE, &every_other);
    MPI_Type_commit(&every_other);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_set_view(file, 100, MPI_BYTE, every_other, "native", MPI_INFO_NULL));
    for (int round = 0; round < 40; round++) {
        memset(mine, 1 + rank + round, PIECES);
        if (round % 2)
            OK(MPI_File_write_at(file, 0, mine, PIECES, MPI_BYTE, MPI_STATUS_IGNORE));
        else
            OK(MPI_File_write_at_all(file, 0, mine, PIECES, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, there, PIECES, MPI_BYTE, MPI_STATUS_IGNORE));
        for (int i = 1; i < PIECES; i++) CHECK(there[i] == there[0], "round %d: byte %d", round, i);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&every_other);
    OK(MPI_File_set_atomicity(file, 0));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

/* Who reads, changes and writes a range back does not undo what others write there, or this rank's other operations. */
static void beside(MPI_File file)
{
    enum { PIECES = 400 };
    MPI_Datatype type;
    char mine[2][PIECES], there[PIECES];
    MPI_Request requests[2];
    MPI_Type_create_resized(MPI_BYTE, 0, 2 * size + 1, &type);
    MPI_Type_commit(&type);
    for (int round = 0; round < 20; round++) {
        memset(mine, 1 + rank + round, sizeof mine);
        /* Places 2 rank and 2 rank + 1 of each tile; one is nobody's. */
        OK(MPI_File_set_view(file, 2 * rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
        OK(MPI_File_iwrite_at(file, 0, mine[0], PIECES / 2, MPI_BYTE, &requests[0]));
        OK(MPI_File_iwrite_at(file, PIECES / 2, mine[0] + PIECES / 2, PIECES / 2, MPI_BYTE, &requests[1]));
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        OK(MPI_File_set_view(file, 2 * rank + 1, MPI_BYTE, type, "native", MPI_INFO_NULL));
        for (int i = 0; i < PIECES; i += 100)
            OK(MPI_File_write_at(file, i, mine[1] + i, 100, MPI_BYTE, MPI_STATUS_IGNORE));
        MPI_Barrier(MPI_COMM_WORLD);
        for (int odd = 0; odd < 2; odd++) {
            OK(MPI_File_set_view(file, 2 * rank + odd, MPI_BYTE, type, "native", MPI_INFO_NULL));
            OK(MPI_File_read_at(file, 0, there, PIECES, MPI_BYTE, MPI_STATUS_IGNORE));
            for (int i = 0; i < PIECES; i++) CHECK(there[i] == 1 + rank + round, "round %d: %d", round, i);
        }
    }
    MPI_Type_free(&type);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

static void sequential(void)
{
    MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE);
    int word = rank;
    FAILS(MPI_File_write(file, &word, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_File_write_ordered(file, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    MPI_Offset at;
    OK(MPI_File_get_byte_offset(file, 0, &at));
    CHECK(at == 4 * size, "%lld", (long long)at);
    close_file(&file);
    CHECK(access(path, F_OK) != 0);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    name_file("about");
    modes();
    MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR);
    lengths(file);
    views(file);
    one_tile(file);
    hints(file);
    splits(file);
    atomic(file);
    beside(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) OK(MPI_File_delete(path, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    handlers(file);
    MPI_Barrier(MPI_COMM_WORLD);
    close_file(&file);
    sequential();
    return end();
}
