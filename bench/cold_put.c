/* cold_put: see cold.h. */
#define NAME "cold_put"
#define OPERATION put
#include "cold.h"
