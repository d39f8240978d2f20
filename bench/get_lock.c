/* get_lock: see rma.h. */
#define NAME "get_lock"
#define OPERATION GET
#define SYNC LOCK
#include "rma.h"
