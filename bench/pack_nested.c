/* pack_nested: MPI_Pack of a face of a cube of doubles, one double thick, across the rows: vectors in a vector. */
#include "pack.h"

/* Rows of 12 doubles, n of them in each of n planes of n + 2 rows. */
enum { ROW = 12 * 8 };

static void copy(struct layout *l, char *from, char *to)
{
    for (long k = 0; k < l->n; k++)
        for (long i = 0; i < l->n; i++) memcpy(to + 8 * (k * l->n + i), from + ROW * (k * (l->n + 2) + i), 8);
}

static void make(size_t bytes, struct layout *l)
{
    MPI_Datatype rows;
    l->n = (long)sqrt((double)bytes / 8) + 1, l->count = 1, l->copy = copy;
    l->memory = (size_t)(ROW * l->n * (l->n + 2)), l->packed = 8 * (size_t)(l->n * l->n);
    MPI_Type_vector((int)l->n, 1, 12, MPI_DOUBLE, &rows);
    MPI_Type_create_hvector((int)l->n, 1, ROW * (l->n + 2), rows, &l->type);
    MPI_Type_free(&rows);
}

int main(int argc, char **argv) { return pack_main("pack_nested", make, argc, argv); }
