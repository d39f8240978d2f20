// ranks: 2
// args: all
// says: correct
/* What is counted under callgrind (xtask/src/test/instructions.rs): calls that never wait, because the ranks tell each other
 * by shared memory, not by messages, when everything is there. Each way of use is a run of its own, so that a function's
 * count is that of its use. */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>

enum { WINDOW = 64 };

static int rounds = 500;

static volatile int64_t *turns;

/* The other rank has come so far. */
static void await(int64_t turn)
{
    while (__atomic_load_n(&turns[1 - rank], __ATOMIC_ACQUIRE) < turn) {
        sched_yield();
    }
}

static void tell(int64_t turn)
{
    __atomic_store_n(&turns[rank], turn, __ATOMIC_RELEASE);
}

static MPI_Comm apart;
static char data[WINDOW][1024];
static MPI_Request requests[2 * WINDOW];

/* Windows from rank 0 to rank 1: what is posted, then sent, then waited for. */
static void windows(MPI_Comm comm, int count, int bytes, int64_t *turn)
{
    MPI_Status statuses[WINDOW];
    for (int round = 0; round < rounds; round++, *turn += 2) {
        if (rank == 0) {
            memset(data, round, sizeof data);
            await(*turn + 1);
            for (int i = 0; i < count; i++) {
                MPI_Isend(data[i], bytes, MPI_CHAR, 1, 5, comm, &requests[i]);
            }
            MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
            tell(*turn + 1);
            await(*turn + 2);
            /* What the receiver says of its room. */
            int found;
            MPI_Iprobe(MPI_ANY_SOURCE, 6, comm, &found, MPI_STATUS_IGNORE);
        } else {
            for (int i = 0; i < count; i++) {
                MPI_Irecv(data[i], bytes, MPI_CHAR, 0, 5, comm, &requests[i]);
            }
            tell(*turn + 1);
            await(*turn + 1);
            MPI_Waitall(count, requests, round % 2 ? statuses : MPI_STATUSES_IGNORE);
            for (int i = 0; i < count; i++) {
                CHECK(requests[i] == MPI_REQUEST_NULL && data[i][bytes - 1] == (char)round);
                CHECK(round % 2 == 0 || (statuses[i].MPI_SOURCE == 0 && statuses[i].MPI_TAG == 5));
            }
            tell(*turn + 2);
        }
    }
}

/* Windows both ways at once. */
static void both(MPI_Comm comm, int bytes, int64_t *turn)
{
    static char out[1024];
    for (int round = 0; round < rounds; round++, *turn += 2) {
        memset(out, round, sizeof out);
        for (int i = 0; i < WINDOW; i++) {
            MPI_Irecv(data[i], bytes, MPI_CHAR, 1 - rank, 5, comm, &requests[i]);
        }
        tell(*turn + 1);
        await(*turn + 1);
        for (int i = 0; i < WINDOW; i++) {
            MPI_Isend(out, bytes, MPI_CHAR, 1 - rank, 5, comm, &requests[WINDOW + i]);
        }
        tell(*turn + 2);
        await(*turn + 2);
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < WINDOW; i++) {
            CHECK(data[i][bytes - 1] == (char)round);
        }
    }
}

/* One message at a time, there before it is asked for. */
static void blocking(int64_t *turn)
{
    for (int round = 0; round < rounds; round++, *turn += 2) {
        int64_t word = round;
        if (rank == 0) {
            MPI_Send(&word, 8, MPI_CHAR, 1, 5, MPI_COMM_WORLD);
            tell(*turn + 1);
            await(*turn + 2);
        } else {
            await(*turn + 1);
            word = -1;
            MPI_Recv(&word, 8, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(word == round);
            tell(*turn + 2);
        }
    }
}

/* A function of its own, so that what another one waits in the same call counts for nothing. */
static __attribute__((noinline)) void sum_last(const int64_t *one, int64_t *sum)
{
    MPI_Allreduce(one, sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

/* A sum to which rank 1 comes last. */
static void reduced(int64_t *turn)
{
    for (int round = 0; round < rounds; round++, *turn += 2) {
        int64_t one = round, sum = 0;
        if (rank == 0) {
            tell(*turn + 1);
            MPI_Allreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
            tell(*turn + 2);
        } else {
            await(*turn + 1);
            usleep(500);
            sum_last(&one, &sum);
            await(*turn + 2);
        }
        CHECK(sum == 2 * round);
    }
}

static void put(void)
{
    int64_t *memory, word;
    MPI_Win window;
    MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock_all(0, window);
    for (word = 0; word < rounds; word++) {
        MPI_Put(&word, 1, MPI_INT64_T, 1 - rank, 0, 1, MPI_INT64_T, window);
    }
    MPI_Win_flush_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(*memory == rounds - 1);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static MPI_Win own;
static int64_t *own_part;

/* Calls on a window that never wait: all but the first operation of each kind. */
static void one_sided(void)
{
    int64_t one = 1, word, old, back;
    MPI_Request request;
    int to = 1 - rank;
    MPI_Win_lock_all(0, own);
    for (word = 0; word < rounds; word++) {
        MPI_Put(&word, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, own);
        MPI_Win_flush(to, own);
        MPI_Get(&back, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, own);
        MPI_Win_flush_local(to, own);
        CHECK(back == word);
        MPI_Accumulate(&one, 1, MPI_INT64_T, to, 1, 1, MPI_INT64_T, MPI_SUM, own);
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, to, 2, MPI_SUM, own);
        MPI_Compare_and_swap(&one, &word, &old, MPI_INT64_T, to, 3, own);
        MPI_Win_flush_all(own);
        MPI_Rput(&word, 1, MPI_INT64_T, to, 4, 1, MPI_INT64_T, own, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Rget(&back, 1, MPI_INT64_T, to, 4, 1, MPI_INT64_T, own, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(back == word);
    }
    MPI_Win_unlock_all(own);
    for (int i = 0; i < rounds; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, to, 0, own);
        MPI_Win_unlock(to, own);
    }
}

static void *one_sided_in_thread(void *unused)
{
    (void)unused;
    one_sided();
    return NULL;
}

/* The same by this thread, or by a thread of its own. */
static void one_sided_of(int threads)
{
    pthread_t thread;
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &own_part, &own);
    memset(own_part, 0, 64);
    MPI_Barrier(MPI_COMM_WORLD);
    if (threads) {
        CHECK(!pthread_create(&thread, NULL, one_sided_in_thread, NULL));
        pthread_join(thread, NULL);
    } else {
        one_sided();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(own_part[1] == rounds && own_part[2] == rounds && own_part[3] == 1 && own_part[4] == rounds - 1);
    MPI_Win_free(&own);
}

/* Windows by another thread than the one that initialised MPI, on a communicator of its own. */
static void *in_thread(void *turn)
{
    windows(apart, WINDOW, 8, turn);
    return NULL;
}

/* Windows of persistent requests, each started by itself in half of the rounds. */
static void persistent(MPI_Comm comm, int64_t *turn)
{
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0) {
            MPI_Send_init(data[i], 8, MPI_CHAR, 1, 5, comm, &requests[i]);
        } else {
            MPI_Recv_init(data[i], 8, MPI_CHAR, 0, 5, comm, &requests[i]);
        }
    }
    for (int round = 0; round < rounds; round++, *turn += 2) {
        memset(data, rank == 0 ? round : -1, sizeof data);
        if (rank == 0) await(*turn + 1);
        if (round % 2) {
            MPI_Startall(WINDOW, requests);
        } else {
            for (int i = 0; i < WINDOW; i++) MPI_Start(&requests[i]);
        }
        if (rank == 1) {
            tell(*turn + 1);
            await(*turn + 1);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < WINDOW; i++) {
            CHECK(requests[i] != MPI_REQUEST_NULL && data[i][7] == (char)round);
        }
        if (rank == 0) {
            tell(*turn + 1);
            await(*turn + 2);
            int found;
            MPI_Iprobe(MPI_ANY_SOURCE, 6, comm, &found, MPI_STATUS_IGNORE);
        } else {
            tell(*turn + 2);
        }
    }
    for (int i = 0; i < WINDOW; i++) MPI_Request_free(&requests[i]);
}

static void *persistent_in_thread(void *turn)
{
    persistent(apart, turn);
    return NULL;
}

enum { LANES = 4, ANY = 8 };

static MPI_Comm several[LANES];

/* Messages on several communicators, each completed by MPI_Waitany. All are there before. */
static void any(int64_t *turn)
{
    int words[ANY];
    for (int round = 0; round < rounds; round++, *turn += 2) {
        if (rank == 0) {
            await(*turn + 1);
            for (int i = 0; i < ANY; i++) {
                words[i] = round + i;
                MPI_Send(&words[i], 1, MPI_INT, 1, i, several[i % LANES]);
            }
            tell(*turn + 1);
            await(*turn + 2);
        } else {
            for (int i = 0; i < ANY; i++) {
                words[i] = -1;
                MPI_Irecv(&words[i], 1, MPI_INT, 0, i, several[i % LANES], &requests[i]);
            }
            tell(*turn + 1);
            await(*turn + 1);
            for (int done = 0; done < ANY; done++) {
                int i;
                MPI_Waitany(ANY, requests, &i, MPI_STATUS_IGNORE);
                CHECK(i >= 0 && i < ANY && requests[i] == MPI_REQUEST_NULL && words[i] == round + i, "%d", i);
            }
            tell(*turn + 2);
        }
    }
}

static void *any_in_thread(void *turn)
{
    any(turn);
    return NULL;
}

int main(int argc, char **argv)
{
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    const char *level = getenv("LEVEL");
    int provided, wanted = levels[level ? atoi(level) : 3];
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size == 2 && argc == 2 && provided >= wanted);
    MPI_Win shared;
    MPI_Aint bytes;
    int unit;
    void *mine, *start;
    MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &shared);
    MPI_Win_shared_query(shared, 0, &bytes, &unit, &start);
    turns = start;
    MPI_Barrier(MPI_COMM_WORLD);

    int64_t turn = 0;
    const char *what = argv[1];
    int all = !strcmp(what, "all");
    if (all) {
        rounds = 50;
    }
    if (all || !strcmp(what, "window")) {
        windows(MPI_COMM_WORLD, WINDOW, 8, &turn);
    }
    if (all || !strcmp(what, "window_1k")) {
        windows(MPI_COMM_WORLD, WINDOW / 4, 1024, &turn);
    }
    if (all || !strcmp(what, "window_dup")) {
        MPI_Comm dup;
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        windows(dup, WINDOW, 8, &turn);
        MPI_Comm_free(&dup);
    }
    if (all || !strcmp(what, "window_thread")) {
        pthread_t thread;
        MPI_Comm_dup(MPI_COMM_WORLD, &apart);
        CHECK(!pthread_create(&thread, NULL, in_thread, &turn));
        pthread_join(thread, NULL);
        MPI_Comm_free(&apart);
    }
    if (all || !strcmp(what, "persistent_thread")) {
        pthread_t thread;
        MPI_Comm_dup(MPI_COMM_WORLD, &apart);
        CHECK(!pthread_create(&thread, NULL, persistent_in_thread, &turn));
        pthread_join(thread, NULL);
        MPI_Comm_free(&apart);
    }
    if (all || !strcmp(what, "window_tag")) {
        pthread_t thread;
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &apart);
        MPI_Info_free(&info);
        CHECK(!pthread_create(&thread, NULL, in_thread, &turn));
        pthread_join(thread, NULL);
        MPI_Comm_free(&apart);
    }
    if (all || !strcmp(what, "any_thread")) {
        pthread_t thread;
        for (int i = 0; i < LANES; i++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &several[i]);
        }
        /* Both threads use all lanes, so neither enters one without its lock. */
        int all_rounds = rounds;
        rounds = 1;
        any(&turn);
        rounds = all_rounds;
        CHECK(!pthread_create(&thread, NULL, any_in_thread, &turn));
        pthread_join(thread, NULL);
        for (int i = 0; i < LANES; i++) {
            MPI_Comm_free(&several[i]);
        }
    }
    if (all || !strcmp(what, "both")) {
        both(MPI_COMM_WORLD, 8, &turn);
    }
    if (all || !strcmp(what, "blocking")) {
        blocking(&turn);
    }
    if (all || !strcmp(what, "allreduce")) {
        reduced(&turn);
    }
    if (all || !strcmp(what, "put")) {
        put();
    }
    if (all || !strcmp(what, "one_sided")) {
        one_sided_of(0);
    }
    if (all || !strcmp(what, "one_sided_thread")) {
        one_sided_of(1);
    }
    MPI_Win_free(&shared);
    MPI_Finalize();
    if (rank == 0) {
        puts("correct");
    }
    return 0;
}
