// What the programs about collective operations share.
#ifndef COLLECTIVES_H
#define COLLECTIVES_H
#include "catalogue.h"

static int counts[4] = {1, 1, 1, 1}, places[4] = {0, 100, 200, 300}, others[4] = {1, 1, 1, 1};

static inline MPI_Comm inter(void) {
    MPI_Comm half, both;
    MPI_Comm_split(world, rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 9, &both);
    MPI_Comm_free(&half);
    return both;
}
static inline MPI_Comm ring(int periodic) {
    MPI_Comm comm;
    MPI_Cart_create(world, 1, &size, &periodic, 0, &comm);
    return comm;
}

#endif
