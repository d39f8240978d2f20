/* cold_latency: see cold.h. */
#define NAME "cold_latency"
#define OPERATION ping_pong
#include "cold.h"
