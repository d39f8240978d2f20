/* What the programs check themselves with: the exit code is 1 after a failed check. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(what)                                                          \
    do {                                                                     \
        if (!(what)) {                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            failures++;                                                      \
        }                                                                    \
    } while (0)

/* The call returns this class, and MPI_Error_string says these words. */
#define REFUSED(call, class, words) \
    refused((call), (class), (words), #call, __FILE__, __LINE__)

static inline void refused(int code, int class, const char *words, const char *call,
                           const char *file, int line) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, found = -1;
    MPI_Error_class(code, &found);
    MPI_Error_string(code, text, &length);
    if (found != class || strstr(text, words) == NULL || (int)strlen(text) != length) {
        fprintf(stderr, "%s:%d: %s: class %d (expected %d): \"%s\" (expected \"%s\")\n", file, line,
                call, found, class, text, words);
        failures++;
    }
}

static inline void begin(void) {
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

static inline int end(void) {
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    return failures != 0;
}
