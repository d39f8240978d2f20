/* fence_neighbors: a fence after a put by each rank at each of 8 neighbours; see fence.h. */
#define NAME "fence_neighbors"
#define PUTS 8
#include "fence.h"
