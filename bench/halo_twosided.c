/* halo_twosided: the halo exchange of halo.h by four MPI_Irecv, four MPI_Isend and MPI_Waitall a step. */
#include "halo.h"

static void exchange(struct halo *h)
{
    MPI_Request requests[2 * SIDES];
    for (int side = 0; side < SIDES; side++)
        MPI_Irecv(h->strips + halo_strip(h, side), h->n, MPI_UINT64_T, h->neighbor[side], side, h->grid, &requests[side]);
    for (int side = 0; side < SIDES; side++)
        MPI_Isend(halo_edge(h, side), halo_count(h, side), halo_type(h, side), h->neighbor[side], halo_opposite(side), h->grid,
                  &requests[SIDES + side]);
    MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
}

static void open_way(struct halo *h) { h->strips = bench_buffer(h->b, sizeof(uint64_t) * 2 * SIDES * (size_t)h->n); }

static void close_way(struct halo *h) { free(h->strips); }

int main(int argc, char **argv) { return halo_main("halo_twosided", argc, argv); }
