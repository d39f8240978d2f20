/* pack_struct: MPI_Pack of structs with a gap: three doubles, a char, a float. */
#include "pack.h"

static void copy(struct layout *l, char *from, char *to)
{
    for (long i = 0; i < l->n; i++)
        memcpy(to + 29 * i, from + 32 * i, 25), memcpy(to + 29 * i + 25, from + 32 * i + 28, 4);
}

static void make(size_t bytes, struct layout *l)
{
    int lengths[] = {3, 1, 1};
    MPI_Aint places[] = {0, 24, 28};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_CHAR, MPI_FLOAT};
    l->n = (long)(bytes / 29) + 1, l->count = (int)l->n, l->copy = copy;
    l->memory = 32 * (size_t)l->n, l->packed = 29 * (size_t)l->n;
    MPI_Type_create_struct(3, lengths, places, types, &l->type);
}

int main(int argc, char **argv) { return pack_main("pack_struct", make, argc, argv); }
