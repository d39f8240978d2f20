/* halo_twosided: the halo exchange of halo.h by four MPI_Irecv, four MPI_Isend and MPI_Waitall a step. */
#include "halo.h"

static void exchange(struct halo *h)
{
    MPI_Request requests[2 * SIDES];
    halo_post(h, requests);
    MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
}

static void open_way(struct halo *h) { h->strips = bench_buffer(h->b, sizeof(uint64_t) * 2 * SIDES * (size_t)h->n); }

static void close_way(struct halo *h) { free(h->strips); }

int main(int argc, char **argv) { return halo_main("halo_twosided", argc, argv); }
