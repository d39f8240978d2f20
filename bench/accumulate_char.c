/* accumulate_char: see accumulate.h. MPI_CHAR as programs use it, though the standard has no sum of it. */
#define NAME "accumulate_char"
#define ELEMENT char
#define TYPE MPI_CHAR
#include "accumulate.h"
