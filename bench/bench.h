/* Shared by the benchmarks: options, a common clock, synchronised batches, checked data, one JSON object a line.
 *
 * How a figure is made. An operation (a round trip, a window of messages, a collective) runs in batches. Rank 0 names
 * a moment a little ahead, every rank waits for that moment on its own clock (offsets are estimated first), runs the
 * batch back to back, and reports how long it took. Nothing but the batch is inside the timed part.
 *
 * Only MPI is used for communication, so that the programs run under any library. */
#ifndef BENCH_H
#define BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity; define before the first system header */
#endif
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BENCH_MAX_SIZES 64
#define BENCH_PAGE 4096

struct bench {
    const char *name;
    int rank, ranks;
    size_t sizes[BENCH_MAX_SIZES]; /* bytes */
    int size_count;
    long iterations;      /* operations to time for each size; 0: as many as fit in `seconds` */
    long warm;            /* operations before the timing, which then is a single batch; 0: until a batch takes a steady time */
    double seconds;       /* time for each size */
    long batch;           /* operations in a batch; 0: as many as fit in `batch_seconds` */
    double batch_seconds;
    int window;           /* messages in flight; 0: the benchmark's choice */
    int separate;         /* each message of a window has buffers of its own */
    int fixed;            /* the root is always rank 0 */
    int document;         /* work and messages in the order of the figure that weft-figures simulates */
    double flops;         /* of a core, 10^6 operations a second; 0: computing takes the time that it takes */
    const char *folder;   /* of files, where the benchmark has any */
    int mean;             /* the figure is the mean over batches, not the median */
    int crowded;          /* more ranks than processors: sleep, do not spin, before a batch */
    double offset;        /* this rank's clock minus rank 0's, in seconds */
    double margin;        /* rank 0: how far ahead a batch is announced, in seconds */
};

/* Times in seconds an operation. */
struct timing {
    long batches, batch;
    double rank_min, rank_median, rank_mean, rank_max; /* over ranks, of each rank's mean over batches */
    double batch_min, batch_median;         /* over batches, of the slowest rank */
    double mean;                            /* over batches, of the slowest rank */
    double late;                            /* median over batches of the last rank's lateness, seconds a batch */
};

/* Runs `iterations` operations back to back; every rank calls it. */
typedef void (*operation)(void *state, long iterations);

static inline void bench_fail(const struct bench *b, const char *what, long value)
{
    fprintf(stderr, "%s: rank %d: %s (%ld)\n", b->name, b->rank, what, value);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* ---- options ---------------------------------------------------------------------------------------------------- */

static const char bench_usage[] =
    "  --sizes A,B,C        message sizes in bytes; suffixes K and M are powers of 1024\n"
    "  --iterations N       operations to time for each size (default: as many as fit in --seconds)\n"
    "  --warm N             operations before the timing, which then is one batch (default: until the time is steady)\n"
    "  --seconds S          time for each size (default 0.2)\n"
    "  --batch N            operations between two synchronised starts (default: as many as fit in --batch-seconds)\n"
    "  --batch-seconds S    length of a batch (default 0.002; 0.05 with more ranks than processors)\n"
    "  --window N           messages in flight; puts of put_get_interleaved; inserts of a round of hash_*\n"
    "  --separate           buffers of its own for each message in flight\n"
    "  --fixed              rank 0 is always the root, which may run ahead of others or others of it\n"
    "  --document           the program that weft-figures simulates for a document, where it is another\n"
    "  --flops R            computing takes as long as a core with R million operations a second needs, by a sleep:\n"
    "                       for `weft sim run --compute none --clocks`\n"
    "  --folder DIR         where the files of file_* lie (default: the current one)\n"
    "  --mean               report the mean over batches, not the median (default with more ranks than processors)\n";

static inline double bench_number(const struct bench *b, const char *option, const char *text, double least)
{
    char *end;
    double value = text ? strtod(text, &end) : 0;
    if (text && (*end == 'K' || *end == 'k')) value *= 1024, end++;
    else if (text && (*end == 'M' || *end == 'm')) value *= 1024 * 1024, end++;
    if (!text || end == text || *end || !(value >= least) || value > 1e15) {
        if (b->rank == 0)
            fprintf(stderr, "%s: %s needs a number of at least %g, not '%s'\n", b->name, option, least, text ? text : "");
        MPI_Finalize();
        exit(2);
    }
    return value;
}

static inline void bench_sizes(struct bench *b, const char *list)
{
    char copy[1024], *rest = copy, *item;
    snprintf(copy, sizeof copy, "%s", list ? list : "");
    b->size_count = 0;
    while ((item = strsep(&rest, ","))) {
        if (b->size_count == BENCH_MAX_SIZES) bench_fail(b, "too many sizes, the limit is", BENCH_MAX_SIZES);
        b->sizes[b->size_count] = (size_t)bench_number(b, "--sizes", item, 0);
        if (b->sizes[b->size_count++] > 1 << 30) bench_fail(b, "a size above the limit of 1 GiB", (long)b->sizes[b->size_count - 1]);
    }
}

static inline void bench_options(struct bench *b, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *o = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        int takes_value = 1;
        if (!strcmp(o, "--sizes")) bench_sizes(b, v);
        else if (!strcmp(o, "--iterations")) b->iterations = (long)bench_number(b, o, v, 1);
        else if (!strcmp(o, "--warm")) b->warm = (long)bench_number(b, o, v, 1);
        else if (!strcmp(o, "--seconds")) b->seconds = bench_number(b, o, v, 0);
        else if (!strcmp(o, "--batch")) b->batch = (long)bench_number(b, o, v, 1);
        else if (!strcmp(o, "--batch-seconds")) b->batch_seconds = bench_number(b, o, v, 0);
        else if (!strcmp(o, "--flops")) b->flops = bench_number(b, o, v, 1);
        else if (!strcmp(o, "--folder") && v) b->folder = v;
        else if (!strcmp(o, "--window")) b->window = (int)bench_number(b, o, v, 1);
        else if (takes_value = 0, !strcmp(o, "--separate")) b->separate = 1;
        else if (!strcmp(o, "--fixed")) b->fixed = 1;
        else if (!strcmp(o, "--mean")) b->mean = 1;
        else if (!strcmp(o, "--document")) b->document = 1;
        else {
            int help = !strcmp(o, "--help");
            if (b->rank == 0 && !help) fprintf(stderr, "%s: unknown option '%s'; the options are\n", b->name, o);
            if (b->rank == 0) fputs(bench_usage, help ? stdout : stderr);
            MPI_Finalize();
            exit(help ? 0 : 2);
        }
        i += takes_value;
    }
}

/* 64 messages in flight, 16 from 1 MiB on. */
static inline int bench_window(const struct bench *b, size_t bytes)
{
    return b->window ? b->window : bytes < (1 << 20) ? 64 : 16;
}

/* How many ranks take turns as the root of a collective operation. */
static inline int bench_roots(const struct bench *b) { return b->fixed ? 1 : b->ranks; }

/* ---- clock and synchronised starts ------------------------------------------------------------------------------ */

/* Seconds. Not MPI_Wtime: in some libraries that begins at another moment on each rank of one machine, and costs differ. */
static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sleeps: in virtual time a sleep is computing of its length. */
static inline void bench_sleep(double seconds)
{
    struct timespec nap = {(time_t)seconds, (long)(fmod(seconds, 1.0) * 1e9)};
    nanosleep(&nap, NULL);
}

/* Takes the time of so many operations of a core, where --flops says which. */
static inline void bench_operations(const struct bench *b, double operations)
{
    if (b->flops > 0) bench_sleep(operations / (1e6 * b->flops));
}

/* Estimates this rank's clock offset from the quickest of up to 100 round trips with rank 0 (at most about 20 ms). An
 * offset smaller than half of that round trip cannot be told from none: clocks of one machine are then taken as one. */
static inline void bench_clock(struct bench *b)
{
    double reply[1], ping[2];
    b->offset = 0;
    for (int r = 1; r < b->ranks; r++) {
        if (b->rank == 0) {
            double first = bench_now(), best = INFINITY, offset = 0;
            for (int i = 0; i <= 100; i++) {
                int last = i == 100 || (i > 3 && bench_now() - first > 0.02);
                ping[0] = last, ping[1] = fabs(offset) < best / 2 ? 0 : offset;
                double sent = bench_now();
                MPI_Send(ping, 2, MPI_DOUBLE, r, 0, MPI_COMM_WORLD);
                if (last) break;
                MPI_Recv(reply, 1, MPI_DOUBLE, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                double back = bench_now();
                if (back - sent < best) best = back - sent, offset = reply[0] - (sent + back) / 2;
            }
        } else if (b->rank == r) {
            for (;;) {
                MPI_Recv(ping, 2, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                reply[0] = bench_now();
                if (ping[0] != 0) break;
                MPI_Send(reply, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
            }
            b->offset = ping[1];
        }
    }
}

static inline void bench_wait_until(const struct bench *b, double moment)
{
    for (double left; (left = moment - bench_now()) > 0;) {
        if (b->crowded) bench_sleep(left);
    }
}

static inline int bench_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double bench_median(double *values, long count)
{
    qsort(values, (size_t)count, sizeof *values, bench_ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The number of operations that fit in a batch, the same on all ranks: grown until a batch is long enough, and still is
 * after a while: the first may be slow (pages, caches, connections). */
static inline long bench_calibrate(const struct bench *b, operation op, void *state)
{
    if (b->batch) return b->batch;
    double batch = 1, most = b->iterations ? (double)b->iterations : 1e7;
    double spent = 0, warm = b->crowded ? 0 : fmin(0.02, b->seconds / 4);
    for (int enough = 0;;) {
        double begin = bench_now();
        op(state, (long)batch);
        double took = fmax(bench_now() - begin, 1e-9);
        MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        spent += took;
        enough = batch >= most || took >= 0.5 * b->batch_seconds ? enough + 1 : 0;
        if (enough >= 2 && spent >= warm) break;
        if (enough) continue;
        batch = fmin(most, fmin(8 * batch, ceil(batch * b->batch_seconds / took)));
    }
    return (long)batch;
}

/* Times `op`; the result is complete on rank 0 only. */
static inline struct timing bench_measure(struct bench *b, operation op, void *state)
{
    struct timing t = {0};
    long room = 1024;
    double *slowest = NULL, *late = NULL, *all = NULL, *sums = NULL;
    if (b->rank == 0) {
        slowest = malloc(sizeof(double) * (size_t)room), late = malloc(sizeof(double) * (size_t)room);
        all = malloc(sizeof(double) * 2 * (size_t)b->ranks), sums = calloc((size_t)b->ranks, sizeof(double));
        if (!slowest || !late || !all || !sums) bench_fail(b, "out of memory for samples", room);
    }
    op(state, b->warm ? b->warm : 1);
    if (b->document) MPI_Barrier(MPI_COMM_WORLD); /* the moment to start is not before the slowest rank has warmed up */
    t.batch = b->warm && b->iterations ? b->iterations : bench_calibrate(b, op, state);
    double first = bench_now();
    for (;;) {
        double plan[2] = {0, 0}; /* go on?, the moment to start on rank 0's clock */
        if (b->rank == 0) {
            int enough = b->iterations ? t.batches * t.batch >= b->iterations : bench_now() - first >= b->seconds;
            plan[0] = !enough || t.batches == 0;
            plan[1] = bench_now() + b->margin;
        }
        MPI_Bcast(plan, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (plan[0] == 0) break;
        bench_wait_until(b, plan[1] + b->offset);
        double begin = bench_now();
        op(state, t.batch);
        double mine[2] = {bench_now() - begin, begin - (plan[1] + b->offset)};
        MPI_Gather(mine, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (b->rank != 0) continue;
        if (t.batches == room) {
            room *= 2;
            slowest = realloc(slowest, sizeof(double) * (size_t)room), late = realloc(late, sizeof(double) * (size_t)room);
            if (!slowest || !late) bench_fail(b, "out of memory for samples", room);
        }
        double worst = 0, last = 0;
        for (int r = 0; r < b->ranks; r++) {
            worst = fmax(worst, all[2 * r] / (double)t.batch), last = fmax(last, all[2 * r + 1]);
            sums[r] += all[2 * r] / (double)t.batch;
        }
        if (last > 2e-6) b->margin = fmin(2 * b->margin, b->crowded ? 5e-3 : 1e-3);
        slowest[t.batches] = worst, late[t.batches] = last, t.mean += worst, t.batches++;
    }
    if (b->rank == 0) {
        for (int r = 0; r < b->ranks; r++) sums[r] /= (double)t.batches, t.rank_mean += sums[r] / b->ranks;
        t.rank_median = bench_median(sums, b->ranks), t.rank_min = sums[0], t.rank_max = sums[b->ranks - 1];
        t.batch_median = bench_median(slowest, t.batches), t.batch_min = slowest[0];
        t.mean /= (double)t.batches, t.late = bench_median(late, t.batches);
        free(slowest), free(late), free(all), free(sums);
    }
    return t;
}

/* ---- data ------------------------------------------------------------------------------------------------------- */

static inline void *bench_buffer(const struct bench *b, size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, BENCH_PAGE, bytes ? bytes : 1)) bench_fail(b, "out of memory, bytes asked for", (long)bytes);
    memset(p, 0, bytes);
    return p;
}

/* A byte that depends on its place, so that a shifted or partial copy is found. */
static inline unsigned char bench_byte(size_t i, unsigned seed) { return (unsigned char)(i * 31 + (i >> 8) * 7 + seed * 101 + 1); }

static inline void bench_fill(void *buffer, size_t bytes, unsigned seed)
{
    unsigned char *p = buffer;
    for (size_t i = 0; i < bytes; i++) p[i] = bench_byte(i, seed);
}

/* Ends the job if `buffer` is not what bench_fill(.., seed) writes. */
static inline void bench_check(const struct bench *b, const void *buffer, size_t bytes, unsigned seed)
{
    const unsigned char *p = buffer;
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != bench_byte(i, seed)) bench_fail(b, "wrong data received at byte", (long)i);
}

/* ---- start and report ------------------------------------------------------------------------------------------- */

/* The processors this rank may run on, as a bit mask of the first 64. */
static inline unsigned long bench_affinity(void)
{
    cpu_set_t set;
    unsigned long mask = 0;
    if (sched_getaffinity(0, sizeof set, &set)) return 0;
    for (int i = 0; i < 64; i++)
        if (CPU_ISSET(i, &set)) mask |= 1UL << i;
    return mask;
}

static inline void bench_begin(struct bench *b, const char *name, const char *sizes, int *argc, char ***argv)
{
    memset(b, 0, sizeof *b);
    b->name = name;
#ifdef BENCH_THREAD_LEVEL
    int provided;
    MPI_Init_thread(argc, argv, BENCH_THREAD_LEVEL, &provided);
    if (provided < BENCH_THREAD_LEVEL) bench_fail(b, "the library does not offer that many threads, but", provided);
#elif defined _OPENMP
    int provided; /* threads that compute, and call nothing of MPI */
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
#else
    MPI_Init(argc, argv);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &b->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b->ranks);
    b->crowded = b->ranks > sysconf(_SC_NPROCESSORS_ONLN);
    b->seconds = 0.2, b->batch_seconds = b->crowded ? 0.05 : 0.002, b->margin = b->crowded ? 2e-4 : 1e-5;
    b->mean = b->crowded, b->folder = ".";
    bench_sizes(b, sizes);
    bench_options(b, *argc, *argv);

    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n\"\\")] = 0;
    unsigned long mask = bench_affinity(), *masks = calloc((size_t)b->ranks, sizeof mask);
    MPI_Gather(&mask, 1, MPI_UNSIGNED_LONG, masks, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    if (b->rank == 0) {
        printf("{\"bench\":\"%s\",\"library\":\"%s\",\"ranks\":%d,\"affinity\":[", name, version, b->ranks);
        for (int r = 0; r < b->ranks; r++) printf("%s%lu", r ? "," : "", masks[r]);
        printf("]}\n");
    }
    free(masks);
    bench_clock(b);
}

static inline void bench_need_ranks(const struct bench *b, int right, const char *needed)
{
    if (right) return;
    if (b->rank == 0) fprintf(stderr, "%s: needs %s, not %d\n", b->name, needed, b->ranks);
    MPI_Finalize();
    exit(2);
}

/* A path in --folder that all ranks have, of this run alone. */
static inline void bench_path(const struct bench *b, char *name, size_t room)
{
    long id = (long)getpid();
    MPI_Bcast(&id, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    snprintf(name, room, "%s/mpi-bench-%ld", b->folder, id);
}

/* The time that the figure is made of, in seconds an operation; on rank 0. */
static inline double bench_time(const struct bench *b, struct timing t) { return b->mean ? t.mean : t.batch_median; }

/* One line. `scale` and `unit` turn the time of one operation, t seconds, into the figure: scale * t if the unit is a
 * time ("us"), scale / t if it is a rate. */
static inline void bench_report(const struct bench *b, size_t size, struct timing t, double scale, const char *unit)
{
    if (b->rank != 0) return;
    int lower = !strcmp(unit, "us");
    double time = bench_time(b, t);
    double per = lower ? scale : 1e6;
    printf("{\"size\":%zu,\"value\":%.6g,\"unit\":\"%s\",\"best\":%.6g,\"batches\":%ld,\"batch\":%ld,", size,
           lower ? scale * time : scale / time, unit, lower ? scale * t.batch_min : scale / t.batch_min, t.batches,
           t.batch);
    printf("\"rank_min_us\":%.6g,\"rank_median_us\":%.6g,\"rank_mean_us\":%.6g,\"rank_max_us\":%.6g,\"late_us\":%.3g}\n",
           per * t.rank_min, per * t.rank_median, per * t.rank_mean, per * t.rank_max, 1e6 * t.late);
    fflush(stdout);
}

/* One line of a figure made otherwise, or of a second one of the same size, which has a unit of its own. */
static inline void bench_figure(const struct bench *b, size_t size, double value, const char *unit)
{
    if (b->rank != 0) return;
    printf("{\"size\":%zu,\"value\":%.6g,\"unit\":\"%s\"}\n", size, value, unit);
    fflush(stdout);
}

#endif
