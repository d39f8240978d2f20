/* pack_indexed: MPI_Pack of single doubles at irregular places, one to five apart. */
#include "pack.h"

static void copy(struct layout *l, char *from, char *to)
{
    for (long i = 0; i < l->n; i++) memcpy(to + 8 * i, from + 8 * (long)l->places[i], 8);
}

static void make(size_t bytes, struct layout *l)
{
    int place = 0;
    l->n = (long)(bytes / 8) + 1, l->count = 1, l->copy = copy;
    l->places = malloc(sizeof(int) * (size_t)l->n);
    for (long i = 0; i < l->n; i++) l->places[i] = place, place += 1 + (int)(i * 7919 % 5);
    l->memory = 8 * (size_t)place, l->packed = 8 * (size_t)l->n;
    MPI_Type_create_indexed_block((int)l->n, 1, l->places, MPI_DOUBLE, &l->type);
}

int main(int argc, char **argv) { return pack_main("pack_indexed", make, argc, argv); }
