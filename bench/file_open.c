/* file_open: MPI_File_open and MPI_File_close of one of 1,000 files after the other; us each. */
#include "bench.h"
#include <fcntl.h>
#include <sys/stat.h>

#define FILES 1000

struct state {
    struct bench *b;
    long next;
    char folder[900];
};

static void path(const struct state *s, long number, char *name, size_t room)
{
    snprintf(name, room, "%s/%ld", s->folder, number % FILES);
}

static void opens(void *opaque, long iterations)
{
    struct state *s = opaque;
    char name[1024];
    MPI_File file;
    for (long i = 0; i < iterations; i++) {
        path(s, s->next++, name, sizeof name);
        if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file))
            bench_fail(s->b, "cannot open file", s->next - 1);
        MPI_File_close(&file);
    }
}

/* What is opened is the file of that name: it holds its number. */
static void verify(struct state *s)
{
    char name[1024];
    MPI_File file;
    for (long number = 3; number < FILES; number += 400) {
        long found = -1;
        path(s, number, name, sizeof name);
        if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file)) bench_fail(s->b, "cannot open", number);
        MPI_File_read_at(file, 0, &found, sizeof found, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
        if (found != number) bench_fail(s->b, "the file holds another number", found);
    }
}

int main(int argc, char **argv)
{
    struct bench b;
    char name[1024];
    bench_begin(&b, "file_open", "0", &argc, &argv);
    struct state s = {.b = &b};
    bench_path(&b, s.folder, sizeof s.folder);
    if (b.rank == 0) {
        if (mkdir(s.folder, 0700)) bench_fail(&b, "cannot make the folder", errno);
        for (long i = 0; i < FILES; i++) {
            path(&s, i, name, sizeof name);
            int fd = open(name, O_CREAT | O_WRONLY, 0600);
            if (write(fd, &i, sizeof i) != sizeof i) bench_fail(&b, "cannot make file", i);
            close(fd);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    verify(&s);
    struct timing t = bench_measure(&b, opens, &s);
    verify(&s);
    bench_report(&b, 0, t, 1e6, "us");
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 0; b.rank == 0 && i < FILES; i++) path(&s, i, name, sizeof name), unlink(name);
    if (b.rank == 0) rmdir(s.folder);
    MPI_Finalize();
    return 0;
}
