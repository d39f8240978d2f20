/* What the test programs share: checks that say where they failed. */
#ifndef CHECK_H
#define CHECK_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* Ends the job with a line that names the place, unless `ok`. */
#define CHECK(ok, ...)                                                               \
    do {                                                                             \
        if (!(ok)) {                                                                 \
            fprintf(stderr, "%s:%d: rank %d: %s:", __FILE__, __LINE__, rank, #ok);  \
            fprintf(stderr, " " __VA_ARGS__);                                        \
            fprintf(stderr, "\n");                                                   \
            fflush(stderr);                                                          \
            MPI_Abort(MPI_COMM_WORLD, 3);                                            \
        }                                                                            \
    } while (0)

static inline int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

/* The call is refused, with an error of this class. */
#define FAILS(call, class)                                              \
    do {                                                                \
        int found = class_of(call);                                     \
        CHECK(found == (class), "class %d, expected %s", found, #class); \
    } while (0)

static inline void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Ends a program that found no fault. */
static inline int end(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("correct\n");
    MPI_Finalize();
    return 0;
}

#endif
