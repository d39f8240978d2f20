/* cold_allreduce: see cold.h. */
#define NAME "cold_allreduce"
#define OPERATION allreduce
#include "cold.h"
