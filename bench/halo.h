/* A halo exchange on a periodic 2-D grid of processes, microseconds a step: what halo_onesided and halo_twosided have in
 * common, which is all but how the edges get to the neighbours.
 *
 *            UP              each rank has a tile of n by n numbers of 8 bytes; its rows lie one after another
 *         +-----+            a step: the four edges go to the four neighbours, and what came from a neighbour is
 *   LEFT  |     |  RIGHT             added to the edge on that side, first above and below, then left and right
 *         +-----+            the size is that of an edge, 8 n; columns are strided (MPI_Type_vector)
 *           DOWN
 *
 * What comes lands in strips of n numbers, one a side, and another four in every second step: a neighbour that is a step
 * ahead must not write what is still being read. Numbers wrap around, so sums are equal in any order. */
#ifndef HALO_H
#define HALO_H
#include "halo_grid.h"

enum { PROVEN = 5 }; /* steps that are repeated by hand */

/* Takes the four edges to the neighbours and returns when the strips of this step are there; defined by each program. */
static void exchange(struct halo *h);

/* Sets up `strips`, and takes them away. */
static void open_way(struct halo *h);
static void close_way(struct halo *h);

static inline void halo_add(uint64_t *edge, size_t stride, const uint64_t *strip, size_t n)
{
    for (size_t i = 0; i < n; i++) edge[i * stride] += strip[i];
}

static void steps(void *opaque, long iterations)
{
    struct halo *h = opaque;
    size_t n = (size_t)h->n;
    for (long i = 0; i < iterations; i++, h->step++) {
        exchange(h);
        for (int side = 0; side < SIDES; side++)
            halo_add(halo_edge(h, side), side < LEFT ? 1 : n, h->strips + halo_strip(h, side), n);
    }
}

static inline void halo_fill(uint64_t *tile, size_t n, int rank, unsigned round)
{
    for (size_t i = 0; i < n * n; i++) tile[i] = (i + 1) * 2654435761u + (uint64_t)rank * 40503 + round;
}

/* All tiles after PROVEN steps, by one process and without messages: no line of it is shared with the above. */
static inline void halo_by_hand(const struct halo *h, uint64_t *all, unsigned round)
{
    size_t n = (size_t)h->n, rows = (size_t)h->dims[0], columns = (size_t)h->dims[1], whole = n * n;
    uint64_t *edges = bench_buffer(h->b, sizeof(uint64_t) * SIDES * n * rows * columns);
    for (size_t r = 0; r < rows * columns; r++) halo_fill(all + r * whole, n, (int)r, round);
    for (int step = 0; step < PROVEN; step++) {
        for (size_t r = 0; r < rows * columns; r++) {
            const uint64_t *t = all + r * whole;
            uint64_t *e = edges + r * SIDES * n;
            for (size_t i = 0; i < n; i++)
                e[i] = t[i], e[n + i] = t[whole - n + i], e[2 * n + i] = t[i * n], e[3 * n + i] = t[i * n + n - 1];
        }
        for (size_t r = 0; r < rows * columns; r++) {
            size_t y = r / columns, x = r % columns;
            const uint64_t *above = edges + ((y + rows - 1) % rows * columns + x) * SIDES * n + n;
            const uint64_t *below = edges + ((y + 1) % rows * columns + x) * SIDES * n;
            const uint64_t *left = edges + (y * columns + (x + columns - 1) % columns) * SIDES * n + 3 * n;
            const uint64_t *right = edges + (y * columns + (x + 1) % columns) * SIDES * n + 2 * n;
            uint64_t *t = all + r * whole;
            for (size_t i = 0; i < n; i++)
                t[i] += above[i], t[whole - n + i] += below[i], t[i * n] += left[i], t[i * n + n - 1] += right[i];
        }
    }
    free(edges);
}

/* PROVEN steps from the beginning, compared with those by hand; returns the sum of all tiles. */
static inline uint64_t halo_verify(struct halo *h, unsigned round)
{
    size_t whole = (size_t)h->n * (size_t)h->n;
    halo_fill(h->tile, (size_t)h->n, h->b->rank, round);
    steps(h, PROVEN);
    uint64_t *all = bench_buffer(h->b, sizeof(uint64_t) * whole * (size_t)h->b->ranks), sum = 0, total;
    halo_by_hand(h, all, round);
    for (size_t i = 0; i < whole; i++) {
        if (h->tile[i] != all[(size_t)h->b->rank * whole + i]) bench_fail(h->b, "wrong number in the tile at", (long)i);
        sum += h->tile[i];
    }
    free(all);
    MPI_Allreduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, h->grid);
    return total;
}

/* On as many ranks as there are; sizes are rounded down to whole numbers. */
static inline int halo_main(const char *name, int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, name, "64,512,4K", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        struct halo h = {.b = &b, .n = (int)fmax(1, (double)(b.sizes[i] / 8))};
        halo_open(&h);
        h.tile = bench_buffer(&b, sizeof(uint64_t) * (size_t)h.n * (size_t)h.n);
        open_way(&h);
        halo_verify(&h, 1);
        struct timing t = bench_measure(&b, steps, &h);
        uint64_t sum = halo_verify(&h, 2);
        bench_report(&b, (size_t)h.n * 8, t, 1e6, "us");
        if (b.rank == 0) printf("{\"checksum\":\"%016llx\"}\n", (unsigned long long)sum);
        close_way(&h);
        halo_close(&h);
        free(h.tile);
    }
    MPI_Finalize();
    return 0;
}

#endif
