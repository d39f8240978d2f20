/* What the tests of bad input share: a call that must fail with a class, and words of its text. */
#ifndef BAD_H
#define BAD_H
#include "check.h"

/* Does the code have this class, and does its text contain all words (separated by `|`)? */
static void expect(int line, int code, int expected, const char *words)
{
    char text[MPI_MAX_ERROR_STRING] = "", copy[256], *word;
    int class = -1, length;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    CHECK(class == expected, "line %d: class %d, expected %d: %s", line, class, expected, text);
    strcpy(copy, words);
    for (word = strtok(copy, "|"); word; word = strtok(NULL, "|"))
        CHECK(strstr(text, word), "line %d: no '%s' in: %s", line, word, text);
}

#define BAD(expected, words, call) expect(__LINE__, call, MPI_ERR_##expected, words)

/* Errors are returned from now on. */
static inline void begin_returning(int *argc, char ***argv)
{
    begin(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

/* The library works on. */
static inline void works(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, got = -1, sum;
    MPI_Sendrecv(&rank, 1, MPI_INT, right, 1, &got, 1, MPI_INT, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(got == left && sum == size * (size - 1) / 2);
}

#endif
