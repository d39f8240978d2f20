/* put_lock: see rma.h. */
#define NAME "put_lock"
#define OPERATION PUT
#define SYNC LOCK
#include "rma.h"
