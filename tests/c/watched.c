// What a process shows of its memory stays small, whatever the machine has: tools that read all that is mapped, and calls
// that fill it, find what is in use. An argument says when all memory is locked: before MPI_Init, or after it.
//
// ranks: 1 2 5
// says: correct
#include "check.h"
#include <sys/mman.h>
#include <unistd.h>

static long kib(const char *name)
{
    char line[256];
    long value = -1;
    FILE *f = fopen("/proc/self/status", "r");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name), " %ld", &value);
    fclose(f);
    return value;
}

// Memory that a process may touch, shared or not, in KiB: what a leak check reads and what mlockall fills.
static long open_memory(void)
{
    char line[1024];
    long all = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        unsigned long start, end;
        char access[8];
        if (sscanf(line, "%lx-%lx %7s", &start, &end, access) == 3 && access[1] == 'w')
            all += (end - start) >> 10;
    }
    fclose(f);
    return all;
}

static void lock(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        perror("mlockall");
        exit(9);
    }
}

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "";
    if (strcmp(when, "early") == 0)
        lock();
    begin(&argc, &argv);
    if (strcmp(when, "late") == 0)
        lock();
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    long sum, mine = rank;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (long)size * (size - 1) / 2);
    long *base;
    MPI_Win win;
    MPI_Win_allocate(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&mine, 1, MPI_LONG, next, 0, 1, MPI_LONG, win);
    MPI_Win_fence(0, win);
    CHECK(base[0] == before);
    MPI_Win_free(&win);
    char *long_message = malloc(1 << 20);
    memset(long_message, rank, 1 << 20);
    MPI_Sendrecv_replace(long_message, 1 << 20, MPI_CHAR, next, 0, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(long_message[0] == before && long_message[(1 << 20) - 1] == before);
    free(long_message);

    // Others' memory is mapped where it was reached, so address space is not memory times ranks.
    long machine = sysconf(_SC_PHYS_PAGES) / 1024 * sysconf(_SC_PAGESIZE), space = kib("VmSize:");
    printf("rank %d: open %ld KiB, resident %ld, address space %ld\n", rank, open_memory(), kib("VmRSS:"), space);
    if (strcmp(when, "watched") != 0) { // tools have memory of their own
        CHECK(open_memory() < 256 << 10, "%ld KiB", open_memory());
        CHECK(kib("VmRSS:") < 128 << 10, "%ld KiB", kib("VmRSS:"));
        CHECK(space < machine + (4 << 20), "%ld KiB on a machine of %ld", space, machine);
    }
    return end();
}
