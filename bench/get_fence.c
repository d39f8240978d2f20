/* get_fence: see rma.h. */
#define NAME "get_fence"
#define OPERATION GET
#define SYNC FENCE
#include "rma.h"
