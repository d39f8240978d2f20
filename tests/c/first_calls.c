// ranks: 2
// args: barrier allreduce bcast pingpong put
// says: correct
//
// first_calls WHAT...: calls each operation ten times at each size, and then a hundred times more. The minor page faults of each
// rank in the first ten and in the later calls are printed; pages that the system provides in one call for many count as well. For
// strace (xtask/src/test/first_calls.rs), a call of access(2) names the operation and the size where the later calls begin and where
// they end. "all" stands for all operations. Barriers between the calls, as benchmarks have them, keep ranks from running ahead of
// each other: memory for what is under way is no waste.
#include "check.h"
#include <sys/resource.h>
#include <unistd.h>

enum { FIRST = 10, COUNTED = 100, WINDOW = 64, LONGEST = 1 << 20, SIZES = 5 };

static const int sizes[SIZES] = {4 << 10, 16 << 10, 64 << 10, 256 << 10, LONGEST};
static char *from, *to, *memory;
static MPI_Win win, locked;
static MPI_File file;
static MPI_Request requests[WINDOW];

static void do_barrier(int n) { (void)n, MPI_Barrier(MPI_COMM_WORLD); }
static void do_allreduce(int n) { MPI_Allreduce(from, to, n / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void do_reduce(int n) { MPI_Reduce(from, to, n / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); }
static void do_bcast(int n) { MPI_Bcast(from, n, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void do_gather(int n) { MPI_Gather(from, n, MPI_CHAR, to, n, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void do_scatter(int n) { MPI_Scatter(from, n, MPI_CHAR, to, n, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void do_allgather(int n) { MPI_Allgather(from, n, MPI_CHAR, to, n, MPI_CHAR, MPI_COMM_WORLD); }
static void do_alltoall(int n) { MPI_Alltoall(from, n, MPI_CHAR, to, n, MPI_CHAR, MPI_COMM_WORLD); }
static void do_scan(int n) { MPI_Scan(from, to, n / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void do_exscan(int n) { MPI_Exscan(from, to, n / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

static void do_reduce_scatter_block(int n)
{
    MPI_Reduce_scatter_block(from, to, n / 4 / size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void do_reduce_scatter(int n)
{
    int counts[8];
    for (int i = 0; i < size; i++) counts[i] = n / 4 / size;
    MPI_Reduce_scatter(from, to, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* Each even rank and the next one. */
static void do_pingpong(int n)
{
    int other = rank ^ 1;
    if (other >= size) return;
    if (rank % 2 == 0) MPI_Send(from, n, MPI_CHAR, other, 1, MPI_COMM_WORLD);
    MPI_Recv(to, n, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank % 2) MPI_Send(from, n, MPI_CHAR, other, 1, MPI_COMM_WORLD);
}

static void do_window(int n)
{
    int other = rank ^ 1;
    if (other >= size) return;
    for (int i = 0; i < WINDOW && rank % 2; i++) MPI_Irecv(to, n, MPI_CHAR, other, 2, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD); /* no message comes before its receive */
    for (int i = 0; i < WINDOW && rank % 2 == 0; i++) MPI_Isend(from, n, MPI_CHAR, other, 2, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
}

static void do_put(int n)
{
    MPI_Put(from, n, MPI_CHAR, (rank + 1) % size, 0, n, MPI_CHAR, win);
    MPI_Win_flush((rank + 1) % size, win);
}

static void do_get(int n)
{
    MPI_Get(to, n, MPI_CHAR, (rank + 1) % size, 0, n, MPI_CHAR, win);
    MPI_Win_flush((rank + 1) % size, win);
}

static void do_accumulate(int n)
{
    MPI_Accumulate(from, n / 4, MPI_FLOAT, (rank + 1) % size, 0, n / 4, MPI_FLOAT, MPI_SUM, win);
    MPI_Win_flush((rank + 1) % size, win);
}

static void do_lock(int n)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % size, 0, locked);
    MPI_Put(from, n, MPI_CHAR, (rank + 1) % size, 0, n, MPI_CHAR, locked);
    MPI_Win_unlock((rank + 1) % size, locked);
}

static void do_fence(int n)
{
    MPI_Win_fence(0, locked);
    MPI_Put(from, n, MPI_CHAR, (rank + 1) % size, 0, n, MPI_CHAR, locked);
    MPI_Win_fence(0, locked);
}

/* Pieces of 64 bytes of all ranks in turn, so that aggregators move them in two phases. */
static void do_write_all(int n) { MPI_File_write_at_all(file, 0, from, n, MPI_CHAR, MPI_STATUS_IGNORE); }
static void do_read_all(int n) { MPI_File_read_at_all(file, 0, to, n, MPI_CHAR, MPI_STATUS_IGNORE); }

static void open_file(void)
{
    enum { PIECE = 64 };
    MPI_Info info;
    MPI_Datatype piece, turn;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "romio_cb_read", "enable");
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK(MPI_File_open(MPI_COMM_WORLD, "first_calls.data", mode, info, &file) == MPI_SUCCESS);
    MPI_Type_contiguous(PIECE, MPI_CHAR, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)PIECE * size, &turn);
    MPI_Type_commit(&turn);
    MPI_File_set_view(file, (MPI_Offset)PIECE * rank, MPI_CHAR, turn, "native", info);
    MPI_Type_free(&turn), MPI_Type_free(&piece), MPI_Info_free(&info);
    MPI_File_set_size(file, (MPI_Offset)LONGEST * size);
}

static const struct {
    const char *name;
    void (*call)(int bytes);
} all[] = {
    {"barrier", do_barrier}, {"allreduce", do_allreduce}, {"reduce", do_reduce}, {"bcast", do_bcast},
    {"gather", do_gather}, {"scatter", do_scatter}, {"allgather", do_allgather}, {"alltoall", do_alltoall},
    {"scan", do_scan}, {"exscan", do_exscan}, {"reduce_scatter_block", do_reduce_scatter_block},
    {"reduce_scatter", do_reduce_scatter}, {"pingpong", do_pingpong}, {"window", do_window}, {"put", do_put},
    {"get", do_get}, {"accumulate", do_accumulate}, {"lock", do_lock}, {"fence", do_fence},
    {"write_all", do_write_all}, {"read_all", do_read_all},
};

static long faults(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_minflt;
}

struct counts {
    long first, later;
};

/* Returns the page faults of the first calls and of the later calls. */
static struct counts count(const char *name, void (*call)(int), int bytes)
{
    char label[64];
    snprintf(label, sizeof label, "first_calls %s %d", name, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    access(label, F_OK);
    long begin = faults();
    for (int i = 0; i < FIRST; i++) call(bytes), MPI_Barrier(MPI_COMM_WORLD);
    access(label, F_OK);
    long before = faults();
    for (int i = 0; i < COUNTED; i++) call(bytes), MPI_Barrier(MPI_COMM_WORLD);
    long after = faults();
    access("first_calls end", F_OK);
    return (struct counts){before - begin, after - before};
}

static int asked(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name) || !strcmp(argv[i], "all")) return 1;
    return 0;
}

int main(int argc, char **argv)
{
    enum { KINDS = sizeof all / sizeof all[0] };
    static struct counts rows[KINDS][SIZES], each[8][KINDS][SIZES];
    begin(&argc, &argv);
    CHECK(size <= 8);
    size_t room = (size_t)LONGEST * (size_t)size;
    from = malloc(room), to = malloc(room);
    memset(from, 0, room), memset(to, 0, room), memset(rows, 0, sizeof rows), memset(each, 0, sizeof each);
    MPI_Win_allocate(LONGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, LONGEST);
    MPI_Win_lock_all(0, win);
    MPI_Win_allocate(LONGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &locked);
    memset(memory, 0, LONGEST);
    open_file();
    for (int i = 0; i < KINDS; i++)
        for (int j = 0; j < SIZES && asked(argc, argv, all[i].name); j++)
            rows[i][j] = count(all[i].name, all[i].call, sizes[j]);
    MPI_Win_unlock_all(win);
    MPI_Gather(rows, sizeof rows, MPI_CHAR, each, sizeof rows, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < KINDS && rank == 0; i++)
        for (int j = 0; j < SIZES && asked(argc, argv, all[i].name); j++)
            for (int k = 0; k < size; k++)
                printf("%s %d rank %d: %ld faults first, %ld faults later\n", all[i].name, sizes[j], k, each[k][i][j].first,
                       each[k][i][j].later);
    MPI_File_close(&file);
    MPI_Win_free(&locked);
    MPI_Win_free(&win);
    return end();
}
