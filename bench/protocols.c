/* protocols: from which size on messages go another way, as the library's own counters tell.
 *
 * For each size a few messages go from rank 0 to rank 1; the counters of MPI's tool interface that move with at least every
 * other of them, on either rank, are the way they went. Where two powers of two went different ways, halving finds the largest
 * size that goes as the smaller does. One line each: {"operation":"send","limit":16384}. A library without such counters has no
 * lines.
 *
 *     mpiexec -n 2 ./protocols [--prefix weft.p2p.] */
#include "bench.h"

enum { MESSAGES = 8, COUNTERS = 64, LARGEST = 4 << 20 };

static struct {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handles[COUNTERS];
    int count;
} tool;

/* Counters of what chance decides, or that move with every message. */
static int is_chance(const char *name)
{
    const char *words[] = {"unexpected", "queue", "credit", "handler", "peers", "bytes"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i])) return 1;
    return 0;
}

static void open_counters(struct bench *b, const char *prefix)
{
    int provided, all;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&tool.session);
    MPI_T_pvar_get_num(&all);
    for (int i = 0; i < all && tool.count < COUNTERS; i++) {
        char name[256], text[8];
        int size = sizeof name, about = sizeof text, kind, class, bind, readonly, continuous, atomic, values;
        MPI_Datatype type;
        MPI_T_enum items;
        if (MPI_T_pvar_get_info(i, name, &size, &kind, &class, &type, &items, text, &about, &bind, &readonly, &continuous, &atomic))
            continue;
        if (class != MPI_T_PVAR_CLASS_COUNTER || bind != MPI_T_BIND_NO_OBJECT) continue;
        if (strncmp(name, prefix, strlen(prefix)) || is_chance(name)) continue;
        MPI_T_pvar_handle *handle = &tool.handles[tool.count];
        if (MPI_T_pvar_handle_alloc(tool.session, i, NULL, handle, &values) || values != 1) continue;
        if (!continuous && MPI_T_pvar_start(tool.session, *handle)) bench_fail(b, "a counter does not start", i);
        tool.count++;
    }
}

static void read_counters(unsigned long long *values)
{
    for (int i = 0; i < tool.count; i++) MPI_T_pvar_read(tool.session, tool.handles[i], &values[i]);
}

/* The counters that moved with messages of `bytes`, as a bit mask of both ranks'; the same on both. */
static unsigned long long way(struct bench *b, void *data, size_t bytes)
{
    unsigned long long before[COUNTERS], after[COUNTERS], mine = 0, both;
    MPI_Barrier(MPI_COMM_WORLD);
    read_counters(before);
    for (int i = 0; i < MESSAGES; i++) {
        if (b->rank == 0) MPI_Send(data, (int)bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        else MPI_Recv(data, (int)bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    read_counters(after);
    for (int i = 0; i < tool.count; i++)
        if (2 * (after[i] - before[i]) >= MESSAGES) mine |= 1ULL << i;
    /* Each rank's counters are its own half. */
    unsigned long long halves[2];
    MPI_Allgather(&mine, 1, MPI_UNSIGNED_LONG_LONG, halves, 1, MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD);
    both = halves[0] * 1000003 ^ halves[1];
    return both;
}

/* What three looks agree on, or the last of them. */
static unsigned long long steady_way(struct bench *b, void *data, size_t bytes)
{
    unsigned long long one = way(b, data, bytes), two = way(b, data, bytes);
    return one == two ? one : way(b, data, bytes);
}

int main(int argc, char **argv)
{
    struct bench b;
    const char *prefix = "weft.p2p.";
    if (argc == 3 && !strcmp(argv[1], "--prefix")) prefix = argv[2], argc = 1;
    bench_begin(&b, "protocols", "0", &argc, &argv);
    bench_need_ranks(&b, b.ranks == 2, "2 ranks");
    open_counters(&b, prefix);
    char *data = bench_buffer(&b, LARGEST);
    steady_way(&b, data, LARGEST); /* connections, and what is made at first use */
    unsigned long long last = steady_way(&b, data, 1);
    for (size_t size = 2; size <= LARGEST; size *= 2) {
        unsigned long long next = steady_way(&b, data, size);
        size_t low = size / 2, high = size;
        while (next != last && high - low > 1) {
            size_t middle = (low + high) / 2;
            if (steady_way(&b, data, middle) == last) low = middle;
            else high = middle;
        }
        if (next != last && b.rank == 0) printf("{\"operation\":\"send\",\"limit\":%zu}\n", low);
        last = next;
    }
    free(data);
    MPI_T_pvar_session_free(&tool.session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
