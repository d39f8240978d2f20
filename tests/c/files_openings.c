// ranks: 1 2 3 4
// says: correct
// env: | WEFT_IO_URING=0
//
// A file that is open more than once: twice by all ranks, by each rank separately, by halves of the ranks. Each byte belongs to
// one writer, which is a rank with one of its openings, or to no writer. All write at once, in accesses of all kinds, and some
// with two threads of a rank. No opening may write back an old value of another writer's byte (MPI 5.0, 14.6.1: nothing
// overlaps).
#include "files.h"
#include <fcntl.h>
#include <pthread.h>

#define OK(call) CHECK((call) == MPI_SUCCESS)

enum { ONCE, TWICE, EACH, EACH_TWICE, HALVES, OPENINGS };
enum { GAPS, PIECES, NONBLOCKING, BY_AGGREGATORS, NONBLOCKING_TOGETHER, ORDERED, SHARED, KINDS };
enum { BYTES = 6000, RANKS = 4, SEEDS = 16, NOBODY = 2 * RANKS };

static const unsigned char before = 0xee;

/* Properties of a case, the same on all ranks. */
static int opening, kinds[2 * RANKS];
static unsigned char owners[BYTES];
static unsigned seed;

static int below(int limit)
{
    seed = seed * 1103515245u + 12345u;
    return (int)((seed >> 8) % (unsigned)limit);
}

static int colour(int of)
{
    if (opening == HALVES) return of >= (size + 1) / 2;
    return opening == EACH || opening == EACH_TWICE ? of : 0;
}

static int times(void) { return opening == TWICE || opening == EACH_TWICE ? 2 : 1; }

/* Returns the number of an opening. */
static int number(int of, int time) { return 2 * colour(of) + time; }

static int writer(int of, int time) { return times() * of + time; }

static int opening_of(int who) { return number(who / times(), who % times()); }

static void make(int of)
{
    int writers = size * times(), piece = (int[]){1, 4, 16, 64}[of % 4];
    seed = (unsigned)of * 2654435761u;
    for (int i = 0; i < 2 * RANKS; i++) kinds[i] = below(KINDS);
    for (int at = 0; at < BYTES;) {
        int owner = below(writers + 1), len = 1 + below(piece);
        for (int i = 0; i < len && at < BYTES; i++) owners[at++] = owner == writers ? NOBODY : owner;
    }
    for (int i = 0; i < writers; i++) owners[i] = i;
}

/* Work of one thread: a rank's writes by one opening. */
struct work {
    MPI_File file;
    int time;
};

/* Finds the bytes of a writer, or of all writers of an opening. Stores and counts their pieces in `starts`, or, if it is NULL,
   sets a view of the bytes and returns their number. */
static int view(MPI_File file, int who, int whole, int *starts)
{
    int lens[BYTES], places[BYTES], count = 0, bytes = 0;
    for (int at = 0; at < BYTES; at++) {
        int mine = owners[at] != NOBODY && (whole ? opening_of(owners[at]) == opening_of(who) : owners[at] == who);
        if (!mine) continue;
        bytes++;
        if (count > 0 && places[count - 1] + lens[count - 1] == at) lens[count - 1]++;
        else places[count] = at, lens[count++] = 1;
    }
    if (starts != NULL) {
        for (int i = 0; i < count; i++) starts[2 * i] = places[i], starts[2 * i + 1] = lens[i];
        return count;
    }
    MPI_Datatype type;
    MPI_Type_indexed(count, lens, places, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
    return bytes;
}

/* Notes a nonblocking access, which may end before or after the next access. */
static void begun(MPI_Request *requests, int *under_way)
{
    if (++*under_way == 16) {
        OK(MPI_Waitall(16, requests, MPI_STATUSES_IGNORE));
        *under_way = 0;
    }
}

static void *writes(void *argument)
{
    struct work *work = argument;
    MPI_File file = work->file;
    int who = writer(rank, work->time), kind = kinds[opening_of(who)], bytes, pieces, under_way = 0;
    int members = opening == HALVES ? (colour(rank) ? size - (size + 1) / 2 : (size + 1) / 2) : number(0, 0) == number(size - 1, 0) ? size : 1;
    int place = opening == HALVES && colour(rank) ? rank - (size + 1) / 2 : members == 1 ? 0 : rank;
    int *starts = malloc(2 * BYTES * sizeof *starts);
    char *data = malloc(BYTES);
    MPI_Request requests[16];
    memset(data, 1 + opening_of(who), BYTES);
    switch (kind) {
    case GAPS:
    case BY_AGGREGATORS:
    case NONBLOCKING_TOGETHER:
        bytes = view(file, who, 0, NULL);
        if (kind == GAPS) OK(MPI_File_write(file, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        if (kind == BY_AGGREGATORS) OK(MPI_File_write_all(file, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        if (kind == NONBLOCKING_TOGETHER) {
            OK(MPI_File_iwrite_at_all(file, 0, data, bytes, MPI_BYTE, requests));
            OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
        }
        break;
    case ORDERED:
    case SHARED:
        bytes = view(file, who, 1, NULL);
        pieces = bytes * (place + 1) / members - bytes * place / members;
        if (kind == ORDERED) OK(MPI_File_write_ordered(file, data, pieces, MPI_BYTE, MPI_STATUS_IGNORE));
        for (int len; kind == SHARED && pieces > 0; pieces -= len) {
            len = pieces < 50 ? pieces : 50;
            OK(MPI_File_write_shared(file, data, len, MPI_BYTE, MPI_STATUS_IGNORE));
        }
        break;
    case NONBLOCKING:
        /* The first rank of the opening writes half of its bytes through a view with gaps. */
        if (place == 0) {
            bytes = view(file, who, 0, NULL);
            for (int at = 0; at < bytes; at += 40) {
                OK(MPI_File_iwrite_at(file, at, data, bytes - at < 40 ? bytes - at : 40, MPI_BYTE, &requests[under_way]));
                begun(requests, &under_way);
            }
            OK(MPI_Waitall(under_way, requests, MPI_STATUSES_IGNORE));
            break;
        }
        /* fallthrough */
    default:
        OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        pieces = view(file, who, 0, starts);
        for (int i = 0; i < pieces; i++) {
            if (kind == PIECES) {
                OK(MPI_File_write_at(file, starts[2 * i], data, starts[2 * i + 1], MPI_BYTE, MPI_STATUS_IGNORE));
                continue;
            }
            OK(MPI_File_iwrite_at(file, starts[2 * i], data, starts[2 * i + 1], MPI_BYTE, &requests[under_way]));
            begun(requests, &under_way);
        }
        OK(MPI_Waitall(under_way, requests, MPI_STATUSES_IGNORE));
    }
    free(starts);
    free(data);
    return NULL;
}

static void look(int of)
{
    static unsigned char found[BYTES + 1];
    int file = open(path, O_RDONLY);
    CHECK(file >= 0 && read(file, found, sizeof found) == BYTES);
    close(file);
    for (int at = 0; at < BYTES; at++) {
        int expected = owners[at] == NOBODY ? before : 1 + opening_of(owners[at]);
        CHECK(found[at] == expected, "case %d, opened in way %d: byte %d of writer %d, who writes in way %d, is %d and not %d", of, opening, at,
              owners[at], owners[at] == NOBODY ? -1 : kinds[opening_of(owners[at])], found[at], expected);
    }
}

static void one(int of)
{
    struct work work[2];
    pthread_t thread;
    MPI_Comm part;
    MPI_Info hints;
    make(of);
    if (rank == 0) {
        static unsigned char all[BYTES];
        int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        memset(all, before, sizeof all);
        CHECK(file >= 0 && write(file, all, BYTES) == BYTES);
        close(file);
    }
    MPI_Info_create(&hints);
    if (of % 4) MPI_Info_set(hints, "romio_ds_write", "enable");
    if (of % 3) MPI_Info_set(hints, "romio_cb_write", "enable");
    if (of % 2) MPI_Info_set(hints, "ind_wr_buffer_size", "500");
    if (of % 2) MPI_Info_set(hints, "cb_buffer_size", "700");
    MPI_Comm_split(MPI_COMM_WORLD, colour(rank), 0, &part);
    for (int time = 0; time < times(); time++) {
        work[time].time = time;
        OK(MPI_File_open(part, path, MPI_MODE_RDWR, hints, &work[time].file));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (times() == 2) CHECK(pthread_create(&thread, NULL, writes, &work[1]) == 0);
    writes(&work[0]);
    if (times() == 2) CHECK(pthread_join(thread, NULL) == 0);
    for (int time = 0; time < times(); time++) close_file(&work[time].file);
    MPI_Info_free(&hints);
    MPI_Comm_free(&part);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) look(of);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size <= RANKS);
    name_file("openings");
    for (int of = 0; of < SEEDS; of++)
        for (opening = 0; opening < OPENINGS; opening++) one(of * OPENINGS + opening);
    if (rank == 0) CHECK(unlink(path) == 0);
    return end();
}
