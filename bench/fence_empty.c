/* fence_empty: a fence after no put; see fence.h. */
#define NAME "fence_empty"
#define PUTS 0
#include "fence.h"
