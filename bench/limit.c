/* limit: what the machine itself can do, without MPI. Two processes on two processors share an anonymous mapping.
 *
 *     limit [--sizes A,B,C] [--seconds S] [--cpus A,B] [--distance]
 *
 * ping-pong: each process writes a cache line of its own and waits for the other's; half a round trip is the least that
 *   any message can take ("ping_pong", us).
 * copy: memcpy in one process ("copy", GB/s) and in both at once, added up ("copy_both", GB/s); for each size the same
 *   two buffers again and again, as in the bandwidth benchmark; not with --distance. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_SIZES 64
#define SAMPLES 4096

struct line {
    _Alignas(128) _Atomic uint64_t value; /* 128: processors fetch lines in pairs */
};

struct shared {
    struct line lines[2];
    struct line arrive[2];
    _Alignas(128) double rate[2];
};

static struct shared *shared;
static int me; /* 0 or 1 */
static double seconds = 0.2;
static uint64_t phase;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* Both processes have come here. */
static void meet(void)
{
    phase++;
    atomic_store(&shared->arrive[me].value, phase);
    while (atomic_load(&shared->arrive[1 - me].value) < phase) {}
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *name, size_t size, const char *unit, double value, double best)
{
    printf("{\"limit\":\"%s\",\"size\":%zu,\"value\":%.6g,\"unit\":\"%s\",\"best\":%.6g}\n", name, size, value, unit, best);
    fflush(stdout);
}

static void ping_pong(void)
{
    enum { TURNS = 5000 };
    static double samples[SAMPLES];
    _Atomic uint64_t *mine = &shared->lines[me].value, *other = &shared->lines[1 - me].value;
    uint64_t turn = 0;
    int count = 0;
    meet();
    for (double first = now(); count < SAMPLES;) {
        double begin = now();
        for (int i = 0; i < TURNS; i++) {
            turn++;
            if (me == 0) atomic_store_explicit(mine, turn, memory_order_release);
            while (atomic_load_explicit(other, memory_order_acquire) < turn) {}
            if (me == 1) atomic_store_explicit(mine, turn, memory_order_release);
        }
        samples[count++] = (now() - begin) / (2 * TURNS);
        if (me == 0) shared->rate[0] = now() - first < seconds;
        meet();
        int more = shared->rate[0] != 0;
        meet();
        if (!more) break;
    }
    qsort(samples, (size_t)count, sizeof *samples, ascending);
    if (me == 0) print("ping_pong", 8, "us", 1e6 * samples[count / 2], 1e6 * samples[0]);
}

/* Median and best rate of memcpy in this process, in GB/s. */
static double copy_rate(char *to, const char *from, size_t size, double *best)
{
    static double samples[SAMPLES];
    long turns = 1 + (long)(1e6 / (double)(size + 64));
    int count = 0;
    memcpy(to, from, size);
    for (double first = now(); count < SAMPLES && (count < 3 || now() - first < seconds);) {
        double begin = now();
        for (long i = 0; i < turns; i++) {
            memcpy(to, from, size);
            __asm__ volatile("" ::: "memory"); /* each copy is made */
        }
        samples[count++] = 1e-9 * (double)size * (double)turns / (now() - begin);
    }
    if (memcmp(to, from, size)) die("copy differs");
    qsort(samples, (size_t)count, sizeof *samples, ascending);
    *best = samples[count - 1];
    return samples[count / 2];
}

static void copy(size_t size)
{
    double best;
    char *from = aligned_alloc(4096, (size + 4095) / 4096 * 4096), *to = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    if (!from || !to) die("buffers");
    for (size_t i = 0; i < size; i++) from[i] = (char)(i * 7 + 1);
    memset(to, 0, size);
    meet();
    if (me == 0) {
        double rate = copy_rate(to, from, size, &best);
        print("copy", size, "GB/s", rate, best);
    }
    meet();
    shared->rate[me] = copy_rate(to, from, size, &best);
    meet();
    if (me == 0) print("copy_both", size, "GB/s", shared->rate[0] + shared->rate[1], shared->rate[0] + shared->rate[1]);
    meet();
    free(from), free(to);
}

/* The first two processors that we may use, unless chosen. */
static void pin(int cpus[2])
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) die("sched_getaffinity");
    for (int i = 0, found = 0; i < CPU_SETSIZE && cpus[1] < 0; i++)
        if (CPU_ISSET(i, &allowed)) cpus[found++] = i;
    if (cpus[1] < 0) {
        fprintf(stderr, "limit: needs two processors\n");
        exit(2);
    }
    CPU_ZERO(&one);
    CPU_SET(cpus[me], &one);
    if (sched_setaffinity(0, sizeof one, &one)) die("sched_setaffinity");
}

int main(int argc, char **argv)
{
    size_t sizes[MAX_SIZES] = {4096, 16384, 65536, 262144, 1 << 20, 4 << 20};
    int size_count = 6, cpus[2] = {-1, -1};
    for (int i = 1; i < argc; i++) {
        char *value = i + 1 < argc ? argv[i + 1] : NULL, *item;
        if (value && !strcmp(argv[i], "--seconds")) seconds = atof(value);
        else if (value && !strcmp(argv[i], "--cpus") && sscanf(value, "%d,%d", &cpus[0], &cpus[1]) == 2) {}
        else if (value && !strcmp(argv[i], "--sizes"))
            for (size_count = 0; size_count < MAX_SIZES && (item = strsep(&value, ","));) {
                char *suffix;
                size_t size = strtoul(item, &suffix, 10);
                sizes[size_count++] = size << (*suffix == 'K' ? 10 : *suffix == 'M' ? 20 : 0);
            }
        else if (!strcmp(argv[i], "--distance")) { size_count = 0; continue; }
        else return fprintf(stderr, "usage: limit [--sizes A,B,C] [--seconds S] [--cpus A,B] [--distance]\n"), 2;
        i++;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) die("mmap");
    pid_t parent = getpid(), child = fork();
    if (child < 0) die("fork");
    me = child == 0;
    if (me == 1) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) return 1;
    }
    pin(cpus);
    ping_pong();
    for (int i = 0; i < size_count; i++) copy(sizes[i]);
    if (me == 1) return 0;
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) return fprintf(stderr, "limit: the second process failed\n"), 1;
    return 0;
}
