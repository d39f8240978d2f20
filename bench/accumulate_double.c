/* accumulate_double: see accumulate.h. */
#define NAME "accumulate_double"
#define ELEMENT double
#define TYPE MPI_DOUBLE
#include "accumulate.h"
