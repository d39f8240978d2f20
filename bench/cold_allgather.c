/* cold_allgather: see cold.h. */
#define NAME "cold_allgather"
#define OPERATION allgather
#include "cold.h"
