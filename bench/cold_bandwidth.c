/* cold_bandwidth: see cold.h. */
#define NAME "cold_bandwidth"
#define OPERATION window
#include "cold.h"
