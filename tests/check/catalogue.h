// Table of small MPI programs, each in a function. An erroneous program has the class that the checking mode must report, and the report must
// name each line that ends in "// named". A correct program must run without a report. Each runs on the number of ranks in its head.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A table need not use all of these.
#define SPARE __attribute__((unused)) static
static int rank, size;
static MPI_Comm world = MPI_COMM_WORLD;
SPARE int ints[2000], more[2000];
SPARE double doubles[200];
SPARE int large[1 << 16];
SPARE MPI_Status *const no_status = MPI_STATUS_IGNORE;
SPARE MPI_Status *const no_statuses = MPI_STATUSES_IGNORE;

struct program {
    const char *name;
    void (*run)(void);
    struct program *next;
};
static struct program *programs;

#define PROGRAM(name)                                            \
    static void name(void);                                      \
    __attribute__((constructor)) static void add_##name(void) {  \
        static struct program own = {#name, name, NULL};         \
        own.next = programs, programs = &own;                    \
    }                                                            \
    static void name(void)
#define ERRONEOUS(name, class, ranks) PROGRAM(name)
#define CORRECT(name, ranks) PROGRAM(name)

int main(int argc, char **argv) {
    int provided, n = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    for (struct program *program = programs; program; program = program->next) {
        if (argc > 1 && !strcmp(argv[1], program->name)) program->run(), n++;
    }
    MPI_Finalize();
    if (rank == 0) printf("%s\n", n == 1 ? "end" : "no such program");
    return n != 1;
}
