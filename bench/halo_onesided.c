/* halo_onesided: the halo exchange of halo.h by four MPI_Put and one MPI_Win_fence a step. With --document a step computes for 60 us
 * between both (by a sleep: for `weft sim run --compute none --clocks`). */
#include "halo.h"

static void exchange(struct halo *h)
{
    MPI_Win win = *(MPI_Win *)h->way;
    halo_gather(h);
    for (int side = 0; side < SIDES; side++) {
        MPI_Aint at = (MPI_Aint)halo_strip(h, halo_opposite(side));
        MPI_Put(halo_out(h, side), halo_count(h, side), halo_type(h, side), h->neighbor[side], at, h->n, MPI_UINT64_T, win);
    }
    if (h->b->document) bench_sleep(60e-6);
    MPI_Win_fence(0, win);
}

static void open_way(struct halo *h)
{
    static MPI_Win win;
    MPI_Aint room = (MPI_Aint)(sizeof(uint64_t) * 2 * SIDES * (size_t)h->n);
    MPI_Win_allocate(room, sizeof(uint64_t), MPI_INFO_NULL, h->grid, &h->strips, &win);
    h->way = &win;
    MPI_Win_fence(0, win);
}

static void close_way(struct halo *h) { MPI_Win_free(h->way); }

int main(int argc, char **argv) { return halo_main("halo_onesided", argc, argv); }
