/* The parts of the tests of the helper thread. */
#ifndef HELPER_H
#define HELPER_H
#include "tools.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LARGE = 2 << 20 };

static atomic_int *said, stage;
static volatile sig_atomic_t signals_seen;
static pthread_t signals_on;
static char *data;

static inline void count_signal(int number)
{
    (void)number;
    signals_on = pthread_self();
    signals_seen++;
}

/* Memory of both ranks, which MPI does not know. */
static inline void share(void)
{
    char name[64] = "/tmp/weft-helper-test-XXXXXX";
    int fd = -1;
    if (rank == 0) fd = mkstemp(name);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0) fd = open(name, O_RDWR);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0, "%s", name);
    said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(said != MAP_FAILED);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) unlink(name);
    close(fd);
    data = malloc(LARGE);
}

/* The next thing that one rank tells the other. */
static inline void tell(void) { atomic_store(said, ++stage); }

/* Computes, outside of the library, until it was told. */
static inline void compute(void)
{
    volatile double x = 1;
    stage++;
    while (atomic_load(said) != stage) x = x * 1.0000001;
}

static inline void fill(int seed)
{
    for (int i = 0; i < LARGE; i++) data[i] = (char)(i * 7 + seed);
}

static inline void check_data(int seed)
{
    for (int i = 0; i < LARGE; i++)
        CHECK(data[i] == (char)(i * 7 + seed), "byte %d", i);
    memset(data, 0, LARGE);
}

/* The receive is posted, and the offer comes while its rank computes. */
static inline void large_to_posted(void)
{
    MPI_Request request;
    if (rank == 0) {
        int go;
        fill(1);
        MPI_Recv(&go, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, LARGE, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        tell();
    } else {
        MPI_Irecv(data, LARGE, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        compute();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_data(1);
    }
}

/* The offer may come during the calls before: whoever leaves the library looks again. */
static inline void large_after_post(void)
{
    MPI_Request request;
    if (rank == 0) {
        fill(2);
        MPI_Send(data, LARGE, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
        tell();
    } else {
        int flag;
        MPI_Irecv(data, LARGE, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &request);
        for (int i = 0; i < 1000; i++)
            MPI_Iprobe(0, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        for (int i = 0; i < 1000; i++) MPI_Comm_rank(MPI_COMM_WORLD, &flag);
        compute();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_data(2);
    }
}

static inline void synchronous(void)
{
    MPI_Request request;
    int number = 0;
    if (rank == 0) {
        number = 42;
        MPI_Ssend(&number, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
        tell();
    } else {
        MPI_Irecv(&number, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
        compute();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(number == 42);
    }
}

/* The sender computes; where its memory cannot be read, its helper sends the pieces. */
static inline void to_the_sender(void)
{
    MPI_Request request;
    if (rank == 0) {
        MPI_Recv(data, LARGE, MPI_CHAR, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_data(4);
        tell();
    } else {
        fill(4);
        MPI_Isend(data, LARGE, MPI_CHAR, 0, 4, MPI_COMM_WORLD, &request);
        compute();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* A nonblocking collective whose root waits for nobody but the helper of the other. */
static inline void broadcast(void)
{
    MPI_Request request;
    if (rank == 0) fill(5);
    MPI_Ibcast(data, LARGE, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    if (rank == 0) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        tell();
    } else {
        compute();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_data(5);
    }
}

static char combined_on[16];

static inline void larger(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    prctl(PR_GET_NAME, combined_on);
    for (int i = 0; i < *n; i++)
        if (((char *)in)[i] > ((char *)inout)[i]) ((char *)inout)[i] = ((char *)in)[i];
}

/* The program's operator never runs on the helper, though its operands arrive by it. */
static inline void operators(void)
{
    MPI_Request request;
    MPI_Op op;
    char *result = malloc(LARGE);
    MPI_Op_create(larger, 1, &op);
    fill(rank);
    combined_on[0] = 0;
    MPI_Ireduce(data, result, LARGE, MPI_CHAR, op, 0, MPI_COMM_WORLD, &request);
    if (rank == 1) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        tell();
    } else {
        compute();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(combined_on[0] && strcmp(combined_on, "weft-helper"), "%s", combined_on);
        for (int i = 0; i < LARGE; i++) {
            char a = (char)(i * 7), b = (char)(i * 7 + 1);
            CHECK(result[i] == (a > b ? a : b), "byte %d", i);
        }
    }
    free(result);
    MPI_Op_free(&op);
}

/* How often the helper thread went to sleep so far, as the kernel counts; -1: there is none. */
static inline long helper_slept(void)
{
    long times = -1;
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    CHECK(tasks);
    while ((task = readdir(tasks))) {
        char path[300], line[200];
        int ours = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (status && fgets(line, sizeof line, status)) {
            ours |= !strcmp(line, "Name:\tweft-helper\n");
            if (ours) sscanf(line, "voluntary_ctxt_switches: %ld", &times);
        }
        if (status) fclose(status);
    }
    closedir(tasks);
    return times;
}

/* Neither computing nor `messages` small messages wake it. */
static inline void quiet(int messages)
{
    volatile double x = 1;
    int number;
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(100000); /* what the parts before have rung for is over */
    long before = helper_slept();
    CHECK(before >= 0, "there is no helper thread");
    for (int i = 0; i < 300000000; i++) x = x * 1.0000001;
    for (int i = 0; i < messages; i++) {
        if (rank == 0) MPI_Send(&i, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
        MPI_Recv(&number, 1, MPI_INT, !rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(&i, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
        for (int k = 0; k < 100000; k++) x = x * 1.0000001;
    }
    long after = helper_slept();
    CHECK(after == before, "woken %ld times", after - before);
    /* Whoever is first sends the other nothing before it has counted, too. */
    static int counted;
    counted += 2;
    atomic_fetch_add(said + 1, 1);
    while (atomic_load(said + 1) < counted) x = x * 1.0000001;
}

/* A rank with nothing outstanding is not disturbed by large messages that nobody has asked for. */
static inline void unexpected(void)
{
    enum { MESSAGES = 10 };
    MPI_Request requests[MESSAGES];
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(100000);
    if (rank == 0) {
        fill(9);
        for (int i = 0; i < MESSAGES; i++)
            MPI_Isend(data, LARGE, MPI_CHAR, 1, 20 + i, MPI_COMM_WORLD, &requests[i]);
        tell();
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        return;
    }
    MPI_T_pvar_session session;
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle rounds = counter(session, "weft.waiting.helper_rounds");
    MPI_T_pvar_handle told = counter(session, "weft.waiting.helper_signals");
    long before = helper_slept();
    volatile double x = 1;
    CHECK(before >= 0, "there is no helper thread");
    compute();
    for (int i = 0; i < 100000000; i++) x = x * 1.0000001;
    long woken = helper_slept() - before;
    CHECK(value(session, rounds) == 0 && value(session, told) == 0);
    /* Each adapter of two rails that was armed before raises its event all the same, once. */
    CHECK(woken <= (getenv("WEFT_NODES") ? 2 : 0), "woken %ld times", woken);
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Recv(data, LARGE, MPI_CHAR, 0, 20 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_data(9);
    }
}

/* Signals to the process are the program's thread's. */
static inline void signals(void)
{
    for (int i = 1; i <= 100; i++) {
        kill(getpid(), SIGUSR1);
        while (signals_seen < i) { }
        CHECK(pthread_equal(signals_on, pthread_self()));
    }
}

static inline int finish(void)
{
    free(data);
    return end();
}

#endif
