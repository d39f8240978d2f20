// What the programs about windows share.
#ifndef WINDOWS_H
#define WINDOWS_H
#include "catalogue.h"

static int memory[64];

// Returns a window over `memory`.
static inline MPI_Win window(void) {
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, world, &win);
    return win;
}
// Returns a group of one rank of the world.
static inline MPI_Group one(int member) {
    MPI_Group all, group;
    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, 1, &member, &group);
    MPI_Group_free(&all);
    return group;
}
static inline void put(int target, int place, MPI_Win win) { MPI_Put(ints, 1, MPI_INT, target, place, 1, MPI_INT, win); }
static inline void get(int target, int place, MPI_Win win) { MPI_Get(more, 1, MPI_INT, target, place, 1, MPI_INT, win); }

#endif
