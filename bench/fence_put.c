/* fence_put: a fence after one put by each rank, at the next; see fence.h. */
#define NAME "fence_put"
#define PUTS 1
#include "fence.h"
