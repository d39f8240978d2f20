/* Questions to an MPI library, the same for every library, each with its answer on a line: `question = answer`. */
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int rank, size;

/* Prints a line of this rank. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Starts a sequence of random numbers, the same on every machine. */
void seed(uint64_t from);

/* The next number from 0 to n - 1, and from low to high. */
int below(int n);
int between(int low, int high);

/* The class of an error code, as a number of the ABI. */
int class_of(int code);

/* Numbers in parentheses, in a buffer that the next eight calls leave alone. */
const char *list(const int *numbers, int count);

/* A hash of bytes. */
unsigned hash(const void *bytes, size_t count);

void named_types(void);
void random_types(int count);
/* Packs; `external`: in the external form, too, which MPICH has for no struct and no darray; `elementary`: counts
 * elements, too, where MPICH does not end by a signal, in types of one predefined type. */
void packed(const char *name, MPI_Datatype type, int external, int elementary);
void topologies(int rounds);
void groups(int rounds);
void infos(int rounds);
void statuses(void);
void errors(void);
