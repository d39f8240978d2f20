/* Questions to an MPI library, the same for every library. Each prints its answer on a line: `question = answer`. */
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

/* Return the next random number: from 0 to n - 1, and from low to high. */
int below(int n);
int between(int low, int high);

/* Returns the class of an error code, as a number of the ABI. */
int class_of(int code);

/* Returns numbers in parentheses, in a buffer that the next eight calls do not overwrite. */
const char *list(const int *numbers, int count);

/* Returns a hash of bytes. */
unsigned hash(const void *bytes, size_t count);

void named_types(void);
void random_types(int count);
/* Packs. `external`: also in the external form, which MPICH has for no struct and no darray. `elementary`: also counts
 * elements in types of one predefined type; for other types MPICH ends by a signal. */
void packed(const char *name, MPI_Datatype type, int external, int elementary);
void topologies(int rounds);
void groups(int rounds);
void infos(int rounds);
void statuses(void);
void errors(void);
