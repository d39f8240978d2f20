/* A file, named by the argument, of a file system that several hosts share: what one host has written, another sees after both have
 * synced, though it has looked before; what a rank has written it sees at once, whoever wrote it for it; neighbouring pieces of two
 * hosts do not undo each other; a file that was closed is whole for who opens it; locks hold. */
#include "../files.h"

#define OK(call) CHECK((call) == MPI_SUCCESS)

enum { PIECES = 12, PIECE = 200, ROUNDS = 3 };

static int value(int round, int of, int i) { return round * 1000003 + of * 1009 + i; }

static void open_it(MPI_File *file, int amode)
{
    OK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, file));
}

/* Pieces of the ranks take turns. */
static MPI_Offset place(int piece, int of) { return ((MPI_Offset)piece * size + of) * PIECE * (MPI_Offset)sizeof(int); }

static void look(MPI_File file, int round, const char *when)
{
    int found[PIECE];
    for (int piece = 0; piece < PIECES; piece++)
        for (int of = 0; of < size; of++) {
            OK(MPI_File_read_at(file, place(piece, of), found, PIECE, MPI_INT, MPI_STATUS_IGNORE));
            for (int i = 0; i < PIECE; i++)
                CHECK(found[i] == value(round, of, piece * PIECE + i), "round %d, %s: piece %d of rank %d, element %d is %d",
                      round, when, piece, of, i, found[i]);
        }
}

static void fill(int *data, int round, int piece)
{
    for (int i = 0; i < PIECE; i++) data[i] = value(round, rank, piece * PIECE + i);
}

/* All write, and all look, again and again: what was looked at before must not be what is found. */
static void rounds(const char *how)
{
    static int data[PIECES * PIECE];
    MPI_File file;
    MPI_Datatype type;
    open_it(&file, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Type_vector(PIECES, PIECE, PIECE * size, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int round = 1; round <= ROUNDS; round++) {
        for (int piece = 0; piece < PIECES; piece++) fill(data + piece * PIECE, round, piece);
        if (!strcmp(how, "pieces")) {
            for (int piece = 0; piece < PIECES; piece++)
                OK(MPI_File_write_at(file, place(piece, rank), data + piece * PIECE, PIECE, MPI_INT, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_File_set_view(file, place(0, rank), MPI_INT, type, "native", MPI_INFO_NULL));
            if (!strcmp(how, "view")) OK(MPI_File_write_at(file, 0, data, PIECES * PIECE, MPI_INT, MPI_STATUS_IGNORE));
            else OK(MPI_File_write_at_all(file, 0, data, PIECES * PIECE, MPI_INT, MPI_STATUS_IGNORE));
            OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        }
        all_written(file);
        look(file, round, how);
        /* Nobody writes while another one still looks. */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&type);
    close_file(&file);
    open_it(&file, MPI_MODE_RDWR);
    look(file, ROUNDS, how);
    close_file(&file);
}

/* Closed by all, then opened: nobody has synced. Often: it depends on who is first whether a server delegates the file to a host. */
static void closed(void)
{
    int data[PIECE];
    MPI_File file;
    for (int round = 1; round <= 10 * ROUNDS; round++) {
        open_it(&file, MPI_MODE_RDWR);
        for (int piece = 0; piece < PIECES; piece++) {
            fill(data, round, piece);
            OK(MPI_File_write_at(file, place(piece, rank), data, PIECE, MPI_INT, MPI_STATUS_IGNORE));
        }
        close_file(&file);
        open_it(&file, MPI_MODE_RDONLY);
        look(file, round, "opened again");
        close_file(&file);
    }
}

/* What a rank wrote it reads, without a sync, whoever moves its data: itself, or a rank of another host. */
static void ways(void)
{
    static int data[PIECES * PIECE], found[PIECES * PIECE];
    MPI_File file;
    MPI_Info info;
    MPI_Datatype type;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "romio_cb_read", "enable");
    MPI_Info_set(info, "cb_nodes", "1");
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    MPI_Type_vector(PIECES, PIECE, PIECE * size, MPI_INT, &type);
    MPI_Type_commit(&type);
    OK(MPI_File_set_view(file, place(0, rank), MPI_INT, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
    for (int round = 1; round <= 10 * ROUNDS; round++) {
        int alone = round % 2;
        for (int piece = 0; piece < PIECES; piece++) fill(data + piece * PIECE, round, piece);
        if (alone) OK(MPI_File_write_at(file, 0, data, PIECES * PIECE, MPI_INT, MPI_STATUS_IGNORE));
        else OK(MPI_File_write_at_all(file, 0, data, PIECES * PIECE, MPI_INT, MPI_STATUS_IGNORE));
        if (alone) OK(MPI_File_read_at_all(file, 0, found, PIECES * PIECE, MPI_INT, MPI_STATUS_IGNORE));
        else OK(MPI_File_read_at(file, 0, found, PIECES * PIECE, MPI_INT, MPI_STATUS_IGNORE));
        for (int i = 0; i < PIECES * PIECE; i++)
            CHECK(found[i] == data[i], "round %d: element %d is %d, not %d", round, i, found[i], data[i]);
    }
    close_file(&file);
}

/* The length that another host's write has given the file. */
static void lengths(void)
{
    MPI_File file;
    MPI_Offset length;
    open_it(&file, MPI_MODE_RDWR);
    OK(MPI_File_set_size(file, 0));
    for (int round = 1; round <= ROUNDS; round++) {
        OK(MPI_File_get_size(file, &length));
        CHECK(length == (round - 1) * 100, "%lld", (long long)length);
        MPI_Barrier(MPI_COMM_WORLD);
        char data[100] = {0};
        if (rank == round % size) OK(MPI_File_write_at(file, (round - 1) * 100, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
        all_written(file);
    }
    close_file(&file);
}

/* In atomic mode a read finds one rank's write whole, and what was written before, without a sync. */
static void atomic(void)
{
    enum { LONG = 20000 };
    static int data[LONG];
    MPI_File file;
    open_it(&file, MPI_MODE_RDWR);
    OK(MPI_File_set_atomicity(file, 1));
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < LONG; i++) data[i] = round * size + rank;
        OK(MPI_File_write_at(file, 0, data, LONG, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, data, LONG, MPI_INT, MPI_STATUS_IGNORE));
        for (int i = 1; i < LONG; i++) CHECK(data[i] == data[0], "round %d: %d and %d", round, data[0], data[i]);
        CHECK(data[0] / size == round, "round %d: %d is of another one", round, data[0]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close_file(&file);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 2, "usage: between FILE");
    snprintf(path, sizeof path, "%s", argv[1]);
    if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    rounds("pieces");
    rounds("view");
    rounds("together");
    closed();
    ways();
    lengths();
    atomic();
    if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
    return end();
}
