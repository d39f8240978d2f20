/* cold_bcast: see cold.h. */
#define NAME "cold_bcast"
#define OPERATION bcast
#include "cold.h"
