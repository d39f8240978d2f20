/* cold_alltoall: see cold.h. */
#define NAME "cold_alltoall"
#define OPERATION alltoall
#include "cold.h"
