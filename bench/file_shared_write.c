/* file_shared_write: MPI_File_write_shared of all ranks at once, back to back; us each. */
#include "bench.h"

struct state {
    MPI_File file;
    int bytes;
    long written; /* by each rank, since the file's beginning */
    unsigned char *data;
};

/* Now and then they begin at the file's beginning again, so that the file does not grow for ever. */
static void writes(void *opaque, long iterations)
{
    struct state *s = opaque;
    for (long i = 0; i < iterations; i++, s->written++) {
        if (s->written == 4096) MPI_File_seek_shared(s->file, s->written = 0, MPI_SEEK_SET);
        MPI_File_write_shared(s->file, s->data, s->bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    }
}

/* Each rank writes some pieces that are all its number: as many must be found of each, whole, in any order. */
static void verify(struct bench *b, struct state *s)
{
    enum { TIMES = 10 };
    int found = 0;
    MPI_File_seek_shared(s->file, s->written = 0, MPI_SEEK_SET);
    memset(s->data, b->rank + 1, (size_t)s->bytes);
    writes(s, TIMES);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < TIMES * b->ranks; i++) {
        MPI_File_read_at(s->file, (MPI_Offset)i * s->bytes, s->data, s->bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        for (int k = 1; k < s->bytes; k++)
            if (s->data[k] != s->data[0]) bench_fail(b, "a piece is mixed, number", i);
        found += s->data[0] == b->rank + 1;
    }
    if (found != TIMES) bench_fail(b, "wrong number of pieces of a rank", found);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    struct bench b;
    char name[1024];
    bench_begin(&b, "file_shared_write", "8,512,4K", &argc, &argv);
    bench_path(&b, name, sizeof name);
    for (int i = 0; i < b.size_count; i++) {
        struct state s = {.bytes = b.sizes[i] ? (int)b.sizes[i] : 1, .data = bench_buffer(&b, b.sizes[i])};
        int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
        if (MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &s.file)) bench_fail(&b, "cannot open the file", i);
        MPI_File_set_errhandler(s.file, MPI_ERRORS_ARE_FATAL);
        verify(&b, &s);
        struct timing t = bench_measure(&b, writes, &s);
        verify(&b, &s);
        bench_report(&b, b.sizes[i], t, 1e6, "us");
        MPI_File_close(&s.file);
        free(s.data);
    }
    MPI_Finalize();
    return 0;
}
