// ranks: 1 2 4
// says: correct
//
// A file that changes behind the program's back: it is cut off before and while it is read, and its name and its directory go away.
// What is not there any more is not read, nobody waits for it, and a file that is open stays so.
#include "files.h"
#include <pthread.h>
#include <sys/stat.h>

#define OK(call) CHECK((call) == MPI_SUCCESS)

enum { PIECE = 64, PIECES = 2048 };

static unsigned char data[PIECE * PIECES];

static unsigned char byte_at(long long place) { return (unsigned char)(place * 7 + place / 256 + 1); }

/* Where a byte of this rank's data lies. */
static long long place(long i) { return (long long)(i / PIECE * size + rank) * PIECE + i % PIECE; }

static void fill(void)
{
    for (long i = 0; i < PIECE * PIECES; i++) data[i] = byte_at(place(i));
}

/* Bytes of this rank before the file's end at `length`. */
static long before(long long length)
{
    long some = 0;
    for (long i = 0; i < PIECE * PIECES; i++) some += place(i) < length;
    return some;
}

static void view(MPI_File file)
{
    MPI_Datatype type;
    MPI_Type_vector(PIECES, PIECE, PIECE * size, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    OK(MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
}

static MPI_File opened(const char *buffering)
{
    MPI_File file;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_read", buffering);
    MPI_Info_set(info, "romio_cb_write", buffering);
    MPI_Info_set(info, "cb_buffer_size", "16384");
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    view(file);
    return file;
}

/* What was read, `count` bytes, is the file's; how many that is. */
static int right(MPI_Status *status)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    for (int i = 0; i < count; i++) CHECK(data[i] == byte_at(place(i)), "byte %d of %d", i, count);
    return count;
}

/* Cut off between two accesses: each rank gets what lies before the end. */
static void shorter(MPI_File file)
{
    MPI_Status status;
    long long length = (long long)PIECE * PIECES * size * 2 / 3 + 5;
    fill();
    OK(MPI_File_write_at_all(file, 0, data, PIECE * PIECES, MPI_BYTE, MPI_STATUS_IGNORE));
    all_written(file);
    if (rank == 0) CHECK(truncate(path, length) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int together = 0; together < 2; together++) {
        memset(data, 0, sizeof data);
        if (together) OK(MPI_File_read_at_all(file, 0, data, PIECE * PIECES, MPI_BYTE, &status));
        else OK(MPI_File_read_at(file, 0, data, PIECE * PIECES, MPI_BYTE, &status));
        CHECK(right(&status) == before(length), "%d of %ld bytes", right(&status), before(length));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static volatile int over;

/* Cuts the file off and writes it again, over and over. */
static void *cuts(void *whole)
{
    long long length = (long long)PIECE * PIECES * size;
    FILE *file = fopen(path, "r+b");
    for (long i = 0; file && !over; i++) {
        if (truncate(path, (i * 7919 * PIECE) % length)) break;
        usleep(200);
        if (pwrite(fileno(file), whole, length, 0) != length) break;
        usleep(200);
    }
    if (file) fclose(file);
    return over ? NULL : whole;
}

/* Cut off while it is read: never an error, never a hang, and what was read is right, or zeros of a part not written yet. */
static void while_read(MPI_File file)
{
    MPI_Status status;
    pthread_t thread;
    long long length = (long long)PIECE * PIECES * size;
    unsigned char *whole = malloc(length);
    long less = 0, all;
    for (long long at = 0; at < length; at++) whole[at] = byte_at(at);
    if (rank == 0) CHECK(pthread_create(&thread, NULL, cuts, whole) == 0);
    for (int i = 0; i < 200; i++) {
        int count;
        if (i % 2) OK(MPI_File_read_at_all(file, 0, data, PIECE * PIECES, MPI_BYTE, &status));
        else OK(MPI_File_read_at(file, 0, data, PIECE * PIECES, MPI_BYTE, &status));
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count >= 0 && count <= PIECE * PIECES, "%d", count);
        for (int k = 0; k < count; k++)
            CHECK(data[k] == byte_at(place(k)) || data[k] == 0, "byte %d of %d", k, count);
        less += count < PIECE * PIECES;
        MPI_Allreduce(&less, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (i > 20 && all > 3) break;
    }
    CHECK(all > 0, "the file was always whole: nothing was tried");
    void *failed = NULL;
    over = 1;
    if (rank == 0) pthread_join(thread, &failed);
    CHECK(failed == NULL, "the file could not be cut off");
    free(whole);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Its directory goes away: who has it open has it; nobody opens it again, and all are told so. */
static void without_name(void)
{
    char folder[300];
    MPI_Status status;
    MPI_File file, again;
    snprintf(folder, sizeof folder, "%s-folder", path);
    if (rank == 0) CHECK(mkdir(folder, 0700) == 0);
    snprintf(path, sizeof path, "%.240s/file", folder);
    MPI_Barrier(MPI_COMM_WORLD);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    OK(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
    view(file);
    if (rank == 0) CHECK(unlink(path) == 0 && rmdir(folder) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    fill();
    OK(MPI_File_write_at_all(file, 0, data, PIECE * PIECES, MPI_BYTE, MPI_STATUS_IGNORE));
    all_written(file);
    memset(data, 0, sizeof data);
    OK(MPI_File_read_at_all(file, 0, data, PIECE * PIECES, MPI_BYTE, &status));
    CHECK(right(&status) == PIECE * PIECES);
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &again),
          MPI_ERR_NO_SUCH_FILE);
    /* It was to be deleted, and is gone: rank 0 tries, and says so. The file is closed all the same. */
    int code = MPI_File_close(&file);
    CHECK(rank > 0 || class_of(code) == MPI_ERR_NO_SUCH_FILE, "class %d", class_of(code));
    CHECK(file == MPI_FILE_NULL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    name_file("vanish");
    for (int i = 0; i < 2; i++) {
        MPI_File file = opened(i ? "enable" : "disable");
        shorter(file);
        while_read(file);
        close_file(&file);
    }
    if (rank == 0) OK(MPI_File_delete(path, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    without_name();
    return end();
}
