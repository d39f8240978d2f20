/* Writes a file, named by the first argument, in rounds, and prints `synced N` once MPI_File_sync has returned to all ranks in round N; then
 * it waits for a line. With a third argument it leaves out the sync, as a check of who looks for it. `synced FILE N check` says whether
 * the file has all of rounds 1 to N, on one rank. */
#include "../check.h"

#define OK(call) CHECK((call) == MPI_SUCCESS)

enum { RANKS = 4, PIECE = 5000, ROUNDS = 6, PART = PIECE * RANKS };

static void fill(int *data, int round, int of)
{
    for (int i = 0; i < PIECE; i++) data[i] = round * 1000003 + of * 10007 + i;
}

/* Ways to write a round, by turns: alone, together and in pieces that take turns, by the shared pointer. */
static void write_round(MPI_File file, int round, const int *data)
{
    MPI_Offset at = (MPI_Offset)(round - 1) * PART;
    MPI_Datatype type;
    switch (round % 3) {
    case 0:
        OK(MPI_File_write_at(file, at + rank * PIECE, data, PIECE, MPI_INT, MPI_STATUS_IGNORE));
        break;
    case 1: /* Elements of the ranks take turns, 100 at a time. */
        MPI_Type_vector(PIECE / 100, 100, 100 * RANKS, MPI_INT, &type);
        MPI_Type_commit(&type);
        OK(MPI_File_set_view(file, (at + rank * 100) * (MPI_Offset)sizeof(int), MPI_INT, type, "native", MPI_INFO_NULL));
        OK(MPI_File_write_at_all(file, 0, data, PIECE, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        MPI_Type_free(&type);
        break;
    default:
        OK(MPI_File_seek_shared(file, at, MPI_SEEK_SET));
        OK(MPI_File_write_ordered(file, data, PIECE, MPI_INT, MPI_STATUS_IGNORE));
    }
}

static int check(const char *path, int rounds)
{
    static int all[PART], data[PIECE];
    FILE *file = fopen(path, "r");
    CHECK(file || !rounds, "%s is not there", path);
    for (int round = 1; round <= rounds; round++) {
        size_t found = fread(all, sizeof(int), PART, file);
        CHECK(found == PART, "round %d: only %zu of %d words are there", round, found, PART);
        for (int of = 0; of < RANKS; of++) {
            fill(data, round, of);
            for (int i = 0; i < PIECE; i++) {
                int at = round % 3 == 1 ? (i / 100 * RANKS + of) * 100 + i % 100 : of * PIECE + i;
                CHECK(all[at] == data[i], "round %d, rank %d, word %d: %d, not %d", round, of, i, all[at], data[i]);
            }
        }
    }
    return end();
}

int main(int argc, char **argv)
{
    static int data[PIECE];
    MPI_File file;
    begin(&argc, &argv);
    if (argc == 4 && !strcmp(argv[3], "check")) return check(argv[1], atoi(argv[2]));
    CHECK(size == RANKS && argc >= 2);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int round = 1; round <= ROUNDS; round++) {
        fill(data, round, rank);
        write_round(file, round, data);
        if (argc == 2) OK(MPI_File_sync(file));
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            char line[16];
            printf("synced %d\n", round);
            fflush(stdout);
            CHECK(fgets(line, sizeof line, stdin));
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    OK(MPI_File_close(&file));
    return end();
}
