/* put_fence: see rma.h. */
#define NAME "put_fence"
#define OPERATION PUT
#define SYNC FENCE
#include "rma.h"
