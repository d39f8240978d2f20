/* get_flush: see rma.h. */
#define NAME "get_flush"
#define OPERATION GET
#define SYNC FLUSH
#include "rma.h"
