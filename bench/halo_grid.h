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
    uint64_t *columns;       /* with --document: LEFT and RIGHT, which the program itself has gathered; else NULL */
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

/* Gathers the columns, unless MPI does it. */
static inline void halo_gather(struct halo *h)
{
    for (int side = LEFT; h->columns && side < SIDES; side++)
        for (int i = 0; i < h->n; i++) h->columns[(side - LEFT) * h->n + i] = halo_edge(h, side)[(size_t)i * (size_t)h->n];
}

/* How an edge is described to MPI: a column is strided, or has been gathered. */
static inline int halo_is_plain(const struct halo *h, int side) { return side < LEFT || h->columns; }
static inline int halo_count(const struct halo *h, int side) { return halo_is_plain(h, side) ? h->n : 1; }
static inline MPI_Datatype halo_type(const struct halo *h, int side) { return halo_is_plain(h, side) ? MPI_UINT64_T : h->column; }
static inline const uint64_t *halo_out(struct halo *h, int side)
{
    return side >= LEFT && h->columns ? h->columns + (side - LEFT) * h->n : halo_edge(h, side);
}

/* Posts the messages of a step: the edges to the neighbours, theirs into the strips. */
static inline void halo_post(struct halo *h, MPI_Request requests[2 * SIDES])
{
    halo_gather(h);
    for (int place = 0; place < SIDES; place++) {
        int side = h->columns ? halo_opposite(place) : place; /* with --document in the order in which the messages come */
        MPI_Irecv(h->strips + halo_strip(h, side), h->n, MPI_UINT64_T, h->neighbor[side], side, h->grid, &requests[place]);
    }
    for (int side = 0; side < SIDES; side++)
        MPI_Isend(halo_out(h, side), halo_count(h, side), halo_type(h, side), h->neighbor[side], halo_opposite(side), h->grid,
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
    h->columns = h->b->document ? bench_buffer(h->b, sizeof(uint64_t) * 2 * (size_t)h->n) : NULL;
}

static inline void halo_close(struct halo *h)
{
    free(h->columns);
    MPI_Type_free(&h->column);
    MPI_Comm_free(&h->grid);
}

#endif
