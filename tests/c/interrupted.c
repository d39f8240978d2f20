// ranks: 8 8 8 8 8 8 8 8 1 2
// env: | WEFT_PROGRESS=handover | WEFT_PROGRESS=signal | WEFT_CMA=0
/* A program with an interval timer of 1 ms, whose handler does not ask for system calls to be
   restarted, from before MPI_Init to after MPI_Finalize: start, messages of all sizes, collectives,
   windows, what the helper thread does, and the end. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#define MOST (1 << 22)

static volatile sig_atomic_t ticks;

static void tick(int number)
{
    (void)number;
    ticks++;
}

static void storm(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    struct itimerval every = {{0, 1000}, {0, 1000}};
    if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &every, NULL) != 0) {
        perror("the timer");
        exit(4);
    }
}

static unsigned char byte(int from, int n, int at) { return (unsigned char)(from * 7 + n + at * 13); }

static void fill(unsigned char *memory, int from, int n)
{
    for (int i = 0; i < n; i++) memory[i] = byte(from, n, i);
}

static int holds(const unsigned char *memory, int from, int n)
{
    for (int i = 0; i < n; i++)
        if (memory[i] != byte(from, n, i)) return 0;
    return 1;
}

static void messages(unsigned char *out, unsigned char *in)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int n = 0; n <= MOST; n = n == 0 ? 1 : n * 8) {
        fill(out, rank, n);
        memset(in, 0, n);
        MPI_Sendrecv(out, n, MPI_BYTE, right, n, in, n, MPI_BYTE, left, n, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK(holds(in, left, n), "message of %d bytes", n);
        /* The same while the program computes. */
        MPI_Request both[2];
        memset(in, 0, n);
        MPI_Irecv(in, n, MPI_BYTE, left, 1, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(out, n, MPI_BYTE, right, 1, MPI_COMM_WORLD, &both[1]);
        volatile double x = 0;
        for (int i = 0; i < 300000; i++) x += i;
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        CHECK(holds(in, left, n), "overlapped message of %d bytes", n);
    }
}

static void collectives(unsigned char *out, unsigned char *in)
{
    for (int n = 1; n <= MOST; n *= 64) {
        int root = n % size;
        if (rank == root) fill(in, root, n); else memset(in, 0, n);
        MPI_Bcast(in, n, MPI_BYTE, root, MPI_COMM_WORLD);
        CHECK(holds(in, root, n), "broadcast of %d bytes", n);
        int each = n / size;
        memset(out, rank, n);
        MPI_Alltoall(out, each, MPI_BYTE, in, each, MPI_BYTE, MPI_COMM_WORLD);
        for (int i = 0; i < each * size; i++)
            CHECK(in[i] == i / each, "alltoall of %d bytes, byte %d", each, i);
        int *numbers = (int *)out, *sums = (int *)in, count = n / 4;
        for (int i = 0; i < count; i++) numbers[i] = rank + i;
        MPI_Request request;
        MPI_Iallreduce(numbers, sums, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < count; i++)
            CHECK(sums[i] == size * (size - 1) / 2 + i * size, "allreduce, element %d", i);
    }
}

static void windows(void)
{
    /* Large enough that the timer runs out while the system reserves it. */
    MPI_Aint bytes = (MPI_Aint)(rank == 0 ? 48 : 1) << 20;
    int *memory;
    MPI_Win window;
    MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memory[0] = 0;
    for (int i = 1; i <= 1000; i++) memory[i] = -1;
    MPI_Win_fence(0, window);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Put(&rank, 1, MPI_INT, right, 1, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(memory[1] == left, "put: %d", memory[1]);
    int one = 1, was, got;
    for (int i = 0; i < 50; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Fetch_and_op(&one, &was, MPI_INT, 0, 0, MPI_SUM, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_fence(0, window);
    MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(got == 50 * size, "%d", got);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    storm();
    begin(&argc, &argv);
    unsigned char *out = malloc(MOST), *in = malloc(MOST);
    CHECK(out && in, "memory");
    messages(out, in);
    collectives(out, in);
    windows();
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_free(&node);
    char name[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(name, &length);
    /* All but one sleep in a call while the timer goes on. */
    if (rank == 0)
        for (int wait = ticks + 200; ticks < wait;) pause();
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(ticks > 100, "the timer ran out %d times", (int)ticks);
    free(out);
    free(in);
    return end();
}
