/* pack_vector: MPI_Pack of a vector of doubles, two of every eight. */
#include "pack.h"

static void copy(struct layout *l, char *from, char *to)
{
    for (long i = 0; i < l->n; i++) memcpy(to + 16 * i, from + 64 * i, 16);
}

static void make(size_t bytes, struct layout *l)
{
    l->n = (long)(bytes / 16) + 1, l->count = 1, l->copy = copy;
    l->memory = 64 * (size_t)l->n, l->packed = 16 * (size_t)l->n;
    MPI_Type_vector((int)l->n, 2, 8, MPI_DOUBLE, &l->type);
}

int main(int argc, char **argv) { return pack_main("pack_vector", make, argc, argv); }
