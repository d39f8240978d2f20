/* A periodic 2-D grid of processes, each with a tile of n by n numbers of 8 bytes, its rows one after another: where edges
 * and the strips of the neighbours lie, and how they travel as messages. */
#ifndef HALO_GRID_H
#define HALO_GRID_H
#include "bench.h"

enum { UP, DOWN, LEFT, RIGHT, SIDES };

struct halo {
    struct bench *b;
    int n, dims[2], neighbor[SIDES];
    MPI_Comm grid;
    MPI_Datatype column;
    uint64_t *tile, *strips; /* the strips of even steps, then those of odd ones */
    long step;
    void *way;               /* what the including program keeps */
};

static inline int halo_opposite(int side) { return side ^ 1; }

/* Where the strip of a side lies, in numbers. */
static inline size_t halo_strip(const struct halo *h, int side) { return (size_t)(h->step % 2 * SIDES + side) * (size_t)h->n; }

static inline uint64_t *halo_edge(struct halo *h, int side)
{
    size_t n = (size_t)h->n;
    return h->tile + (side == DOWN ? (n - 1) * n : side == RIGHT ? n - 1 : 0);
}

/* How an edge is described to MPI. */
static inline int halo_count(const struct halo *h, int side) { return side < LEFT ? h->n : 1; }
static inline MPI_Datatype halo_type(const struct halo *h, int side) { return side < LEFT ? MPI_UINT64_T : h->column; }

/* Posts the messages of a step: the edges to the neighbours, theirs into the strips. */
static inline void halo_post(struct halo *h, MPI_Request requests[2 * SIDES])
{
    for (int side = 0; side < SIDES; side++)
        MPI_Irecv(h->strips + halo_strip(h, side), h->n, MPI_UINT64_T, h->neighbor[side], side, h->grid, &requests[side]);
    for (int side = 0; side < SIDES; side++)
        MPI_Isend(halo_edge(h, side), halo_count(h, side), halo_type(h, side), h->neighbor[side], halo_opposite(side), h->grid,
                  &requests[SIDES + side]);
}

/* Places this rank on the grid, for tiles of n by n. */
static inline void halo_open(struct halo *h)
{
    int periods[2] = {1, 1};
    MPI_Dims_create(h->b->ranks, 2, h->dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, h->dims, periods, 0, &h->grid);
    MPI_Cart_shift(h->grid, 0, 1, &h->neighbor[UP], &h->neighbor[DOWN]);
    MPI_Cart_shift(h->grid, 1, 1, &h->neighbor[LEFT], &h->neighbor[RIGHT]);
    MPI_Type_vector(h->n, 1, h->n, MPI_UINT64_T, &h->column);
    MPI_Type_commit(&h->column);
}

static inline void halo_close(struct halo *h)
{
    MPI_Type_free(&h->column);
    MPI_Comm_free(&h->grid);
}

#endif
