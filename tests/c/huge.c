// ranks: 2
// args: short
// timeout: 300
// alone: it takes 7 GB
// says: correct
//
// More than 2^31 bytes in one message; without an argument (cargo xtask soak) also with gaps, and in
// one collective call. Two buffers of 3 GB, and 14 GiB in all where it reduces; where there is less
// memory, it says NOT RUN.
#include "check.h"
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define WORLD MPI_COMM_WORLD
#define BYTES ((MPI_Count)3000000000)
/* Blocks whose sums are compared; a little more than 64 MB, no power of two. */
#define BLOCK ((MPI_Count)75000000)
/* What is reduced: whole pages, and more elements than an int counts. */
#define REDUCED ((MPI_Count)2200002560)
enum { GUARD = 4096, MOST = 14 }; /* GiB that both ranks may take together */

static unsigned char *data;
static double began;

static void done(const char *what)
{
    if (rank == 0) printf("%s: %.1f s\n", what, MPI_Wtime() - began);
    MPI_Barrier(WORLD);
    began = MPI_Wtime();
}

/* Words that hardly two places have in common. */
static uint64_t word(uint64_t i, uint64_t salt) { return (i + salt * 1000003) * 0x9e3779b97f4a7c15u; }

static void fill(uint64_t salt)
{
    uint64_t *words = (uint64_t *)data;
    for (MPI_Count i = 0; i < BYTES / 8; i++) words[i] = word(i, salt);
}

static void clear(void) { memset(data, 0, BYTES); }

/* Each block of the first `bytes` has the sum that it must have, and samples are right. */
static void same(const char *what, uint64_t salt, MPI_Count bytes)
{
    const uint64_t *words = (const uint64_t *)data;
    for (MPI_Count b = 0; b < bytes; b += BLOCK) {
        MPI_Count end = b + BLOCK < bytes ? b + BLOCK : bytes;
        uint64_t sum = 0, wanted = 0;
        for (MPI_Count i = b / 8; i < end / 8; i++) sum += words[i], wanted += word(i, salt);
        CHECK(sum == wanted, "%s: the block from byte %lld on", what, (long long)b);
    }
    for (MPI_Count i = 0; i < bytes / 8; i += 99991)
        CHECK(words[i] == word(i, salt), "%s: byte %lld", what, (long long)(8 * i));
    CHECK(words[bytes / 8 - 1] == word(bytes / 8 - 1, salt), "%s: the last", what);
    for (int i = 0; i < GUARD; i++) CHECK(data[BYTES + i] == 0xee, "%s: wrote behind the end", what);
}

/* What the status says of `count` elements of `type`, each of `basics` basic ones. */
static void counted(MPI_Status *status, MPI_Datatype type, MPI_Count count, MPI_Count basics)
{
    MPI_Count got = -1;
    int small = -1;
    MPI_Get_count_c(status, type, &got);
    CHECK(got == count, "%lld of %lld", (long long)got, (long long)count);
    MPI_Get_elements_c(status, type, &got);
    CHECK(got == count * basics, "%lld of %lld", (long long)got, (long long)(count * basics));
    got = -1;
    MPI_Get_elements_x(status, type, &got);
    CHECK(got == count * basics, "%lld of %lld", (long long)got, (long long)(count * basics));
    MPI_Get_count(status, type, &small);
    CHECK(small == (count > INT32_MAX ? MPI_UNDEFINED : (int)count), "%d", small);
    MPI_Get_elements(status, type, &small);
    CHECK(small == (count * basics > INT32_MAX ? MPI_UNDEFINED : (int)(count * basics)), "%d", small);
}

/* One message: `count` elements of `type`, of `basics` basic ones, over all the data. */
static void message(const char *what, uint64_t salt, MPI_Count count, MPI_Datatype type, MPI_Count basics,
                    int wide)
{
    MPI_Status status;
    if (rank == 0) {
        fill(salt);
        if (wide) MPI_Send_c(data, count, type, 1, 1, WORLD);
        else MPI_Send(data, (int)count, type, 1, 1, WORLD);
    } else {
        if (wide) MPI_Recv_c(data, count, type, 0, 1, WORLD, &status);
        else MPI_Recv(data, (int)count, type, 0, 1, WORLD, &status);
        counted(&status, type, count, basics);
        same(what, salt, BYTES);
        clear();
    }
    done(what);
}

static void messages(int all)
{
    MPI_Datatype whole, kilo;
    message("bytes", 1, BYTES, MPI_BYTE, 1, 1);
    MPI_Type_contiguous_c(BYTES, MPI_BYTE, &whole);
    MPI_Type_commit(&whole);
    message("one element of a large type", 2, 1, whole, BYTES, 0);
    MPI_Type_free(&whole);
    if (!all) return;
    MPI_Type_contiguous(1000, MPI_BYTE, &kilo);
    MPI_Type_commit(&kilo);
    message("a count that fits, of kilobytes", 3, BYTES / 1000, kilo, 1000, 0);
    MPI_Type_free(&kilo);
}

/* Every other piece of 30 MB: 1.5 GB of a type that spans 3 GB. Sent with gaps, received without. */
static void gaps(void)
{
    enum { PIECES = 50 };
    const MPI_Count piece = BYTES / PIECES / 2;
    MPI_Datatype type;
    MPI_Status status;
    MPI_Count extent = -1, lb = -1;
    MPI_Type_vector_c(PIECES, piece, 2 * piece, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Type_get_extent_c(type, &lb, &extent);
    CHECK(lb == 0 && extent == BYTES - piece, "%lld", (long long)extent);
    if (rank == 0) {
        fill(4);
        MPI_Send(data, 1, type, 1, 2, WORLD);
    } else {
        MPI_Recv_c(data, BYTES, MPI_BYTE, 0, 2, WORLD, &status);
        counted(&status, MPI_BYTE, PIECES * piece, 1);
        const uint64_t *words = (const uint64_t *)data;
        for (int p = 0; p < PIECES; p++)
            for (MPI_Count i = 0; i < piece / 8; i += 997)
                CHECK(words[p * (piece / 8) + i] == word(2 * p * (piece / 8) + i, 4), "piece %d", p);
        clear();
    }
    MPI_Type_free(&type);
    done("pieces of a type with gaps");
}

static void collectives(void)
{
    if (rank == 1) fill(5);
    MPI_Bcast_c(data, BYTES, MPI_BYTE, 1, WORLD);
    same("bcast", 5, BYTES);
    done("broadcast of bytes");
    /* The rest of the buffer goes back: a reduction needs twice its data more. */
    madvise(data + REDUCED, (BYTES - REDUCED) / 4096 * 4096, MADV_DONTNEED);
    /* In place: both ranks have the same, so that `and` changes nothing and the exclusive or is 0. */
    MPI_Allreduce_c(MPI_IN_PLACE, data, REDUCED, MPI_BYTE, MPI_BAND, WORLD);
    same("allreduce", 5, REDUCED);
    for (int i = 0; i < 10; i++) data[(REDUCED - 1) / 9 * i] = (unsigned char)(0xf0 >> 2 * rank);
    MPI_Allreduce_c(MPI_IN_PLACE, data, REDUCED, MPI_BYTE, MPI_BXOR, WORLD);
    for (int i = 0; i < 10; i++)
        CHECK(data[(REDUCED - 1) / 9 * i] == (0xf0 ^ 0x3c), "allreduce: place %d", i);
    MPI_Count others = 0;
    for (MPI_Count i = 0; i < REDUCED / 8; i++) others += ((uint64_t *)data)[i] != 0;
    CHECK(others == 10, "allreduce: %lld words", (long long)others);
    CHECK(data[REDUCED + 5] == 0, "allreduce: wrote behind the end");
    done("two reductions of bytes");
}

/* Both ranks together stay below the bound. */
static void bounded(void)
{
    struct rusage usage;
    long long mine, all;
    getrusage(RUSAGE_SELF, &usage);
    mine = usage.ru_maxrss;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, WORLD);
    if (rank == 0) printf("at most %lld MB of memory\n", all >> 10);
    CHECK(all < MOST * 1024LL * 1024, "%lld KB of memory", all);
}

/* Bytes of memory that programs could still have. */
static long long available(void)
{
    char line[200];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lld", &kilobytes) == 1) break;
    if (file) fclose(file);
    return kilobytes * 1024;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int all = argc < 2;
    CHECK(all || !strcmp(argv[1], "short"), "argument '%s': it is 'short', or none", argv[1]);
    long long need = all ? (MOST + 1LL) << 30 : 2 * BYTES + (1 << 30), have = available();
    MPI_Bcast(&have, 1, MPI_LONG_LONG, 0, WORLD);
    if (have < need) {
        if (rank == 0)
            printf("NOT RUN: messages beyond 2^31 bytes: %lld MB of memory are available, %lld are needed\n",
                   have >> 20, need >> 20);
        return end();
    }
    data = mmap(NULL, BYTES + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(data != MAP_FAILED);
    memset(data + BYTES, 0xee, GUARD);
    began = MPI_Wtime();
    messages(all);
    if (all) gaps(), collectives();
    bounded();
    munmap(data, BYTES + GUARD);
    return end();
}
