/* MPI_Pack of one kind of type, in GB/s of packed data: what the pack_* benchmarks have in common. Each makes the type of
 * about so many packed bytes; the packed data are compared with a copy by its own loop. */
#ifndef PACK_H
#define PACK_H
#include "bench.h"

/* A type and what it is a type of. */
struct layout {
    MPI_Datatype type;
    int count;                                 /* elements of the type */
    size_t memory, packed;                     /* bytes of all of them */
    void (*copy)(struct layout *, char *from, char *to); /* the type's loop by hand */
    long n;                                    /* of use to `copy` */
    int *places;
};

struct pack_state {
    struct layout *layout;
    char *memory, *packed;
    int size;
};

static void packs(void *opaque, long iterations)
{
    struct pack_state *s = opaque;
    for (long i = 0; i < iterations; i++) {
        int position = 0;
        MPI_Pack(s->memory, s->layout->count, s->layout->type, s->packed, s->size, &position, MPI_COMM_SELF);
    }
}

static void pack_check(struct bench *b, struct pack_state *s, char *expected, unsigned seed)
{
    bench_fill(s->memory, s->layout->memory, seed);
    memset(s->packed, 0, s->layout->packed);
    packs(s, 1);
    s->layout->copy(s->layout, s->memory, expected);
    for (size_t i = 0; i < s->layout->packed; i++)
        if (s->packed[i] != expected[i]) bench_fail(b, "wrong packed byte", (long)i);
}

/* `make` fills in a layout of about `bytes` packed bytes. */
static int pack_main(const char *name, void (*make)(size_t bytes, struct layout *), int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, name, "4K,64K,1M,16M", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        struct layout l = {0};
        make(b.sizes[i], &l);
        MPI_Type_commit(&l.type);
        struct pack_state s = {&l, bench_buffer(&b, l.memory), NULL, 0};
        MPI_Pack_size(l.count, l.type, MPI_COMM_SELF, &s.size);
        s.packed = bench_buffer(&b, (size_t)s.size);
        char *expected = bench_buffer(&b, l.packed);
        pack_check(&b, &s, expected, 1);
        struct timing t = bench_measure(&b, packs, &s);
        pack_check(&b, &s, expected, 2);
        bench_report(&b, b.sizes[i], t, 1e-9 * (double)l.packed, "GB/s");
        MPI_Type_free(&l.type);
        free(s.memory), free(s.packed), free(expected), free(l.places);
    }
    MPI_Finalize();
    return 0;
}

#endif
