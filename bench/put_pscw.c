/* put_pscw: see rma.h. */
#define NAME "put_pscw"
#define OPERATION PUT
#define SYNC PSCW
#include "rma.h"
