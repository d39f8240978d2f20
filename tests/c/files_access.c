// ranks: 1 2 3 5
// says: correct
//
// Every function that reads or writes a file, without and with large counts: what one writes another reads.
#include "files.h"

enum { N = 37 };

static int out[N], in[N];
static MPI_Status status;
static MPI_Request request;

static void fill(int round)
{
    for (int i = 0; i < N; i++) {
        out[i] = round * 100000 + rank * 1000 + i;
        in[i] = -1;
    }
}

/* What this rank wrote is what it read. */
static void same(const char *what)
{
    for (int i = 0; i < N; i++) CHECK(in[i] == out[i], "%s: %d is %d, not %d", what, i, in[i], out[i]);
    has_count(&status, MPI_INT, N);
}

static MPI_File file;
static int round_of;

#define CHECK_WAIT MPI_Wait(&request, &status)
#define OK(call) CHECK((call) == MPI_SUCCESS)

/* Where the individual pointer of this rank is. */
static void mine(void) { OK(MPI_File_seek(file, (MPI_Offset)rank * N, MPI_SEEK_SET)); }

static void shared_to(MPI_Offset offset)
{
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek_shared(file, offset, MPI_SEEK_SET));
}

/* Ranks may have come to the shared pointer in any order: each rank's block is whole, and there once. */
static void blocks(const char *what)
{
    int seen = 0;
    for (int block = 0; block < size; block++) {
        int there[N];
        OK(MPI_File_read_at(file, (MPI_Offset)block * N, there, N, MPI_INT, &status));
        has_count(&status, MPI_INT, N);
        if (memcmp(there, out, sizeof out) == 0) seen++;
    }
    CHECK(seen == 1, "%s: %d times", what, seen);
}

#define BEGIN fill(++round_of)
#define END(what) same(what), MPI_Barrier(MPI_COMM_WORLD)

#define FORMS(C, offset)                                                                               \
    do {                                                                                               \
        BEGIN;                                                                                         \
        OK(MPI_File_write_at##C(file, offset, out, N, MPI_INT, &status));                              \
        has_count(&status, MPI_INT, N);                                                                \
        OK(MPI_File_read_at##C(file, offset, in, N, MPI_INT, &status));                                \
        END("read_at" #C);                                                                             \
        BEGIN;                                                                                         \
        OK(MPI_File_iwrite_at##C(file, offset, out, N, MPI_INT, &request));                            \
        CHECK_WAIT;                                                                                    \
        has_count(&status, MPI_INT, N);                                                                \
        OK(MPI_File_iread_at##C(file, offset, in, N, MPI_INT, &request));                              \
        CHECK_WAIT;                                                                                    \
        END("iread_at" #C);                                                                            \
        BEGIN;                                                                                         \
        OK(MPI_File_write_at_all##C(file, offset, out, N, MPI_INT, &status));                          \
        has_count(&status, MPI_INT, N);                                                                \
        OK(MPI_File_read_at_all##C(file, offset, in, N, MPI_INT, &status));                            \
        END("read_at_all" #C);                                                                         \
        BEGIN;                                                                                         \
        OK(MPI_File_iwrite_at_all##C(file, offset, out, N, MPI_INT, &request));                        \
        CHECK_WAIT;                                                                                    \
        has_count(&status, MPI_INT, N);                                                                \
        OK(MPI_File_iread_at_all##C(file, offset, in, N, MPI_INT, &request));                          \
        CHECK_WAIT;                                                                                    \
        END("iread_at_all" #C);                                                                        \
        BEGIN;                                                                                         \
        OK(MPI_File_write_at_all_begin##C(file, offset, out, N, MPI_INT));                             \
        OK(MPI_File_write_at_all_end(file, out, &status));                                             \
        has_count(&status, MPI_INT, N);                                                                \
        OK(MPI_File_read_at_all_begin##C(file, offset, in, N, MPI_INT));                               \
        OK(MPI_File_read_at_all_end(file, in, &status));                                               \
        END("read_at_all_begin" #C);                                                                   \
        BEGIN, mine();                                                                                 \
        OK(MPI_File_write##C(file, out, N, MPI_INT, &status));                                         \
        has_count(&status, MPI_INT, N);                                                                \
        mine();                                                                                        \
        OK(MPI_File_read##C(file, in, N, MPI_INT, &status));                                           \
        END("read" #C);                                                                                \
        BEGIN, mine();                                                                                 \
        OK(MPI_File_iwrite##C(file, out, N, MPI_INT, &request));                                       \
        CHECK_WAIT;                                                                                    \
        mine();                                                                                        \
        OK(MPI_File_iread##C(file, in, N, MPI_INT, &request));                                         \
        CHECK_WAIT;                                                                                    \
        END("iread" #C);                                                                               \
        BEGIN, mine();                                                                                 \
        OK(MPI_File_write_all##C(file, out, N, MPI_INT, &status));                                     \
        mine();                                                                                        \
        OK(MPI_File_read_all##C(file, in, N, MPI_INT, &status));                                       \
        END("read_all" #C);                                                                            \
        BEGIN, mine();                                                                                 \
        OK(MPI_File_iwrite_all##C(file, out, N, MPI_INT, &request));                                   \
        CHECK_WAIT;                                                                                    \
        mine();                                                                                        \
        OK(MPI_File_iread_all##C(file, in, N, MPI_INT, &request));                                     \
        CHECK_WAIT;                                                                                    \
        END("iread_all" #C);                                                                           \
        BEGIN, mine();                                                                                 \
        OK(MPI_File_write_all_begin##C(file, out, N, MPI_INT));                                        \
        OK(MPI_File_write_all_end(file, out, &status));                                                \
        mine();                                                                                        \
        OK(MPI_File_read_all_begin##C(file, in, N, MPI_INT));                                          \
        OK(MPI_File_read_all_end(file, in, &status));                                                  \
        END("read_all_begin" #C);                                                                      \
    } while (0)

#define SHARED(C)                                                                                      \
    do {                                                                                               \
        BEGIN, shared_to(0);                                                                           \
        OK(MPI_File_write_shared##C(file, out, N, MPI_INT, &status));                                  \
        has_count(&status, MPI_INT, N);                                                                \
        all_written(file), blocks("write_shared" #C), shared_to(0);                                    \
        OK(MPI_File_read_shared##C(file, in, N, MPI_INT, &status));                                    \
        each_once("read_shared" #C);                                                                   \
        BEGIN, shared_to(0);                                                                           \
        OK(MPI_File_iwrite_shared##C(file, out, N, MPI_INT, &request));                                \
        CHECK_WAIT;                                                                                    \
        all_written(file), blocks("iwrite_shared" #C), shared_to(0);                                   \
        OK(MPI_File_iread_shared##C(file, in, N, MPI_INT, &request));                                  \
        CHECK_WAIT;                                                                                    \
        each_once("iread_shared" #C);                                                                  \
        BEGIN, shared_to(0);                                                                           \
        OK(MPI_File_write_ordered##C(file, out, N, MPI_INT, &status));                                 \
        shared_to(0);                                                                                  \
        OK(MPI_File_read_ordered##C(file, in, N, MPI_INT, &status));                                   \
        END("read_ordered" #C);                                                                        \
        BEGIN, shared_to(0);                                                                           \
        OK(MPI_File_write_ordered_begin##C(file, out, N, MPI_INT));                                    \
        OK(MPI_File_write_ordered_end(file, out, &status));                                            \
        shared_to(0);                                                                                  \
        OK(MPI_File_read_ordered_begin##C(file, in, N, MPI_INT));                                      \
        OK(MPI_File_read_ordered_end(file, in, &status));                                              \
        END("read_ordered_begin" #C);                                                                  \
    } while (0)

/* All ranks together have read each block once. */
static void each_once(const char *what)
{
    int sum, first = in[0] % 100000 / 1000;
    has_count(&status, MPI_INT, N);
    for (int i = 0; i < N; i++) CHECK(in[i] == round_of * 100000 + first * 1000 + i, "%s", what);
    MPI_Allreduce(&first, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2, "%s: %d", what, sum);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    name_file("access");
    file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Offset offset = (MPI_Offset)rank * N;
    OK(MPI_File_set_view(file, 12, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    FORMS(, offset);
    FORMS(_c, offset);
    SHARED();
    SHARED(_c);
    /* The same places through a view whose pieces lie between those of the others. */
    MPI_Datatype one, mine_of;
    MPI_Type_contiguous(3, MPI_INT, &one);
    MPI_Type_create_resized(one, 0, (MPI_Aint)(3 * sizeof(int) * size), &mine_of);
    MPI_Type_commit(&mine_of);
    OK(MPI_File_set_view(file, 8 + (MPI_Offset)(3 * sizeof(int)) * rank, MPI_INT, mine_of, "native",
                         MPI_INFO_NULL));
    FORMS(, 5);
    FORMS(_c, 5);
    close_file(&file);
    MPI_Type_free(&one);
    MPI_Type_free(&mine_of);
    return end();
}
