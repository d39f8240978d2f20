// ranks: 1 3
//
// MPI_UNIVERSE_SIZE: children get at least the number of running processes, and otherwise the value of their parents. The
// arguments are the expected values of the two parents and of their child; "none" means no value. An argument ":" reaches a
// spawned program.
#include "check.h"

/* Returns the attribute, or -1 if there is none. */
static int universe(void)
{
    int flag, *value;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
    return flag ? *value : -1;
}

static void is(const char *expected)
{
    int size = universe();
    CHECK(size == (strcmp(expected, "none") == 0 ? -1 : atoi(expected)), "universe of %d, expected %s", size, expected);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    int others, told;
    begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        CHECK(argc == 4 && strcmp(argv[1], ":") == 0 && strcmp(argv[3], "\\:") == 0, "%d arguments: %s", argc, argv[1]);
        if (strcmp(argv[2], "") != 0) is(argv[2]);
        MPI_Comm_remote_size(parent, &others);
        MPI_Bcast(&told, 1, MPI_INT, 0, parent);
        CHECK(universe() == -1 || universe() >= others + size, "%d are told for %d + %d", universe(), others, size);
        CHECK(universe() == told || universe() == others + size, "%d, parents %d", universe(), told);
        MPI_Comm_disconnect(&parent);
        return end();
    }
    if (argc > 1) is(argv[1]);
    char *arguments[] = {":", argc > 2 ? argv[2] : "", "\\:", NULL};
    MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    told = universe();
    MPI_Bcast(&told, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    MPI_Comm_disconnect(&inter);
    return end();
}
