/* put_flush: see rma.h. */
#define NAME "put_flush"
#define OPERATION PUT
#define SYNC FLUSH
#include "rma.h"
