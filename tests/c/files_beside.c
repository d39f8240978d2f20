// ranks: 1 2
// says: correct
// env: | WEFT_IO_URING=0
//
// What goes on in a file while the program computes: more accesses at once than the system takes, one that its thread does not
// live to see, one past the end, and one that finds no room.
#include "files.h"
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#define OK(call) CHECK((call) == MPI_SUCCESS)

/* Long enough that nobody does it at once. */
enum { BYTES = 1 << 20, AT_ONCE = 80, LONG = 24 << 20 };

static MPI_File file;
static MPI_Request requests[AT_ONCE];
static MPI_Status statuses[AT_ONCE];

static unsigned char value(int of, size_t at) { return (unsigned char)(of * 37 + at * 11 + (at >> 13)); }

static void filled(unsigned char *data, size_t len, int of)
{
    for (size_t i = 0; i < len; i++) data[i] = value(of, i);
}

static void holds(const unsigned char *data, size_t len, int of, const char *what)
{
    for (size_t i = 0; i < len; i++) CHECK(data[i] == value(of, i), "%s: byte %zu is %d", what, i, data[i]);
}

static MPI_Offset place(int of, int piece) { return ((MPI_Offset)piece * size + of) * BYTES; }

static void many_at_once(unsigned char *data)
{
    for (int i = 0; i < AT_ONCE; i++) filled(data + (size_t)i * BYTES, BYTES, rank + i);
    for (int i = 0; i < AT_ONCE; i++)
        OK(MPI_File_iwrite_at(file, place(rank, i), data + (size_t)i * BYTES, BYTES, MPI_BYTE, &requests[i]));
    OK(MPI_Waitall(AT_ONCE, requests, statuses));
    for (int i = 0; i < AT_ONCE; i++) has_count(&statuses[i], MPI_BYTE, BYTES);
    all_written(file);
    memset(data, 0, (size_t)AT_ONCE * BYTES);
    int of = (rank + 1) % size;
    for (int i = 0; i < AT_ONCE; i++)
        OK(MPI_File_iread_at(file, place(of, i), data + (size_t)i * BYTES, BYTES, MPI_BYTE, &requests[i]));
    OK(MPI_Waitall(AT_ONCE, requests, statuses));
    for (int i = 0; i < AT_ONCE; i++) {
        has_count(&statuses[i], MPI_BYTE, BYTES);
        holds(data + (size_t)i * BYTES, BYTES, of + i, "many at once");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void past_the_end(unsigned char *data)
{
    MPI_Offset end;
    OK(MPI_File_get_size(file, &end));
    memset(data, 7, 2 * BYTES);
    OK(MPI_File_iread_at(file, end - BYTES, data, 2 * BYTES, MPI_BYTE, &requests[0]));
    OK(MPI_Wait(&requests[0], &statuses[0]));
    has_count(&statuses[0], MPI_BYTE, BYTES);
    holds(data, BYTES, size - 1 + AT_ONCE - 1, "past the end");
    for (int i = BYTES; i < 2 * BYTES; i++) CHECK(data[i] == 7, "past the end: byte %d was written", i);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void *begin_write(void *data)
{
    OK(MPI_File_iwrite_at(file, (MPI_Offset)rank * LONG, data, LONG, MPI_BYTE, &requests[0]));
    return NULL;
}

static void without_its_thread(unsigned char *data)
{
    for (int round = 0; round < 10; round++) {
        pthread_t thread;
        filled(data, LONG, rank + round);
        CHECK(pthread_create(&thread, NULL, begin_write, data) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        OK(MPI_Wait(&requests[0], &statuses[0]));
        has_count(&statuses[0], MPI_BYTE, LONG);
        memset(data, 0, LONG);
        OK(MPI_File_read_at(file, (MPI_Offset)rank * LONG, data, LONG, MPI_BYTE, &statuses[0]));
        holds(data, LONG, rank + round, "a thread that ended");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void without_room(unsigned char *data)
{
    struct rlimit before, low;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    low = before;
    low.rlim_cur = (rlim_t)BYTES / 2;
    CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0);
    int beside, here;
    CHECK(MPI_File_iwrite_at(file, 0, data, BYTES, MPI_BYTE, &requests[0]) == MPI_SUCCESS);
    beside = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    here = MPI_File_write_at(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(beside != MPI_SUCCESS && here != MPI_SUCCESS, "half of it has no room");
    CHECK(class_of(beside) == class_of(here), "%d beside the program, %d in it", class_of(beside), class_of(here));
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    name_file("beside");
    unsigned char *data = malloc((size_t)AT_ONCE * BYTES);
    CHECK(data != NULL);
    file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    many_at_once(data);
    past_the_end(data);
    without_its_thread(data);
    without_room(data);
    free(data);
    close_file(&file);
    return end();
}
