/* get_pscw: see rma.h. */
#define NAME "get_pscw"
#define OPERATION GET
#define SYNC PSCW
#include "rma.h"
