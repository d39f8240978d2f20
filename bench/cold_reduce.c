/* cold_reduce: see cold.h. */
#define NAME "cold_reduce"
#define OPERATION reduce
#include "cold.h"
