/* Reads and writes of files: what the file_* programs share. The program that includes this file says NAME, SIZES, LAYOUT
 * (below), WRITES (1 or 0) and ACCESS, the function; SYNC, if the data must be on the device when an operation is over.
 *
 * The file lies in --folder, which decides what is measured: memory (tmpfs), or a device behind the page cache. What is read
 * was just written, and comes from the page cache. Contents are checked by the system's own calls, outside the timed part. */
#include "bench.h"
#include <fcntl.h>

#define BLOCK 1   /* ranks' blocks of `size` bytes follow each other: GB/s of all */
#define STRIDED 2 /* pieces of `size` bytes, in which ranks take turns; 256 KiB a rank: us */
#define SMALL 3   /* a call each `size` bytes, in a part of the file that is the rank's own: us */

#define SHARE (256 << 10)

struct state {
    struct bench *b;
    MPI_File file;
    size_t size, pieces;
    unsigned char *data;
};

/* Where a piece of this rank lies. */
static off_t place(const struct state *s, size_t piece)
{
    size_t rank = (size_t)s->b->rank, ranks = (size_t)s->b->ranks;
    return (off_t)(LAYOUT == STRIDED ? (piece * ranks + rank) * s->size : (rank * s->pieces + piece) * s->size);
}

static void accesses(void *opaque, long iterations)
{
    struct state *s = opaque;
    size_t count = LAYOUT == SMALL ? s->size : s->pieces * s->size;
    for (long i = 0; i < iterations; i++) {
        size_t piece = LAYOUT == SMALL ? (size_t)i % s->pieces : 0;
        MPI_Offset at = LAYOUT == STRIDED ? 0 : place(s, piece);
        ACCESS(s->file, at, s->data + piece * s->size, (int)count, MPI_BYTE, MPI_STATUS_IGNORE);
#ifdef SYNC
        MPI_File_sync(s->file);
#endif
    }
}

/* Moves every piece between the file and `data` by itself. */
static void by_system(struct state *s, const char *name, int writes)
{
    int fd = open(name, writes ? O_WRONLY : O_RDONLY);
    for (size_t i = 0; i < s->pieces; i++) {
        unsigned char *data = s->data + i * s->size;
        ssize_t moved = writes ? pwrite(fd, data, s->size, place(s, i)) : pread(fd, data, s->size, place(s, i));
        if (moved != (ssize_t)s->size) bench_fail(s->b, "the system moved so many bytes of a piece", (long)moved);
    }
    close(fd);
}

/* One access of everything, with new contents; what is read by one way was written by the other. */
static void verify(struct state *s, const char *name, unsigned seed)
{
    size_t bytes = s->pieces * s->size;
    bench_fill(s->data, bytes, seed + (unsigned)s->b->rank);
    if (!WRITES) by_system(s, name, 1), memset(s->data, 0, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    accesses(s, LAYOUT == SMALL ? (long)s->pieces : 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (WRITES) memset(s->data, 0, bytes), by_system(s, name, 0);
    bench_check(s->b, s->data, bytes, seed + (unsigned)s->b->rank);
}

/* This rank sees its pieces alone. */
static void strided_view(struct state *s)
{
    MPI_Datatype type;
    MPI_Type_vector((int)s->pieces, (int)s->size, (int)s->size * s->b->ranks, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(s->file, place(s, 0), MPI_BYTE, type, "native", MPI_INFO_NULL);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    struct bench b;
    char name[1024];
    bench_begin(&b, NAME, SIZES, &argc, &argv);
    bench_path(&b, name, sizeof name);
    for (int i = 0; i < b.size_count; i++) {
        struct state s = {.b = &b, .size = b.sizes[i] ? b.sizes[i] : 1};
        s.pieces = LAYOUT == BLOCK || s.size >= SHARE ? 1 : SHARE / s.size;
        s.data = bench_buffer(&b, s.pieces * s.size);
        int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
        if (MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &s.file)) bench_fail(&b, "cannot open the file", i);
        MPI_File_set_errhandler(s.file, MPI_ERRORS_ARE_FATAL);
        if (LAYOUT == STRIDED) strided_view(&s);
        verify(&s, name, 10);
        struct timing t = bench_measure(&b, accesses, &s);
        verify(&s, name, 20);
        double all = 1e-9 * (double)(s.size * (size_t)b.ranks);
        if (LAYOUT == BLOCK) bench_report(&b, b.sizes[i], t, all, "GB/s");
        else bench_report(&b, b.sizes[i], t, 1e6, "us");
        MPI_File_close(&s.file);
        free(s.data);
    }
    MPI_Finalize();
    return 0;
}
