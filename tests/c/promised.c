// Memory of windows and of MPI_Alloc_mem is promised, not filled: it takes nothing before it is touched, is zero then,
// and may be had again. What no machine has is an error that leaves all as it was.
//
// ranks: 1 2 4
// says: correct
#include "check.h"
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE ((MPI_Aint)256 << 20)
#define TOO_LARGE ((MPI_Aint)1 << 44)

// Pages that this process has touched, of the program's and of shared memory.
static long resident(void)
{
    long total, resident;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f != NULL && fscanf(f, "%ld %ld", &total, &resident) == 2);
    fclose(f);
    return resident;
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

// Pages of the files of shared memory that are there, whoever has touched or filled them.
static long filled(void)
{
    long pages = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char name[300], path[300] = "";
        struct stat file;
        snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
        if (readlink(name, path, sizeof path - 1) > 0 && strncmp(path, "/memfd:weft", 11) == 0 &&
            stat(name, &file) == 0)
            pages += file.st_blocks * 512 / sysconf(_SC_PAGESIZE);
    }
    closedir(dir);
    return pages;
}

static long before_pages, before_faults, before_filled;

static void start(void)
{
    before_pages = resident();
    before_faults = faults();
    before_filled = filled();
}

// Less than a hundredth of it was touched.
static void untouched(const char *what)
{
    long limit = LARGE / sysconf(_SC_PAGESIZE) / 100;
    long pages = resident() - before_pages, count = faults() - before_faults, all = filled() - before_filled;
    CHECK(pages < limit && count < limit && all < limit, "%s: %ld pages, %ld faults, %ld in the files", what, pages, count,
          all);
}

// A page here and there is zero, and keeps what is written.
static void use(char *base, char value)
{
    for (MPI_Aint at = 0; at < LARGE; at += LARGE / 8 - 1) {
        CHECK(base[at] == 0, "%d at %ld", base[at], (long)at);
        base[at] = value;
    }
    CHECK(base[LARGE - 1] == 0);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    char *base;
    MPI_Win win;
    for (int round = 0; round < 3; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        start();
        CHECK(!MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        untouched("MPI_Win_allocate");
        use(base, 1);
        MPI_Win_free(&win);

        start();
        CHECK(!MPI_Win_allocate_shared(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        untouched("MPI_Win_allocate_shared");
        use(base, 2);
        // Peers see it, though they have never looked so far.
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Aint bytes;
        int unit;
        char *theirs;
        MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &theirs);
        CHECK(bytes == LARGE && theirs[0] == 2 && theirs[LARGE - 1] == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_free(&win);

        start();
        CHECK(!MPI_Alloc_mem(LARGE, MPI_INFO_NULL, &base));
        untouched("MPI_Alloc_mem");
        use(base, 3);
        MPI_Free_mem(base);

        FAILS(MPI_Win_allocate(TOO_LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_NO_MEM);
        FAILS(MPI_Win_allocate_shared(TOO_LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_NO_MEM);
        FAILS(MPI_Alloc_mem(TOO_LARGE, MPI_INFO_NULL, &base), MPI_ERR_NO_MEM);
    }
    // Windows that grow, each while the one before is there: peers open more each time.
    MPI_Win wins[8];
    long *words, got;
    for (int i = 0; i < 8; i++) {
        CHECK(!MPI_Win_allocate((MPI_Aint)1 << (16 + i), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &wins[i]));
        MPI_Win_lock_all(0, wins[i]);
        long value = 100 * i + rank, last = ((MPI_Aint)1 << (16 + i)) / 8 - 1;
        MPI_Put(&value, 1, MPI_LONG, (rank + 1) % size, last, 1, MPI_LONG, wins[i]);
        MPI_Win_flush_all(wins[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Get(&got, 1, MPI_LONG, rank, last, 1, MPI_LONG, wins[i]);
        MPI_Win_flush_all(wins[i]);
        CHECK(got == 100 * i + (rank + size - 1) % size, "%ld", got);
        MPI_Win_unlock_all(wins[i]);
    }
    for (int i = 0; i < 8; i++)
        MPI_Win_free(&wins[i]);
    return end();
}
